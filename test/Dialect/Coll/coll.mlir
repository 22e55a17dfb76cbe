// RUN: takt-opt %s | FileCheck %s
// RUN: takt-opt %s | takt-opt | FileCheck %s
// RUN: takt-opt %s -mlir-print-op-generic | takt-opt | FileCheck %s

model.graph @net(%x: tensor<8xf32> <"x">, %y: tensor<i32> <"y", classes = 8>)
    training <global_batch = 16, micro_batches = 2> data synthetic {
  model.param @w : tensor<8x8xf32> init <normal, 0.02>
  %fc = model.linear "fc" %x weight @w : tensor<8xf32> -> tensor<8xf32>
  %head = model.linear "head" %fc weight @w : tensor<8xf32> -> tensor<8xf32>
  %loss = model.cross_entropy "loss" %head, %y : tensor<8xf32>, tensor<i32>
  model.output %loss : tensor<f32>
}

pipe.cluster @host {
  #pipe.device<"cpu", flops = 1000000000, memory_bandwidth = 10000000000>
  #pipe.link<"shm", latency = 1000, bandwidth = 5000000000>
  #pipe.nodes<device = "cpu", devices = 4, link = "shm">
}

// CHECK-LABEL: pipe.program @job
pipe.program @job of @net on @host schedule "1f1b"
    objective_ns 2 bound_ns 1 method "exact" {
  pipe.stage 0 layers [0, 1) "fc" to "fc" segments [0, 1)
    replicas 2 devices [0, 1] memory_bytes 0 in_flight 2
    forward_ns 0 backward_ns 0 transfer_ns 0 all_reduce_ns 0
  pipe.stage 1 layers [1, 3) "head" to "loss" segments [1, 3)
    replicas 1 devices [2] memory_bytes 0 in_flight 1
    forward_ns 0 backward_ns 0 transfer_ns 0 all_reduce_ns 0
  pipe.role 0 stages [0] actions <"0F0 0F1 0B0 0B1">
    lane compute <"0F0 0F1 0B0 0B1 0TIE_SUM0 0UPDATE">
    lane send_act <"0SEND_F0 0SEND_F1">
    lane recv_grad <"0RECV_B0 0RECV_B1">
    lane reduce <"0REDUCE_GRAD">
    lane tie <"0TIE_SEND0_1 0TIE_RECV0_1">
  pipe.role 1 stages [1] actions <"1F0 1B0 1F1 1B1">
    lane compute <"1F0 1B0 1F1 1B1 1TIE_SUM0 1UPDATE">
    lane recv_act <"1RECV_F0 1RECV_F1">
    lane send_grad <"1SEND_B0 1SEND_B1">
    lane tie <"1TIE_RECV0_0 1TIE_SEND0_0">
  // CHECK: coll.channel @act0 activation from 0 to 1 bytes 256 link <"shm", latency = 1000, bandwidth = 5000000000>
  // CHECK-NEXT: coll.channel @grad0 gradient from 1 to 0 bytes 256 link <"shm", latency = 1000, bandwidth = 5000000000>
  // CHECK-NEXT: coll.group @dp0 stage 0 link <"shm", latency = 1000, bandwidth = 5000000000>
  // CHECK-NEXT: coll.tie @tie0 param "w" stages [0, 1] link <"shm", latency = 1000, bandwidth = 5000000000>
  coll.channel @act0 activation from 0 to 1 bytes 256
    link <"shm", latency = 1000, bandwidth = 5000000000>
  coll.channel @grad0 gradient from 1 to 0 bytes 256
    link <"shm", latency = 1000, bandwidth = 5000000000>
  coll.group @dp0 stage 0 link <"shm", latency = 1000, bandwidth = 5000000000>
  coll.tie @tie0 param "w" stages [0, 1]
    link <"shm", latency = 1000, bandwidth = 5000000000>
  // CHECK-NEXT: coll.tie @tie1 param "w" stages [1]
  // CHECK-NOT: link
  coll.tie @tie1 param "w" stages [1]
}
