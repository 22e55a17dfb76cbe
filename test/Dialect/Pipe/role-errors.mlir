// RUN: takt-opt %s -split-input-file -verify-diagnostics

pipe.program @job of @net on @host schedule "1f1b"
    objective_ns 2 bound_ns 1 method "exact" {
  pipe.stage 0 layers [0, 3) "fc" to "loss" segments [0, 3)
    replicas 1 devices [0] memory_bytes 0 in_flight 2
    forward_ns 0 backward_ns 0 transfer_ns 0 all_reduce_ns 0
  // expected-error@+1 {{0 names stage 0 twice}}
  pipe.role 0 stages [0, 0] actions <"">
}

// -----

pipe.program @job of @net on @host schedule "1f1b"
    objective_ns 2 bound_ns 1 method "exact" {
  pipe.stage 0 layers [0, 3) "fc" to "loss" segments [0, 3)
    replicas 1 devices [0] memory_bytes 0 in_flight 2
    forward_ns 0 backward_ns 0 transfer_ns 0 all_reduce_ns 0
  // expected-error@+1 {{0 has no stage}}
  pipe.role 0 stages [] actions <"">
}

// -----

pipe.program @job of @net on @host schedule "1f1b"
    objective_ns 2 bound_ns 1 method "exact" {
  pipe.stage 0 layers [0, 3) "fc" to "loss" segments [0, 3)
    replicas 1 devices [0] memory_bytes 0 in_flight 2
    forward_ns 0 backward_ns 0 transfer_ns 0 all_reduce_ns 0
  // expected-error@+1 {{0 has action '1F0' of a stage that is not its own}}
  pipe.role 0 stages [0] actions <"0F0 1F0">
}

// -----

pipe.program @job of @net on @host schedule "1f1b"
    objective_ns 2 bound_ns 1 method "exact" {
  pipe.stage 0 layers [0, 3) "fc" to "loss" segments [0, 3)
    replicas 1 devices [0] memory_bytes 0 in_flight 2
    forward_ns 0 backward_ns 0 transfer_ns 0 all_reduce_ns 0
  // expected-error@+1 {{0 has action '0UPDATE' among its compute actions; it needs a lane}}
  pipe.role 0 stages [0] actions <"0F0 0UPDATE">
}

// -----

pipe.program @job of @net on @host schedule "1f1b"
    objective_ns 2 bound_ns 1 method "exact" {
  pipe.stage 0 layers [0, 3) "fc" to "loss" segments [0, 3)
    replicas 1 devices [0] memory_bytes 0 in_flight 2
    forward_ns 0 backward_ns 0 transfer_ns 0 all_reduce_ns 0
  // expected-error@+1 {{'0X0' is not an action}}
  pipe.role 0 stages [0] actions <"0F0 0X0 0B0">
}

// -----

pipe.program @job of @net on @host schedule "1f1b"
    objective_ns 2 bound_ns 1 method "exact" {
  pipe.stage 0 layers [0, 3) "fc" to "loss" segments [0, 3)
    replicas 1 devices [0] memory_bytes 0 in_flight 2
    forward_ns 0 backward_ns 0 transfer_ns 0 all_reduce_ns 0
  // expected-error@+1 {{'0F99999999999' is not an action}}
  pipe.role 0 stages [0] actions <"0F99999999999">
}

// -----

pipe.program @job of @net on @host schedule "1f1b"
    objective_ns 2 bound_ns 1 method "exact" {
  pipe.stage 0 layers [0, 3) "fc" to "loss" segments [0, 3)
    replicas 1 devices [0] memory_bytes 0 in_flight 2
    forward_ns 0 backward_ns 0 transfer_ns 0 all_reduce_ns 0
  // expected-error@+2 {{'0TIE_SEND0' is not an action}}
  pipe.role 0 stages [0] actions <"">
    lane tie <"0TIE_SEND0">
}

// -----

pipe.program @job of @net on @host schedule "1f1b"
    objective_ns 2 bound_ns 1 method "exact" {
  pipe.stage 0 layers [0, 3) "fc" to "loss" segments [0, 3)
    replicas 1 devices [0] memory_bytes 0 in_flight 2
    forward_ns 0 backward_ns 0 transfer_ns 0 all_reduce_ns 0
  // expected-error@+1 {{0 has two lanes 'load'}}
  pipe.role 0 stages [0] actions <"">
    lane load <"0LOAD0">
    lane load <"0LOAD1">
}

// -----

pipe.program @job of @net on @host schedule "1f1b"
    objective_ns 2 bound_ns 1 method "exact" {
  pipe.stage 0 layers [0, 3) "fc" to "loss" segments [0, 3)
    replicas 1 devices [0] memory_bytes 0 in_flight 2
    forward_ns 0 backward_ns 0 transfer_ns 0 all_reduce_ns 0
  // expected-error@+1 {{0 has action '2LOAD0' of a stage that is not its own}}
  pipe.role 0 stages [0] actions <"">
    lane load <"2LOAD0">
}

