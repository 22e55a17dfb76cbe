// RUN: not takt-opt %s -takt-assign-stages -mlir-print-ir-after-failure -o /dev/null 2>&1 | FileCheck %s
// RUN: not takt-opt %s -takt-assign-stages=work-limit=1 -mlir-print-ir-after-failure -o /dev/null 2>&1 | FileCheck %s --check-prefix=LIMIT
// RUN: not takt-opt %s -takt-assign-stages=cuts=9 -mlir-print-ir-after-failure -o /dev/null 2>&1 | FileCheck %s --check-prefix=BAD

// No device holds the first layer, which takes a search to tell. A driver tells a
// proof, a limit and bad input apart by the module's attribute.

// CHECK: takt.infeasible = "segment 'a' alone needs
// LIMIT: takt.limit_reached = "the work limit was reached before any assignment was found"
// BAD: error: cut 9
// BAD-NOT: takt.infeasible
// BAD-NOT: takt.limit_reached

model.graph @net(%x: tensor<8xf32> <"x">, %y: tensor<8xf32> <"y">)
    training <global_batch = 8, micro_batches = 4> data synthetic
    replica_options [1, 2] cost_source "roofline" {
  model.param @a.weight : tensor<8x8xf32> init <normal, 0.02>
  model.param @b.weight : tensor<8x8xf32> init <normal, 0.02>
  model.param @c.weight : tensor<8x8xf32> init <normal, 0.02>
  %a = model.linear "a" %x weight @a.weight : tensor<8xf32> -> tensor<8xf32>
    cost <forward = [1000, 500], input_grad = [0, 0], weight_grad = [1000, 500], update = 50>
  %b = model.linear "b" %a weight @b.weight : tensor<8xf32> -> tensor<8xf32>
    cost <forward = [1000, 500], input_grad = [500, 250], weight_grad = [500, 250], update = 50>
  %c = model.linear "c" %b weight @c.weight : tensor<8xf32> -> tensor<8xf32>
    cost <forward = [1000, 500], input_grad = [600, 300], weight_grad = [400, 200], update = 50>
  %loss = model.mean_squared_error "loss" %c, %y : tensor<8xf32>, tensor<8xf32>
    cost <forward = [100, 50], input_grad = [100, 50], weight_grad = [0, 0], update = 0>
  model.output %loss : tensor<f32>
}

pipe.cluster @pair {
  #pipe.device<"d", flops = 1000000000, memory_bandwidth = 1000000000,
               memory = 1000>
  #pipe.link<"l", latency = 10, bandwidth = 0>
  #pipe.nodes<device = "d", devices = 2, link = "l">
}
