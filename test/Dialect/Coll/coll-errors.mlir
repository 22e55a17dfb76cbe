// RUN: takt-opt %s -split-input-file -verify-diagnostics

// expected-error@+1 {{expects parent op 'pipe.program'}}
coll.group @dp0 stage 0 link <"shm", latency = 1000, bandwidth = 5000000000>

// -----

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
  // expected-error@+1 {{carries activations from stage 0 to stage 0, expected 1}}
  coll.channel @c activation from 0 to 0 bytes 1 link <"shm", latency = 1000, bandwidth = 5000000000>
}

// -----

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
  // expected-error@+1 {{carries gradients from stage 0 to stage 1, expected -1}}
  coll.channel @c gradient from 0 to 1 bytes 1 link <"shm", latency = 1000, bandwidth = 5000000000>
}

// -----

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
  // expected-error@+1 {{has a negative size: -1 bytes}}
  coll.channel @c activation from 0 to 1 bytes -1 link <"shm", latency = 1000, bandwidth = 5000000000>
}

// -----

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
  // expected-error@+1 {{names stage 2, which no role of the program has}}
  coll.channel @c activation from 1 to 2 bytes 1 link <"shm", latency = 1000, bandwidth = 5000000000>
}

// -----

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
  // expected-error@+1 {{names stage 7, which no role of the program has}}
  coll.channel @c activation from 7 to 8 bytes 1 link <"shm", latency = 1000, bandwidth = 5000000000>
}

// -----

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
    lane send_act <"0SEND_F0">
    lane recv_grad <"0RECV_B0 0RECV_B1">
    lane reduce <"0REDUCE_GRAD">
    lane tie <"0TIE_SEND0_1 0TIE_RECV0_1">
  pipe.role 1 stages [1] actions <"1F0 1B0 1F1 1B1">
    lane compute <"1F0 1B0 1F1 1B1 1TIE_SUM0 1UPDATE">
    lane recv_act <"1RECV_F0 1RECV_F1">
    lane send_grad <"1SEND_B0 1SEND_B1">
    lane tie <"1TIE_RECV0_0 1TIE_SEND0_0">
  // expected-error@+1 {{has 1 sends of stage 0 and 2 receives of stage 1}}
  coll.channel @c activation from 0 to 1 bytes 1 link <"shm", latency = 1000, bandwidth = 5000000000>
}

// -----

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
    lane send_grad <"1SEND_B0 1SEND_B1">
    lane tie <"1TIE_RECV0_0 1TIE_SEND0_0">
  // expected-error@+1 {{has 2 sends of stage 0 and 0 receives of stage 1}}
  coll.channel @c activation from 0 to 1 bytes 1 link <"shm", latency = 1000, bandwidth = 5000000000>
}

// -----

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
    lane send_grad <"1SEND_B1 1SEND_B0">
    lane tie <"1TIE_RECV0_0 1TIE_SEND0_0">
  // expected-error@+1 {{carries micro-batch 1 as message 0, stage 0 expects micro-batch 0}}
  coll.channel @c gradient from 1 to 0 bytes 1 link <"shm", latency = 1000, bandwidth = 5000000000>
}

// -----

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
  // expected-error@+1 {{expected string or keyword containing one of the following enum values for attribute 'kind' [activation, gradient]}}
  coll.channel @c sideways from 0 to 1 bytes 1 link <"shm", latency = 1000, bandwidth = 5000000000>
}

// -----

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
  // expected-error@+1 {{names stage 3, which no role of the program has}}
  coll.group @g stage 3 link <"shm", latency = 1000, bandwidth = 5000000000>
}

// -----

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
  // expected-error@+1 {{groups the replicas of stage 1, which has only one}}
  coll.group @g stage 1 link <"shm", latency = 1000, bandwidth = 5000000000>
}

// -----

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
    lane tie <"0TIE_SEND0_1 0TIE_RECV0_1">
  pipe.role 1 stages [1] actions <"1F0 1B0 1F1 1B1">
    lane compute <"1F0 1B0 1F1 1B1 1TIE_SUM0 1UPDATE">
    lane recv_act <"1RECV_F0 1RECV_F1">
    lane send_grad <"1SEND_B0 1SEND_B1">
    lane tie <"1TIE_RECV0_0 1TIE_SEND0_0">
  // expected-error@+1 {{belongs to stage 0, which reduces nothing}}
  coll.group @g stage 0 link <"shm", latency = 1000, bandwidth = 5000000000>
}

// -----

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
  // expected-error@+1 {{latency of link class 'shm' must not be negative, got -1 ns}}
  coll.group @g stage 0 link <"shm", latency = -1, bandwidth = 1>
}

// -----

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
  // expected-error@+1 {{ties 'w' on 1 role and has a link}}
  coll.tie @t param "w" stages [0] link <"shm", latency = 1000, bandwidth = 5000000000>
}

// -----

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
  // expected-error@+1 {{ties 'w' on no stage}}
  coll.tie @t param "w" stages [] link <"shm", latency = 1000, bandwidth = 5000000000>
}

// -----

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
  // expected-error@+1 {{ties 'w' on 2 roles and has no link}}
  coll.tie @t param "w" stages [0, 1]
}

// -----

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
  // expected-error@+1 {{names stage 0 after stage 1; stages ascend}}
  coll.tie @t param "w" stages [1, 0] link <"shm", latency = 1000, bandwidth = 5000000000>
}

// -----

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
  // expected-error@+1 {{names stage 0 after stage 0; stages ascend}}
  coll.tie @t param "w" stages [0, 0] link <"shm", latency = 1000, bandwidth = 5000000000>
}

// -----

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
  // expected-error@+1 {{names stage 2 of 2}}
  coll.tie @t param "w" stages [0, 2] link <"shm", latency = 1000, bandwidth = 5000000000>
}

// -----

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
  // expected-error@+1 {{names stage -1 of 2}}
  coll.tie @t param "w" stages [-1, 1] link <"shm", latency = 1000, bandwidth = 5000000000>
}

// -----

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
  // expected-note@+1 {{see existing symbol definition here}}
  coll.group @c stage 0 link <"shm", latency = 1000, bandwidth = 5000000000>
  // expected-error@+1 {{redefinition of symbol named 'c'}}
  coll.tie @c param "w" stages [0, 1] link <"shm", latency = 1000, bandwidth = 5000000000>
}
