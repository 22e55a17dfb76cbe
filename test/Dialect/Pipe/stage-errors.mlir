// RUN: takt-opt %s -split-input-file -verify-diagnostics

pipe.program @job of @net on @host schedule "1f1b"
    objective_ns 2 bound_ns 1 method "exact" {
  // expected-error@+1 {{0 has no layers: [1, 1)}}
  pipe.stage 0 layers [1, 1) "fc" to "fc" segments [0, 1)
    replicas 1 devices [0] memory_bytes 0 in_flight 1
    forward_ns 0 backward_ns 0 transfer_ns 0 all_reduce_ns 0
}

// -----

pipe.program @job of @net on @host schedule "1f1b"
    objective_ns 2 bound_ns 1 method "exact" {
  // expected-error@+1 {{0 has no layers: [-1, 1)}}
  pipe.stage 0 layers [-1, 1) "fc" to "fc" segments [0, 1)
    replicas 1 devices [0] memory_bytes 0 in_flight 1
    forward_ns 0 backward_ns 0 transfer_ns 0 all_reduce_ns 0
}

// -----

pipe.program @job of @net on @host schedule "1f1b"
    objective_ns 2 bound_ns 1 method "exact" {
  // expected-error@+1 {{0 has no segments: [2, 1)}}
  pipe.stage 0 layers [0, 1) "fc" to "fc" segments [2, 1)
    replicas 1 devices [0] memory_bytes 0 in_flight 1
    forward_ns 0 backward_ns 0 transfer_ns 0 all_reduce_ns 0
}

// -----

pipe.program @job of @net on @host schedule "1f1b"
    objective_ns 2 bound_ns 1 method "exact" {
  // expected-error@+1 {{0 needs at least 1 replica, got 0}}
  pipe.stage 0 layers [0, 1) "fc" to "fc" segments [0, 1)
    replicas 0 devices [] memory_bytes 0 in_flight 1
    forward_ns 0 backward_ns 0 transfer_ns 0 all_reduce_ns 0
}

// -----

pipe.program @job of @net on @host schedule "1f1b"
    objective_ns 2 bound_ns 1 method "exact" {
  // expected-error@+1 {{0 has 2 replicas on 1 devices}}
  pipe.stage 0 layers [0, 1) "fc" to "fc" segments [0, 1)
    replicas 2 devices [0] memory_bytes 0 in_flight 1
    forward_ns 0 backward_ns 0 transfer_ns 0 all_reduce_ns 0
}

// -----

pipe.program @job of @net on @host schedule "1f1b"
    objective_ns 2 bound_ns 1 method "exact" {
  // expected-error@+1 {{0 has a negative forward_ns: -7}}
  pipe.stage 0 layers [0, 1) "fc" to "fc" segments [0, 1)
    replicas 1 devices [0] memory_bytes 0 in_flight 1
    forward_ns -7 backward_ns 0 transfer_ns 0 all_reduce_ns 0
}

// -----

pipe.program @job of @net on @host schedule "1f1b"
    objective_ns 2 bound_ns 1 method "exact" {
  // expected-error@+1 {{0 has a negative backward_ns: -7}}
  pipe.stage 0 layers [0, 1) "fc" to "fc" segments [0, 1)
    replicas 1 devices [0] memory_bytes 0 in_flight 1
    forward_ns 0 backward_ns -7 transfer_ns 0 all_reduce_ns 0
}

// -----

pipe.program @job of @net on @host schedule "1f1b"
    objective_ns 2 bound_ns 1 method "exact" {
  // expected-error@+1 {{0 has a negative transfer_ns: -7}}
  pipe.stage 0 layers [0, 1) "fc" to "fc" segments [0, 1)
    replicas 1 devices [0] memory_bytes 0 in_flight 1
    forward_ns 0 backward_ns 0 transfer_ns -7 all_reduce_ns 0
}

// -----

