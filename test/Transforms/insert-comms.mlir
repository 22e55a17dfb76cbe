// RUN: takt-opt %s -takt-schedule -takt-insert-comms | FileCheck %s
// RUN: takt-opt %s -takt-schedule -takt-insert-comms | takt-opt | FileCheck %s

// Three stages on two nodes of three devices: the first stage lies within a node,
// the second and everything around it crosses the network. `tok` and `head` share
// a parameter, so its gradient is summed over stages 0 and 2. The graph's input is
// loaded on stage 0, the targets on stage 2.

// CHECK: pipe.role 0 stages [0] actions <"0F0 0F1 0B0 0B1">
// CHECK-NEXT: lane compute <"0F0 0F1 0B0 0B1 0TIE_SUM0 0UPDATE">
// CHECK-NEXT: lane load <"0LOAD0 0LOAD1">
// CHECK-NEXT: lane send_act <"0SEND_F0 0SEND_F1">
// CHECK-NEXT: lane recv_grad <"0RECV_B0 0RECV_B1">
// CHECK-NEXT: lane reduce <"0REDUCE_GRAD">
// CHECK-NEXT: lane tie <"0TIE_SEND0_2 0TIE_RECV0_2">
// CHECK-NEXT: pipe.role 1 stages [1] actions <"1F0 1F1 1B0 1B1">
// CHECK-NEXT: lane compute <"1F0 1F1 1B0 1B1 1UPDATE">
// CHECK-NEXT: lane recv_act <"1RECV_F0 1RECV_F1">
// CHECK-NEXT: lane send_act <"1SEND_F0 1SEND_F1">
// CHECK-NEXT: lane recv_grad <"1RECV_B0 1RECV_B1">
// CHECK-NEXT: lane send_grad <"1SEND_B0 1SEND_B1">
// CHECK-NEXT: lane reduce <"1REDUCE_GRAD">
// CHECK-NEXT: pipe.role 2 stages [2] actions <"2F0 2B0 2F1 2B1">
// CHECK-NEXT: lane compute <"2F0 2B0 2F1 2B1 2TIE_SUM0 2UPDATE">
// CHECK-NEXT: lane load <"2LOAD0 2LOAD1">
// CHECK-NEXT: lane recv_act <"2RECV_F0 2RECV_F1">
// CHECK-NEXT: lane send_grad <"2SEND_B0 2SEND_B1">
// CHECK-NEXT: lane tie <"2TIE_RECV0_0 2TIE_SEND0_0">

// 4 samples of 8 floats.
// CHECK-NEXT: coll.channel @act0 activation from 0 to 1 bytes 128 link <"ib", latency = 9000, bandwidth = 1000000000>
// CHECK-NEXT: coll.channel @grad0 gradient from 1 to 0 bytes 128 link <"ib", {{.*}}>
// CHECK-NEXT: coll.channel @act1 activation from 1 to 2 bytes 128 link <"ib", {{.*}}>
// CHECK-NEXT: coll.channel @grad1 gradient from 2 to 1 bytes 128 link <"ib", {{.*}}>
// CHECK-NEXT: coll.group @dp0 stage 0 link <"shm", latency = 1000, bandwidth = 5000000000>
// CHECK-NEXT: coll.group @dp1 stage 1 link <"ib", {{.*}}>
// CHECK-NEXT: coll.tie @tie0 param "tok.weight" stages [0, 2] link <"ib", {{.*}}>
// CHECK-NEXT: }

model.graph @net(%x: tensor<8xf32> <"x">, %y: tensor<i32> <"y", classes = 8>)
    training <global_batch = 8, micro_batches = 2> data synthetic
    replica_options [1, 2, 4] cost_source "roofline" {
  model.param @tok.weight : tensor<8x8xf32> init <normal, 0.02>
  model.param @fc.weight : tensor<16x8xf32> init <normal, 0.02>
  model.param @out.weight : tensor<8x16xf32> init <normal, 0.02>
  %tok = model.linear "tok" %x weight @tok.weight : tensor<8xf32> -> tensor<8xf32>
    cost <forward = [8, 4, 2], input_grad = [7, 4, 2], weight_grad = [6, 3, 2], update = 5>
  %fc = model.linear "fc" %tok weight @fc.weight : tensor<8xf32> -> tensor<16xf32>
    cost <forward = [8, 4, 2], input_grad = [7, 4, 2], weight_grad = [6, 3, 2], update = 5>
  %out = model.linear "out" %fc weight @out.weight : tensor<16xf32> -> tensor<8xf32>
    cost <forward = [8, 4, 2], input_grad = [7, 4, 2], weight_grad = [6, 3, 2], update = 5>
  %head = model.linear "head" %out weight @tok.weight : tensor<8xf32> -> tensor<8xf32>
    cost <forward = [8, 4, 2], input_grad = [7, 4, 2], weight_grad = [6, 3, 2], update = 5>
  %loss = model.cross_entropy "loss" %head, %y : tensor<8xf32>, tensor<i32>
    cost <forward = [8, 4, 2], input_grad = [7, 4, 2], weight_grad = [6, 3, 2], update = 5>
  model.output %loss : tensor<f32>
}

pipe.cluster @two network "ib" {
  #pipe.device<"cpu", flops = 1000000000, memory_bandwidth = 10000000000, memory = 65536>
  #pipe.link<"shm", latency = 1000, bandwidth = 5000000000>
  #pipe.link<"ib", latency = 9000, bandwidth = 1000000000>
  #pipe.nodes<count = 2, device = "cpu", devices = 3, link = "shm">
}

pipe.program @job of @net on @two schedule "1f1b"
    objective_ns 2 bound_ns 1 method "exact" {
  pipe.stage 0 layers [0, 1) "tok" to "tok" segments [0, 1)
    replicas 2 devices [0, 1] memory_bytes 0 in_flight 2
    forward_ns 0 backward_ns 0 transfer_ns 0 all_reduce_ns 0
  pipe.stage 1 layers [1, 3) "fc" to "out" segments [1, 3)
    replicas 2 devices [2, 3] memory_bytes 0 in_flight 2
    forward_ns 0 backward_ns 0 transfer_ns 0 all_reduce_ns 0
  pipe.stage 2 layers [3, 5) "head" to "loss" segments [3, 5)
    replicas 1 devices [4] memory_bytes 0 in_flight 1
    forward_ns 0 backward_ns 0 transfer_ns 0 all_reduce_ns 0
}
