// RUN: not takt-opt %s -takt-assign-stages=cuts=9 2>&1 | FileCheck %s --check-prefix=RANGE
// RUN: not takt-opt %s -takt-assign-stages=cuts=2,1 2>&1 | FileCheck %s --check-prefix=ORDER
// RUN: not takt-opt %s -takt-assign-stages="stages=3 cuts=1" 2>&1 | FileCheck %s --check-prefix=CLASH
// RUN: not takt-opt %s -takt-assign-stages=stages=-1 2>&1 | FileCheck %s --check-prefix=NEGATIVE
// RUN: not takt-opt %s -takt-assign-stages=schedule-policy=zigzag 2>&1 | FileCheck %s --check-prefix=POLICY
// RUN: not takt-opt %s -takt-assign-stages=work-limit=0 2>&1 | FileCheck %s --check-prefix=WORK
// RUN: not takt-opt %s -takt-assign-stages=stages=3 2>&1 | FileCheck %s --check-prefix=DEVICES
// RUN: not takt-opt %s -takt-assign-stages=cost-model=gpipe 2>&1 | FileCheck %s --check-prefix=FORMULA
// RUN: not takt-opt %s -takt-assign-stages="cost-model=dapple cuts=1" 2>&1 | FileCheck %s --check-prefix=GIVEN

// Options that contradict the model, the cluster or each other.

// RANGE: error: cut 9 leaves no segment behind it, there are 4
// ORDER: error: cut 1 does not come after 2
// CLASH: error: 1 cuts make 2 stages, but 3 stages are asked for
// NEGATIVE: error: a number of stages is negative
// POLICY: error: unknown schedule policy 'zigzag'; known are '1f1b' and 'gpipe'
// WORK: error: work-limit must be positive, got 0
// FORMULA: error: unknown cost model 'gpipe'; known are 'takt', 'pipedream', 'dapple', '2bw', 'dnn-partitioning' and 'piper'
// GIVEN: error: the cost model 'dapple' does not know cuts
// DEVICES: error: no stages fit: 3 stages of at least 1 device each need 3, there are 2
// DEVICES: note: leave the number of stages free

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
  #pipe.device<"d", flops = 1000000000, memory_bandwidth = 1000000000>
  #pipe.link<"l", latency = 10, bandwidth = 0>
  #pipe.nodes<device = "d", devices = 2, link = "l">
}