pipe.program @job of @net on @host schedule "1f1b"
    objective_ns 2 bound_ns 1 method "exact" {
  // expected-error@+1 {{0 has a negative all_reduce_ns: -7}}
  pipe.stage 0 layers [0, 1) "fc" to "fc" segments [0, 1)
    replicas 1 devices [0] memory_bytes 0 in_flight 1
    forward_ns 0 backward_ns 0 transfer_ns 0 all_reduce_ns -7
}

// -----

pipe.program @job of @net on @host schedule "1f1b"
    objective_ns 2 bound_ns 1 method "exact" {
  // expected-error@+1 {{0 has a negative memory_bytes: -7}}
  pipe.stage 0 layers [0, 1) "fc" to "fc" segments [0, 1)
    replicas 1 devices [0] memory_bytes -7 in_flight 1
    forward_ns 0 backward_ns 0 transfer_ns 0 all_reduce_ns 0
}

// -----

pipe.program @job of @net on @host schedule "1f1b"
    objective_ns 2 bound_ns 1 method "exact" {
  // expected-error@+1 {{0 must hold at least 1 micro-batch, got in_flight 0}}
  pipe.stage 0 layers [0, 1) "fc" to "fc" segments [0, 1)
    replicas 1 devices [0] memory_bytes 0 in_flight 0
    forward_ns 0 backward_ns 0 transfer_ns 0 all_reduce_ns 0
}

// -----

// expected-error@+1 {{expects parent op 'pipe.program'}}
pipe.stage 0 layers [0, 1) "fc" to "fc" segments [0, 1)
    replicas 1 devices [0] memory_bytes 0 in_flight 2
    forward_ns 0 backward_ns 0 transfer_ns 0 all_reduce_ns 0

// -----

pipe.program @job of @net on @host schedule "1f1b"
    objective_ns 2 bound_ns 1 method "exact" {
  // expected-error@+1 {{expected ')'}}
  pipe.stage 0 layers [0, 1] "fc" to "fc" segments [0, 1)
    replicas 1 devices [0] memory_bytes 0 in_flight 1
    forward_ns 0 backward_ns 0 transfer_ns 0 all_reduce_ns 0
}

// -----

pipe.program @job of @net on @host schedule "1f1b"
    objective_ns 2 bound_ns 1 method "exact" {
  // expected-error@+2 {{a range of devices has 1 to 1048576 of them, got 0}}
  pipe.stage 0 layers [0, 1) "fc" to "fc" segments [0, 1)
    replicas 1 devices [4, 4) memory_bytes 0 in_flight 1
    forward_ns 0 backward_ns 0 transfer_ns 0 all_reduce_ns 0
}

// -----

pipe.program @job of @net on @host schedule "1f1b"
    objective_ns 2 bound_ns 1 method "exact" {
  // expected-error@+2 {{a range of devices has 1 to 1048576 of them, got 2000000000}}
  pipe.stage 0 layers [0, 1) "fc" to "fc" segments [0, 1)
    replicas 1 devices [0, 2000000000) memory_bytes 0 in_flight 1
    forward_ns 0 backward_ns 0 transfer_ns 0 all_reduce_ns 0
}

// -----

pipe.program @job of @net on @host schedule "1f1b"
    objective_ns 2 bound_ns 1 method "exact" {
  // expected-error@+2 {{expected ']'}}
  pipe.stage 0 layers [0, 1) "fc" to "fc" segments [0, 1)
    replicas 1 devices [0, 1, 2) memory_bytes 0 in_flight 1
    forward_ns 0 backward_ns 0 transfer_ns 0 all_reduce_ns 0
}

// -----

pipe.program @job of @net on @host schedule "1f1b"
    objective_ns 2 bound_ns 1 method "exact" {
  // expected-error@+2 {{expected integer value}}
  pipe.stage 0 layers [0, 1) "fc" to "fc" segments [0, 1)
    replicas 1 devices [a] memory_bytes 0 in_flight 1
    forward_ns 0 backward_ns 0 transfer_ns 0 all_reduce_ns 0
}
