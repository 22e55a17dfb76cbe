// RUN: takt-opt %s -takt-schedule=file=%S/Inputs/v.csv -takt-insert-comms | FileCheck %s
// RUN: takt-opt %s -takt-schedule=file=%S/Inputs/v.csv -takt-insert-comms | takt-opt | FileCheck %s
// RUN: not takt-opt %s -takt-schedule=file=%S/Inputs/two-by-two.csv 2>&1 | FileCheck %s --check-prefix=OTHER
// RUN: not takt-opt %s -takt-schedule=schedule=gpipe 2>&1 | FileCheck %s --check-prefix=GPIPE

// A V: stages 1 and 2 turn on rank 1, where nothing is sent between them. `tok`
// and `head` share a parameter and a rank: its gradients are summed there. One
// load brings in the inputs of both stages of rank 0.

// CHECK: pipe.role 0 stages [0, 3] actions <"0F0 0F1 3F0 3B0 3F1 3B1 0B0 0B1">
// CHECK-NEXT: lane compute <"0F0 0F1 3F0 3B0 3F1 3B1 0B0 0B1 0TIE_SUM0 3UPDATE 0UPDATE">
// CHECK-NEXT: lane load <"0LOAD0 0LOAD1">
// CHECK-NEXT: lane send_act <"0SEND_F0 0SEND_F1">
// CHECK-NEXT: lane recv_grad <"0RECV_B0 0RECV_B1">
// CHECK-NEXT: lane recv_act <"3RECV_F0 3RECV_F1">
// CHECK-NEXT: lane send_grad <"3SEND_B0 3SEND_B1">
// CHECK-NEXT: pipe.role 1 stages [1, 2] actions <"1F0 2F0 1F1 2F1 2B0 1B0 2B1 1B1">
// CHECK-NEXT: lane compute <"1F0 2F0 1F1 2F1 2B0 1B0 2B1 1B1 2UPDATE 1UPDATE">
// CHECK-NEXT: lane recv_act <"1RECV_F0 1RECV_F1">
// CHECK-NEXT: lane send_grad <"1SEND_B0 1SEND_B1">
// CHECK-NEXT: lane send_act <"2SEND_F0 2SEND_F1">
// CHECK-NEXT: lane recv_grad <"2RECV_B0 2RECV_B1">
// CHECK-NEXT: coll.channel @act0 activation from 0 to 1
// CHECK-NEXT: coll.channel @grad0 gradient from 1 to 0
// CHECK-NEXT: coll.channel @act2 activation from 2 to 3
// CHECK-NEXT: coll.channel @grad2 gradient from 3 to 2
// CHECK-NEXT: coll.tie @tie0 param "tok.weight" stages [0, 3]{{$}}
// CHECK-NEXT: }

// OTHER: schedule 'two-by-two.csv' has stages 0 and 2 on one rank, they have different devices
// GPIPE: schedule 'gpipe' has stages 1 and 2 on two ranks, they have the same devices

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
    replicas 1 devices [0] memory_bytes 0 in_flight 2
    forward_ns 0 backward_ns 0 transfer_ns 0 all_reduce_ns 0
  pipe.stage 1 layers [1, 2) "fc" to "fc" segments [1, 2)
    replicas 1 devices [1] memory_bytes 0 in_flight 2
    forward_ns 0 backward_ns 0 transfer_ns 0 all_reduce_ns 0
  pipe.stage 2 layers [2, 3) "out" to "out" segments [2, 3)
    replicas 1 devices [1] memory_bytes 0 in_flight 2
    forward_ns 0 backward_ns 0 transfer_ns 0 all_reduce_ns 0
  pipe.stage 3 layers [3, 5) "head" to "loss" segments [3, 5)
    replicas 1 devices [0] memory_bytes 0 in_flight 1
    forward_ns 0 backward_ns 0 transfer_ns 0 all_reduce_ns 0
}
