// RUN: takt-opt %s -split-input-file -verify-diagnostics -takt-assign-stages="assign=graph stages=2 replicas=1" | FileCheck %s

// Two branches: the second is made before the first is read. The best two stages
// exchange them: 'a' and 'c' are alone as long as the rest.

// CHECK: pipe.program @job
// CHECK-SAME: objective_ns {{[0-9]+}} bound_ns {{[0-9]+}} method "graph, bound by down-sets"
// CHECK-SAME: takt.order = array<i32: 0, 2, 1, 3, 4>
// CHECK: pipe.stage 0 layers [0, 2) "a" to "c"
// CHECK: pipe.stage 1 layers [2, 5) "b" to "loss"

model.graph @net(%x: tensor<8xf32> <"x">, %y: tensor<8xf32> <"y">)
    training <global_batch = 40, micro_batches = 40> data synthetic
    replica_options [1] cost_source "roofline" {
  model.param @a.weight : tensor<8x8xf32> init <normal, 0.02>
  model.param @b.weight : tensor<8x8xf32> init <normal, 0.02>
  model.param @c.weight : tensor<8x8xf32> init <normal, 0.02>
  %a = model.linear "a" %x weight @a.weight : tensor<8xf32> -> tensor<8xf32>
    cost <forward = [1000], input_grad = [0], weight_grad = [1000], update = 50>
  %b = model.linear "b" %a weight @b.weight : tensor<8xf32> -> tensor<8xf32>
    cost <forward = [2000], input_grad = [1000], weight_grad = [1000], update = 50>
  %c = model.linear "c" %a weight @c.weight : tensor<8xf32> -> tensor<8xf32>
    cost <forward = [1000], input_grad = [500], weight_grad = [500], update = 50>
  %sum = model.add "sum" %b, %c : tensor<8xf32>
    cost <forward = [0], input_grad = [0], weight_grad = [0], update = 0>
  %loss = model.mean_squared_error "loss" %sum, %y : tensor<8xf32>, tensor<8xf32>
    cost <forward = [0], input_grad = [0], weight_grad = [0], update = 0>
  model.output %loss : tensor<f32>
}
pipe.cluster @pair {
  #pipe.device<"d", flops = 1000000000, memory_bandwidth = 1000000000>
  #pipe.link<"l", latency = 10, bandwidth = 0>
  #pipe.nodes<device = "d", devices = 2, link = "l">
}
