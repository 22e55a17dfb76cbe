// RUN: takt-opt %s | FileCheck %s
// RUN: takt-opt %s | takt-opt | FileCheck %s
// RUN: takt-opt %s -mlir-print-op-generic | takt-opt | FileCheck %s

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

// Stages alone, as takt-assign-stages leaves them.
// CHECK-LABEL: pipe.program @stages of @net on @host schedule "1f1b" objective_ns 5200 bound_ns 5100 method "exact" {
// CHECK-NEXT: pipe.stage 0 layers [0, 1) "fc" to "fc" segments [0, 1)
// CHECK-NEXT:   replicas 2 devices [0, 1] memory_bytes 4096 in_flight 2
// CHECK-NEXT:   forward_ns 100 backward_ns 200 transfer_ns 10 all_reduce_ns 20
// CHECK-NEXT: pipe.stage 1 layers [1, 3) "head" to "loss" segments [1, 3)
// CHECK-NEXT:   replicas 1 devices [2] memory_bytes 2048 in_flight 1
// CHECK-NEXT:   forward_ns 90 backward_ns 180 transfer_ns 0 all_reduce_ns 5
// CHECK-NEXT: }
pipe.program @stages of @net on @host schedule "1f1b"
    objective_ns 5200 bound_ns 5100 method "exact" {
  pipe.stage 0 layers [0, 1) "fc" to "fc" segments [0, 1)
    replicas 2 devices [0, 1] memory_bytes 4096 in_flight 2
    forward_ns 100 backward_ns 200 transfer_ns 10 all_reduce_ns 20
  pipe.stage 1 layers [1, 3) "head" to "loss" segments [1, 3)
    replicas 1 devices [2] memory_bytes 2048 in_flight 1
    forward_ns 90 backward_ns 180 transfer_ns 0 all_reduce_ns 5
}

// Roles with lanes; any blanks may stand between actions.
// CHECK-LABEL: pipe.program @roles
// CHECK: pipe.role 0 stages [0] actions <"0F0 0I0 0W0 0F1 0B1">
// CHECK-NEXT: lane compute <"0F0 0I0 0W0 0F1 0B1 0TIE_SUM0 0UPDATE">
// CHECK-NEXT: lane load <"0LOAD0 0LOAD1">
// CHECK-NEXT: lane recv_act <"0RECV_F0">
// CHECK-NEXT: lane send_act <"0SEND_F0">
// CHECK-NEXT: lane recv_grad <"0RECV_B0">
// CHECK-NEXT: lane send_grad <"0SEND_B0">
// CHECK-NEXT: lane reduce <"0REDUCE_GRAD">
// CHECK-NEXT: lane tie <"0TIE_SEND0_3 0TIE_RECV0_3">
// CHECK-NEXT: }
pipe.program @roles of @net on @host schedule "mine"
    objective_ns 0 bound_ns 0 method "given cuts" {
  pipe.stage 0 layers [0, 3) "fc" to "loss" segments [0, 3)
    replicas 1 devices [3] memory_bytes 0 in_flight 1
    forward_ns 0 backward_ns 0 transfer_ns 0 all_reduce_ns 0
  pipe.role 0 stages [0] actions <"  0F0 0I0	0W0   0F1 0B1 ">
    lane compute <"0F0 0I0 0W0 0F1 0B1 0TIE_SUM0 0UPDATE">
    lane load <"0LOAD0 0LOAD1">
    lane recv_act <"0RECV_F0">
    lane send_act <"0SEND_F0">
    lane recv_grad <"0RECV_B0">
    lane send_grad <"0SEND_B0">
    lane reduce <"0REDUCE_GRAD">
    lane tie <"0TIE_SEND0_3 0TIE_RECV0_3">
}

// Two stages of one role are interleaved; an empty list is a list.
// CHECK-LABEL: pipe.program @interleaved
// CHECK: pipe.role 0 stages [0, 1] actions <"0F0 1F0 1B0 0B0">
// CHECK: pipe.role 1 stages [2] actions <"">
pipe.program @interleaved of @net on @host schedule "mine"
    objective_ns 1 bound_ns 0 method "given cuts" {
  pipe.stage 0 layers [0, 1) "fc" to "fc" segments [0, 1)
    replicas 1 devices [0] memory_bytes 0 in_flight 1
    forward_ns 0 backward_ns 0 transfer_ns 0 all_reduce_ns 0
  pipe.stage 1 layers [1, 2) "head" to "head" segments [1, 2)
    replicas 1 devices [0] memory_bytes 0 in_flight 1
    forward_ns 0 backward_ns 0 transfer_ns 0 all_reduce_ns 0
  pipe.stage 2 layers [2, 3) "loss" to "loss" segments [2, 3)
    replicas 1 devices [1] memory_bytes 0 in_flight 1
    forward_ns 0 backward_ns 0 transfer_ns 0 all_reduce_ns 0
  pipe.role 0 stages [0, 1] actions <"0F0 1F0 1B0 0B0">
  pipe.role 1 stages [2] actions <"">
}

// Three or more devices in a row print as a range.
// CHECK-LABEL: pipe.program @ranges
// CHECK: replicas 3 devices [0, 3)
// CHECK: replicas 1 devices [3]
pipe.program @ranges of @net on @host schedule "mine"
    objective_ns 1 bound_ns 0 method "given cuts" {
  pipe.stage 0 layers [0, 1) "fc" to "fc" segments [0, 1)
    replicas 3 devices [0, 1, 2] memory_bytes 0 in_flight 1
    forward_ns 0 backward_ns 0 transfer_ns 0 all_reduce_ns 0
  pipe.stage 1 layers [1, 3) "head" to "loss" segments [1, 3)
    replicas 1 devices [3, 4) memory_bytes 0 in_flight 1
    forward_ns 0 backward_ns 0 transfer_ns 0 all_reduce_ns 0
}

// CHECK-LABEL: pipe.program @lists
// CHECK: replicas 2 devices [0, 1] memory
// CHECK: replicas 2 devices [3, 2] memory
pipe.program @lists of @net on @host schedule "mine"
    objective_ns 1 bound_ns 0 method "given cuts" {
  pipe.stage 0 layers [0, 1) "fc" to "fc" segments [0, 1)
    replicas 2 devices [0, 2) memory_bytes 0 in_flight 1
    forward_ns 0 backward_ns 0 transfer_ns 0 all_reduce_ns 0
  pipe.stage 1 layers [1, 3) "head" to "loss" segments [1, 3)
    replicas 2 devices [3, 2] memory_bytes 0 in_flight 1
    forward_ns 0 backward_ns 0 transfer_ns 0 all_reduce_ns 0
}
