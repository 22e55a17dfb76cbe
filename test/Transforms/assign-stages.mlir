// RUN: takt-opt %s -takt-assign-stages | FileCheck %s
// RUN: takt-opt %s -takt-assign-stages=stages=2 | FileCheck %s --check-prefix=TWO
// RUN: takt-opt %s -takt-assign-stages=cuts=1 | FileCheck %s --check-prefix=CUT
// RUN: takt-opt %s -takt-assign-stages="max-stages=1 replicas=1" | FileCheck %s --check-prefix=ONE
// RUN: takt-opt %s -takt-assign-stages="stages=2 schedule-policy=gpipe" | FileCheck %s --check-prefix=GPIPE

// Four layers of 2000, 2000, 2000 and 200 ns on two devices, four micro-batches,
// transfers of 10 ns each way, one way of 10 ns twice for an all-reduce of two.

// Left free: one stage on both devices, as halving every layer beats a pipeline:
// 4 * 3100 + 20 + 150.
// CHECK: pipe.cluster @pair
// CHECK: pipe.program @job of @net on @pair schedule "1f1b" objective_ns 12570 bound_ns 12570 method "exact" {
// CHECK-NEXT: pipe.stage 0 layers [0, 4) "a" to "loss" segments [0, 4)
// CHECK-NEXT:   replicas 2 devices [0, 1] memory_bytes {{[1-9][0-9]*}} in_flight 1
// CHECK-NEXT:   forward_ns 1550 backward_ns 1550 transfer_ns 0 all_reduce_ns 170
// CHECK-NEXT: }

// Two stages: 4000 + 20 + 2200 + 3 * 4000 + 100.
// TWO: pipe.program {{.*}} objective_ns 18320 bound_ns 18320 method "exact"
// TWO-NEXT: pipe.stage 0 layers [0, 2) "a" to "b" segments [0, 2)
// TWO-NEXT:   replicas 1 devices [0] memory_bytes {{[1-9][0-9]*}} in_flight 2
// TWO-NEXT:   forward_ns 2000 backward_ns 2000 transfer_ns 20 all_reduce_ns 100
// TWO-NEXT: pipe.stage 1 layers [2, 4) "c" to "loss" segments [2, 4)
// TWO-NEXT:   replicas 1 devices [1] memory_bytes {{[1-9][0-9]*}} in_flight 1
// TWO-NEXT:   forward_ns 1100 backward_ns 1100 transfer_ns 0 all_reduce_ns 50

// CUT: pipe.program {{.*}} objective_ns 18920 bound_ns 18920 method "given cuts"
// CUT-NEXT: pipe.stage 0 layers [0, 1) "a" to "a" segments [0, 1)
// CUT: pipe.stage 1 layers [1, 4) "b" to "loss" segments [1, 4)

// ONE: pipe.stage 0 layers [0, 4) "a" to "loss" segments [0, 4)
// ONE-NEXT: replicas 1 devices [0]
// ONE-NEXT: forward_ns 3100 backward_ns 3100

// GPipe holds every micro-batch on every stage.
// GPIPE: schedule "gpipe"
// GPIPE: replicas 1 devices [0] {{.*}} in_flight 4
// GPIPE: replicas 1 devices [1] {{.*}} in_flight 4

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
