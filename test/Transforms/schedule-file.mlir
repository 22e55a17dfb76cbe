// RUN: takt-opt %s -takt-schedule=file=%S/Inputs/split-backward.csv | FileCheck %s
// RUN: not takt-opt %s -takt-schedule=file=%S/Inputs/none.csv 2>&1 | FileCheck %s --check-prefix=NONE

// The rows of a file become roles in the order of their stages.

// CHECK-LABEL: pipe.program @job of @net on @host schedule "split-backward.csv"
// CHECK: pipe.role 0 stages [0] actions <"0F0 0F1 0B0 0F2 0B1 0F3 0B2 0B3">
// CHECK-NEXT: pipe.role 1 stages [1] actions <"1F0 1I0 1F1 1W0 1I1 1W1 1F2 1I2 1W2 1F3 1I3 1W3">
// CHECK-NEXT: }

// NONE: none.csv

model.graph @net(%x: tensor<8xf32> <"x">, %y: tensor<i32> <"y", classes = 4>)
    training <global_batch = 16, micro_batches = 4> data synthetic {
  model.param @fc.weight : tensor<8x8xf32> init <normal, 0.02>
  model.param @head.weight : tensor<4x8xf32> init <normal, 0.02>
  %fc = model.linear "fc" %x weight @fc.weight : tensor<8xf32> -> tensor<8xf32>
  %head = model.linear "head" %fc weight @head.weight : tensor<8xf32> -> tensor<4xf32>
  %loss = model.cross_entropy "loss" %head, %y : tensor<4xf32>, tensor<i32>
  model.output %loss : tensor<f32>
}

pipe.cluster @host {
  #pipe.device<"cpu", flops = 1000000000, memory_bandwidth = 10000000000>
  #pipe.link<"shm", latency = 1000, bandwidth = 5000000000>
  #pipe.nodes<device = "cpu", devices = 4, link = "shm">
}

pipe.program @job of @net on @host schedule "1f1b"
    objective_ns 5200 bound_ns 5100 method "exact" {
  pipe.stage 0 layers [0, 1) "fc" to "fc" segments [0, 1)
    replicas 1 devices [0] memory_bytes 4096 in_flight 4
    forward_ns 100 backward_ns 200 transfer_ns 10 all_reduce_ns 20
  pipe.stage 1 layers [1, 3) "head" to "loss" segments [1, 3)
    replicas 1 devices [1] memory_bytes 2048 in_flight 4
    forward_ns 90 backward_ns 180 transfer_ns 0 all_reduce_ns 5
}
