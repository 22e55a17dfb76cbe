// RUN: takt-opt %s -takt-schedule=schedule=gpipe -split-input-file -verify-diagnostics

// expected-error@+1 {{the module has no stages ('pipe.program')}}
module {
}

// -----

// expected-error@+1 {{the module has more than one 'pipe.program'}}
module {
model.graph @net(%x: tensor<8xf32> <"x">, %y: tensor<i32> <"y", classes = 4>)
    training <global_batch = 16, micro_batches = 4> data synthetic {
  model.param @fc.weight : tensor<8x8xf32> init <normal, 0.02>
  %fc = model.linear "fc" %x weight @fc.weight : tensor<8xf32> -> tensor<8xf32>
  %loss = model.cross_entropy "loss" %fc, %y : tensor<8xf32>, tensor<i32>
  model.output %loss : tensor<f32>
}
pipe.cluster @host {
  #pipe.device<"cpu", flops = 1000000000, memory_bandwidth = 10000000000>
  #pipe.link<"shm", latency = 1000, bandwidth = 5000000000>
  #pipe.nodes<device = "cpu", devices = 4, link = "shm">
}
pipe.program @job of @net on @host schedule "1f1b"
    objective_ns 2 bound_ns 1 method "exact" {
  pipe.stage 0 layers [0, 1) "fc" to "fc" segments [0, 1)
    replicas 1 devices [0] memory_bytes 0 in_flight 2
    forward_ns 0 backward_ns 0 transfer_ns 0 all_reduce_ns 0
  pipe.stage 1 layers [1, 2) "loss" to "loss" segments [1, 2)
    replicas 1 devices [1] memory_bytes 0 in_flight 1
    forward_ns 0 backward_ns 0 transfer_ns 0 all_reduce_ns 0
}
pipe.program @again of @net on @host schedule "1f1b"
    objective_ns 2 bound_ns 1 method "exact" {
  pipe.stage 0 layers [0, 1) "fc" to "fc" segments [0, 1)
    replicas 1 devices [0] memory_bytes 0 in_flight 2
    forward_ns 0 backward_ns 0 transfer_ns 0 all_reduce_ns 0
  pipe.stage 1 layers [1, 2) "loss" to "loss" segments [1, 2)
    replicas 1 devices [1] memory_bytes 0 in_flight 1
    forward_ns 0 backward_ns 0 transfer_ns 0 all_reduce_ns 0
}
}

// -----

model.graph @net(%x: tensor<8xf32> <"x">, %y: tensor<i32> <"y", classes = 4>)
    training <global_batch = 16, micro_batches = 4> data synthetic {
  model.param @fc.weight : tensor<8x8xf32> init <normal, 0.02>
  %fc = model.linear "fc" %x weight @fc.weight : tensor<8xf32> -> tensor<8xf32>
  %loss = model.cross_entropy "loss" %fc, %y : tensor<8xf32>, tensor<i32>
  model.output %loss : tensor<f32>
}
pipe.cluster @host {
  #pipe.device<"cpu", flops = 1000000000, memory_bandwidth = 10000000000>
  #pipe.link<"shm", latency = 1000, bandwidth = 5000000000>
  #pipe.nodes<device = "cpu", devices = 4, link = "shm">
}
// expected-error@+1 {{has a schedule already}}
pipe.program @job of @net on @host schedule "1f1b"
    objective_ns 2 bound_ns 1 method "exact" {
  pipe.stage 0 layers [0, 2) "fc" to "loss" segments [0, 2)
    replicas 1 devices [0] memory_bytes 0 in_flight 4
    forward_ns 0 backward_ns 0 transfer_ns 0 all_reduce_ns 0
  pipe.role 0 stages [0] actions <"">
}

// -----

// Memory for 1F1B does not hold GPipe.
model.graph @net(%x: tensor<8xf32> <"x">, %y: tensor<i32> <"y", classes = 4>)
    training <global_batch = 16, micro_batches = 4> data synthetic {
  model.param @fc.weight : tensor<8x8xf32> init <normal, 0.02>
  %fc = model.linear "fc" %x weight @fc.weight : tensor<8xf32> -> tensor<8xf32>
  %loss = model.cross_entropy "loss" %fc, %y : tensor<8xf32>, tensor<i32>
  model.output %loss : tensor<f32>
}
pipe.cluster @host {
  #pipe.device<"cpu", flops = 1000000000, memory_bandwidth = 10000000000>
  #pipe.link<"shm", latency = 1000, bandwidth = 5000000000>
  #pipe.nodes<device = "cpu", devices = 4, link = "shm">
}
pipe.program @job of @net on @host schedule "1f1b"
    objective_ns 2 bound_ns 1 method "exact" {
  // expected-error@+2 {{schedule 'gpipe' holds 4 micro-batches on stage 0, whose memory was planned for 2}}
  // expected-note@+1 {{assign stages with schedule-policy=gpipe}}
  pipe.stage 0 layers [0, 1) "fc" to "fc" segments [0, 1)
    replicas 1 devices [0] memory_bytes 0 in_flight 2
    forward_ns 0 backward_ns 0 transfer_ns 0 all_reduce_ns 0
  pipe.stage 1 layers [1, 2) "loss" to "loss" segments [1, 2)
    replicas 1 devices [1] memory_bytes 0 in_flight 1
    forward_ns 0 backward_ns 0 transfer_ns 0 all_reduce_ns 0
}