// -----

pipe.program @job of @net on @host schedule "1f1b"
    objective_ns 2 bound_ns 1 method "exact" {
  pipe.stage 0 layers [0, 3) "fc" to "loss" segments [0, 3)
    replicas 1 devices [0] memory_bytes 0 in_flight 2
    forward_ns 0 backward_ns 0 transfer_ns 0 all_reduce_ns 0
  // expected-error@+1 {{0 has action '0LOAD0' on lane 'compute'; its place is lane 'load'}}
  pipe.role 0 stages [0] actions <"">
    lane compute <"0LOAD0">
}

// -----

pipe.program @job of @net on @host schedule "1f1b"
    objective_ns 2 bound_ns 1 method "exact" {
  pipe.stage 0 layers [0, 3) "fc" to "loss" segments [0, 3)
    replicas 1 devices [0] memory_bytes 0 in_flight 2
    forward_ns 0 backward_ns 0 transfer_ns 0 all_reduce_ns 0
  // expected-error@+1 {{0 has action '0SEND_F0' on lane 'recv_act'; its place is lane 'send_act'}}
  pipe.role 0 stages [0] actions <"">
    lane recv_act <"0SEND_F0">
}

// -----

pipe.program @job of @net on @host schedule "1f1b"
    objective_ns 2 bound_ns 1 method "exact" {
  pipe.stage 0 layers [0, 3) "fc" to "loss" segments [0, 3)
    replicas 1 devices [0] memory_bytes 0 in_flight 2
    forward_ns 0 backward_ns 0 transfer_ns 0 all_reduce_ns 0
  // expected-error@+1 {{0 has action '0RECV_F0' on lane 'send_act'; its place is lane 'recv_act'}}
  pipe.role 0 stages [0] actions <"">
    lane send_act <"0RECV_F0">
}

// -----

pipe.program @job of @net on @host schedule "1f1b"
    objective_ns 2 bound_ns 1 method "exact" {
  pipe.stage 0 layers [0, 3) "fc" to "loss" segments [0, 3)
    replicas 1 devices [0] memory_bytes 0 in_flight 2
    forward_ns 0 backward_ns 0 transfer_ns 0 all_reduce_ns 0
  // expected-error@+1 {{0 has action '0SEND_B0' on lane 'recv_grad'; its place is lane 'send_grad'}}
  pipe.role 0 stages [0] actions <"">
    lane recv_grad <"0SEND_B0">
}

// -----

pipe.program @job of @net on @host schedule "1f1b"
    objective_ns 2 bound_ns 1 method "exact" {
  pipe.stage 0 layers [0, 3) "fc" to "loss" segments [0, 3)
    replicas 1 devices [0] memory_bytes 0 in_flight 2
    forward_ns 0 backward_ns 0 transfer_ns 0 all_reduce_ns 0
  // expected-error@+1 {{0 has action '0RECV_B0' on lane 'tie'; its place is lane 'recv_grad'}}
  pipe.role 0 stages [0] actions <"">
    lane tie <"0RECV_B0">
}

// -----

pipe.program @job of @net on @host schedule "1f1b"
    objective_ns 2 bound_ns 1 method "exact" {
  pipe.stage 0 layers [0, 3) "fc" to "loss" segments [0, 3)
    replicas 1 devices [0] memory_bytes 0 in_flight 2
    forward_ns 0 backward_ns 0 transfer_ns 0 all_reduce_ns 0
  // expected-error@+1 {{0 has action '0REDUCE_GRAD' on lane 'compute'; its place is lane 'reduce'}}
  pipe.role 0 stages [0] actions <"">
    lane compute <"0REDUCE_GRAD">
}

// -----

pipe.program @job of @net on @host schedule "1f1b"
    objective_ns 2 bound_ns 1 method "exact" {
  pipe.stage 0 layers [0, 3) "fc" to "loss" segments [0, 3)
    replicas 1 devices [0] memory_bytes 0 in_flight 2
    forward_ns 0 backward_ns 0 transfer_ns 0 all_reduce_ns 0
  // expected-error@+1 {{0 has action '0TIE_RECV0_1' on lane 'reduce'; its place is lane 'tie'}}
  pipe.role 0 stages [0] actions <"">
    lane reduce <"0TIE_RECV0_1">
}

// -----

pipe.program @job of @net on @host schedule "1f1b"
    objective_ns 2 bound_ns 1 method "exact" {
  pipe.stage 0 layers [0, 3) "fc" to "loss" segments [0, 3)
    replicas 1 devices [0] memory_bytes 0 in_flight 2
    forward_ns 0 backward_ns 0 transfer_ns 0 all_reduce_ns 0
  // expected-error@+1 {{0 has action '0TIE_SUM0' on lane 'tie'; its place is lane 'compute'}}
  pipe.role 0 stages [0] actions <"">
    lane tie <"0TIE_SUM0">
}

// -----

