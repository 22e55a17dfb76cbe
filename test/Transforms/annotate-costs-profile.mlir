// RUN: takt-opt %s -takt-annotate-costs=profile=%S/Inputs/costs.yaml | FileCheck %s
// RUN: not takt-opt %s -takt-annotate-costs=profile=%S/Inputs/bad-costs.yaml 2>&1 | FileCheck %s -check-prefix=BAD
// RUN: not takt-opt %s -takt-annotate-costs=profile=%S/Inputs/no-such.yaml 2>&1 | FileCheck %s -check-prefix=NONE

// Measured for 2 samples, needed for 4 and 2: times double or stay, the update
// does not depend on the samples. Repetitions that differ keep a cost each.

pipe.cluster @pair {
  #pipe.device<"d", flops = 1000000000, memory_bandwidth = 1000000000>
  #pipe.link<"l", latency = 1000, bandwidth = 1000000000>
  #pipe.nodes<device = "d", devices = 2, link = "l">
}

// CHECK: replica_options [1, 2] cost_source "profile {{.*}}costs.yaml" {
// CHECK: model.linear "fc" {{.*}} cost <forward = [40000, 20000], input_grad = [0, 0], weight_grad = [60000, 30000], update = 7000>
// CHECK: model.relu "h.*.act" {{.*}} costs [<forward = [8000, 4000], input_grad = [12000, 6000], weight_grad = [0, 0]>, <forward = [16000, 8000], input_grad = [12000, 6000], weight_grad = [0, 0]>]
// CHECK: model.mean_squared_error "loss" {{.*}} cost <forward = [4000, 2000], input_grad = [4000, 2000], weight_grad = [0, 0]>

// A fault in the profile stands at its own place.
// BAD: bad-costs.yaml:6:19: error: 'forward': '20' has no unit

// NONE: no-such.yaml:0:0: error: cannot open the file
model.graph @net(%x: tensor<100xf32> <"x">, %y: tensor<100xf32> <"y">)
    training <global_batch = 8, micro_batches = 2> data synthetic {
  model.param @fc.weight : tensor<100x100xf32> init <normal, 0.1>
  %1 = model.linear "fc" %x weight @fc.weight
      : tensor<100xf32> -> tensor<100xf32>
  %2 = model.repeat 2 "h" (%in = %1) : tensor<100xf32> {
    %act = model.relu "h.*.act" %in : tensor<100xf32>
    model.yield %act : tensor<100xf32>
  }
  %3 = model.mean_squared_error "loss" %2, %y
      : tensor<100xf32>, tensor<100xf32>
  model.output %3 : tensor<f32>
}
