// RUN: takt-opt %s -takt-annotate-costs | FileCheck %s
// RUN: takt-opt %s -takt-annotate-costs -takt-annotate-costs | FileCheck %s

// The device does one operation a nanosecond, its memory is never the limit, and
// a kernel costs 1000 ns: times can be read off the shapes. A micro-batch has 4
// samples, so up to 4 of the 6 devices can share it. The frozen layer has no
// gradient work, the first trained one none for its input. A second run replaces
// what the first wrote.

pipe.cluster @six {
  #pipe.device<"d", flops = 1000000000, memory_bandwidth = 1000000000000000,
               kernel_overhead = 1000>
  #pipe.link<"l", latency = 1000, bandwidth = 1000000000>
  #pipe.nodes<device = "d", devices = 6, link = "l">
}

// CHECK: model.graph @net
// CHECK: data synthetic replica_options [1, 2, 4] cost_source "roofline" {
// CHECK: model.linear "frozen" {{.*}} cost <forward = [81000, 41000, 21000], input_grad = [0, 0, 0], weight_grad = [0, 0, 0]>
// CHECK: model.linear "fc" {{.*}} cost <forward = [81000, 41000, 21000], input_grad = [0, 0, 0], weight_grad = [81000, 41000, 21000], update = 21000>
// CHECK: model.repeat 3 "h"
// CHECK: model.relu "h.*.act" {{.*}} cost <forward = [1400, 1200, 1100], input_grad = [1400, 1200, 1100], weight_grad = [0, 0, 0]>
// CHECK: model.mean_squared_error "loss" {{.*}} cost <forward = [2200, 1600, 1300], input_grad = [1800, 1400, 1200], weight_grad = [0, 0, 0]>
model.graph @net(%x: tensor<100xf32> <"x">, %y: tensor<100xf32> <"y">)
    training <global_batch = 8, micro_batches = 2> data synthetic {
  model.param @frozen.weight : tensor<100x100xf32> init <normal, 0.1> frozen
  model.param @fc.weight : tensor<100x100xf32> init <normal, 0.1>
  %0 = model.linear "frozen" %x weight @frozen.weight
      : tensor<100xf32> -> tensor<100xf32>
  %1 = model.linear "fc" %0 weight @fc.weight
      : tensor<100xf32> -> tensor<100xf32>
  %2 = model.repeat 3 "h" (%in = %1) : tensor<100xf32> {
    %act = model.relu "h.*.act" %in : tensor<100xf32>
    model.yield %act : tensor<100xf32>
  }
  %3 = model.mean_squared_error "loss" %2, %y
      : tensor<100xf32>, tensor<100xf32>
  model.output %3 : tensor<f32>
}