pipe.program @job of @net on @host schedule "1f1b"
    objective_ns 2 bound_ns 1 method "exact" {
  pipe.stage 0 layers [0, 3) "fc" to "loss" segments [0, 3)
    replicas 1 devices [0] memory_bytes 0 in_flight 2
    forward_ns 0 backward_ns 0 transfer_ns 0 all_reduce_ns 0
  // expected-error@+1 {{0 has '0WAIT_SEND_B0' on lane 'send_grad'; such a wait stands on lane 'reduce'}}
  pipe.role 0 stages [0] actions <"">
    lane send_grad <"0WAIT_SEND_B0 0SEND_B0">
}

// -----

pipe.program @job of @net on @host schedule "1f1b"
    objective_ns 2 bound_ns 1 method "exact" {
  pipe.stage 0 layers [0, 3) "fc" to "loss" segments [0, 3)
    replicas 1 devices [0] memory_bytes 0 in_flight 2
    forward_ns 0 backward_ns 0 transfer_ns 0 all_reduce_ns 0
  // expected-error@+1 {{0 has action '0UPDATE' on lane 'reduce'; its place is lane 'compute'}}
  pipe.role 0 stages [0] actions <"">
    lane reduce <"0UPDATE">
}

// -----

pipe.program @job of @net on @host schedule "1f1b"
    objective_ns 2 bound_ns 1 method "exact" {
  pipe.stage 0 layers [0, 3) "fc" to "loss" segments [0, 3)
    replicas 1 devices [0] memory_bytes 0 in_flight 2
    forward_ns 0 backward_ns 0 transfer_ns 0 all_reduce_ns 0
  // expected-error@+1 {{0 has a compute lane that differs from its actions}}
  pipe.role 0 stages [0] actions <"0F0 0B0 0F1 0B1">
    lane compute <"0F0 0F1 0B0 0B1 0UPDATE">
}

// -----

pipe.program @job of @net on @host schedule "1f1b"
    objective_ns 2 bound_ns 1 method "exact" {
  pipe.stage 0 layers [0, 3) "fc" to "loss" segments [0, 3)
    replicas 1 devices [0] memory_bytes 0 in_flight 2
    forward_ns 0 backward_ns 0 transfer_ns 0 all_reduce_ns 0
  // expected-error@+2 {{expected one of [compute, load, recv_act, send_act, recv_grad, send_grad, reduce, tie]}}
  pipe.role 0 stages [0] actions <"">
    lane fast <"">
}

// -----

pipe.program @job of @net on @host schedule "1f1b"
    objective_ns 2 bound_ns 1 method "exact" {
  pipe.stage 0 layers [0, 1) "fc" to "fc" segments [0, 1)
    replicas 1 devices [0] memory_bytes 0 in_flight 2
    forward_ns 0 backward_ns 0 transfer_ns 0 all_reduce_ns 0
  pipe.stage 1 layers [1, 3) "head" to "loss" segments [1, 3)
    replicas 1 devices [0] memory_bytes 0 in_flight 1
    forward_ns 0 backward_ns 0 transfer_ns 0 all_reduce_ns 0
  // expected-error@+1 {{0 names its stages out of order; they ascend}}
  pipe.role 0 stages [1, 0] actions <"">
}

// -----

pipe.program @job of @net on @host schedule "1f1b"
    objective_ns 2 bound_ns 1 method "exact" {
  pipe.stage 0 layers [0, 1) "fc" to "fc" segments [0, 1)
    replicas 1 devices [0] memory_bytes 0 in_flight 2
    forward_ns 0 backward_ns 0 transfer_ns 0 all_reduce_ns 0
  pipe.stage 1 layers [1, 3) "head" to "loss" segments [1, 3)
    replicas 1 devices [0] memory_bytes 0 in_flight 1
    forward_ns 0 backward_ns 0 transfer_ns 0 all_reduce_ns 0
  // expected-error@+1 {{0 has '0SEND_F0' and '1SEND_F0' on one lane; each stage has lanes of its own}}
  pipe.role 0 stages [0, 1] actions <"">
    lane send_act <"0SEND_F0 1SEND_F0">
}

// -----

pipe.program @job of @net on @host schedule "1f1b"
    objective_ns 2 bound_ns 1 method "exact" {
  pipe.stage 0 layers [0, 1) "fc" to "fc" segments [0, 1)
    replicas 1 devices [0] memory_bytes 0 in_flight 2
    forward_ns 0 backward_ns 0 transfer_ns 0 all_reduce_ns 0
  pipe.stage 1 layers [1, 3) "head" to "loss" segments [1, 3)
    replicas 1 devices [0] memory_bytes 0 in_flight 1
    forward_ns 0 backward_ns 0 transfer_ns 0 all_reduce_ns 0
  // expected-error@+1 {{0 has two lanes 'send_act' of stage 1}}
  pipe.role 0 stages [0, 1] actions <"">
    lane send_act <"0SEND_F0">
    lane send_act <"1SEND_F0">
    lane send_act <"1SEND_F1">
}
