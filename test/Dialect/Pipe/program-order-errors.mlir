// RUN: takt-opt %s -split-input-file -verify-diagnostics

// An order of the layers that reads a value before it is made.

model.graph @net(%x: tensor<8xf32> <"x">, %y: tensor<8xf32> <"y">)
    training <global_batch = 8> data synthetic {
  model.param @a.weight : tensor<8x8xf32> init <normal, 0.02>
  %a = model.linear "a" %x weight @a.weight : tensor<8xf32> -> tensor<8xf32>
  %loss = model.mean_squared_error "loss" %a, %y : tensor<8xf32>, tensor<8xf32>
  model.output %loss : tensor<f32>
}
pipe.cluster @one {
  #pipe.device<"d", flops = 1000000000, memory_bandwidth = 1000000000>
  #pipe.nodes<device = "d", devices = 1>
}
// expected-error@+1 {{has an attribute 'takt.order' that is no order of the layers of model 'net'}}
pipe.program @job of @net on @one schedule "1f1b" objective_ns 5 bound_ns 5
    method "exact" attributes {takt.order = array<i32: 1, 0>} {
  pipe.stage 0 layers [0, 2) "loss" to "a" segments [0, 2)
    replicas 1 devices [0] memory_bytes 4096 in_flight 1
    forward_ns 1 backward_ns 2 transfer_ns 0 all_reduce_ns 0
}
