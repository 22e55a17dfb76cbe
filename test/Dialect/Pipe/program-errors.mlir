// RUN: takt-opt %s -split-input-file -verify-diagnostics

// expected-error@+1 {{needs 0 <= bound_ns <= objective_ns, got 3 and 2}}
pipe.program @job of @net on @host schedule "1f1b"
    objective_ns 2 bound_ns 3 method "exact" {
  pipe.stage 0 layers [0, 3) "fc" to "loss" segments [0, 3)
    replicas 1 devices [0] memory_bytes 0 in_flight 2
    forward_ns 0 backward_ns 0 transfer_ns 0 all_reduce_ns 0
}

// -----

// expected-error@+1 {{needs 0 <= bound_ns <= objective_ns, got -1 and 2}}
pipe.program @job of @net on @host schedule "1f1b"
    objective_ns 2 bound_ns -1 method "exact" {
  pipe.stage 0 layers [0, 3) "fc" to "loss" segments [0, 3)
    replicas 1 devices [0] memory_bytes 0 in_flight 2
    forward_ns 0 backward_ns 0 transfer_ns 0 all_reduce_ns 0
}

// -----

// expected-error@+1 {{has no stages}}
pipe.program @job of @net on @host schedule "1f1b"
    objective_ns 2 bound_ns 1 method "exact" {
}

// -----

pipe.program @job of @net on @host schedule "1f1b"
    objective_ns 2 bound_ns 1 method "exact" {
  pipe.stage 0 layers [0, 3) "fc" to "loss" segments [0, 3)
    replicas 1 devices [0] memory_bytes 0 in_flight 2
    forward_ns 0 backward_ns 0 transfer_ns 0 all_reduce_ns 0
  // expected-error@+1 {{has no place in a 'pipe.program'}}
  pipe.cluster @inner {
    #pipe.device<"d", flops = 1, memory_bandwidth = 1>
    #pipe.nodes<device = "d">
  }
}

// -----

pipe.program @job of @net on @host schedule "1f1b"
    objective_ns 2 bound_ns 1 method "exact" {
  // expected-error@+1 {{1 stands where stage 0 is expected}}
  pipe.stage 1 layers [1, 3) "head" to "loss" segments [1, 3)
    replicas 1 devices [1] memory_bytes 0 in_flight 1
    forward_ns 0 backward_ns 0 transfer_ns 0 all_reduce_ns 0
}

// -----

pipe.program @job of @net on @host schedule "1f1b"
    objective_ns 2 bound_ns 1 method "exact" {
  pipe.stage 0 layers [0, 1) "fc" to "fc" segments [0, 1)
    replicas 1 devices [0] memory_bytes 0 in_flight 2
    forward_ns 0 backward_ns 0 transfer_ns 0 all_reduce_ns 0
  // expected-error@+1 {{1 begins with layer 2, expected 1}}
  pipe.stage 1 layers [2, 3) "loss" to "loss" segments [1, 2)
    replicas 1 devices [1] memory_bytes 0 in_flight 1
    forward_ns 0 backward_ns 0 transfer_ns 0 all_reduce_ns 0
}

// -----

pipe.program @job of @net on @host schedule "1f1b"
    objective_ns 2 bound_ns 1 method "exact" {
  pipe.stage 0 layers [0, 1) "fc" to "fc" segments [0, 1)
    replicas 1 devices [0] memory_bytes 0 in_flight 2
    forward_ns 0 backward_ns 0 transfer_ns 0 all_reduce_ns 0
  // expected-error@+1 {{1 begins with layer 0, expected 1}}
  pipe.stage 1 layers [0, 3) "fc" to "loss" segments [1, 2)
    replicas 1 devices [1] memory_bytes 0 in_flight 1
    forward_ns 0 backward_ns 0 transfer_ns 0 all_reduce_ns 0
}

// -----

pipe.program @job of @net on @host schedule "1f1b"
    objective_ns 2 bound_ns 1 method "exact" {
  pipe.stage 0 layers [0, 1) "fc" to "fc" segments [0, 1)
    replicas 1 devices [0] memory_bytes 0 in_flight 2
    forward_ns 0 backward_ns 0 transfer_ns 0 all_reduce_ns 0
  // expected-error@+1 {{1 begins with segment 2, expected 1}}
  pipe.stage 1 layers [1, 3) "head" to "loss" segments [2, 3)
    replicas 1 devices [1] memory_bytes 0 in_flight 1
    forward_ns 0 backward_ns 0 transfer_ns 0 all_reduce_ns 0
}

// -----

pipe.program @job of @net on @host schedule "1f1b"
    objective_ns 2 bound_ns 1 method "exact" {
  pipe.stage 0 layers [0, 1) "fc" to "fc" segments [0, 1)
    replicas 2 devices [0, 1] memory_bytes 0 in_flight 2
    forward_ns 0 backward_ns 0 transfer_ns 0 all_reduce_ns 0
  // expected-error@+1 {{1 runs on device 1, which stage 0 has already; stages share all their devices or none}}
  pipe.stage 1 layers [1, 3) "head" to "loss" segments [1, 3)
    replicas 1 devices [1] memory_bytes 0 in_flight 1
    forward_ns 0 backward_ns 0 transfer_ns 0 all_reduce_ns 0
}

// -----

pipe.program @job of @net on @host schedule "1f1b"
    objective_ns 2 bound_ns 1 method "exact" {
  // expected-error@+1 {{0 runs on device 2, which stage 0 has already; stages share all their devices or none}}
  pipe.stage 0 layers [0, 3) "fc" to "loss" segments [0, 3)
    replicas 2 devices [2, 2] memory_bytes 0 in_flight 1
    forward_ns 0 backward_ns 0 transfer_ns 0 all_reduce_ns 0
}

// -----

pipe.program @job of @net on @host schedule "1f1b"
    objective_ns 2 bound_ns 1 method "exact" {
  pipe.stage 0 layers [0, 1) "fc" to "fc" segments [0, 1)
    replicas 1 devices [0] memory_bytes 0 in_flight 2
    forward_ns 0 backward_ns 0 transfer_ns 0 all_reduce_ns 0
  pipe.stage 1 layers [1, 3) "head" to "loss" segments [1, 3)
    replicas 1 devices [1] memory_bytes 0 in_flight 1
    forward_ns 0 backward_ns 0 transfer_ns 0 all_reduce_ns 0
  // expected-error@+1 {{1 stands where role 0 is expected}}
  pipe.role 1 stages [1] actions <"">
}

// -----

pipe.program @job of @net on @host schedule "1f1b"
    objective_ns 2 bound_ns 1 method "exact" {
  pipe.stage 0 layers [0, 1) "fc" to "fc" segments [0, 1)
    replicas 1 devices [0] memory_bytes 0 in_flight 2
    forward_ns 0 backward_ns 0 transfer_ns 0 all_reduce_ns 0
  pipe.stage 1 layers [1, 3) "head" to "loss" segments [1, 3)
    replicas 1 devices [1] memory_bytes 0 in_flight 1
    forward_ns 0 backward_ns 0 transfer_ns 0 all_reduce_ns 0
  // expected-error@+1 {{0 names stage 5 of 2}}
  pipe.role 0 stages [5] actions <"">
}

// -----

pipe.program @job of @net on @host schedule "1f1b"
    objective_ns 2 bound_ns 1 method "exact" {
  pipe.stage 0 layers [0, 1) "fc" to "fc" segments [0, 1)
    replicas 1 devices [0] memory_bytes 0 in_flight 2
    forward_ns 0 backward_ns 0 transfer_ns 0 all_reduce_ns 0
  pipe.stage 1 layers [1, 3) "head" to "loss" segments [1, 3)
    replicas 1 devices [1] memory_bytes 0 in_flight 1
    forward_ns 0 backward_ns 0 transfer_ns 0 all_reduce_ns 0
  pipe.role 0 stages [0] actions <"">
  // expected-error@+1 {{1 names stage 0, which belongs to role 0}}
  pipe.role 1 stages [0, 1] actions <"">
}

// -----

pipe.program @job of @net on @host schedule "1f1b"
    objective_ns 2 bound_ns 1 method "exact" {
  pipe.stage 0 layers [0, 1) "fc" to "fc" segments [0, 1)
    replicas 1 devices [0] memory_bytes 0 in_flight 2
    forward_ns 0 backward_ns 0 transfer_ns 0 all_reduce_ns 0
  // expected-error@+1 {{1 belongs to no role}}
  pipe.stage 1 layers [1, 3) "head" to "loss" segments [1, 3)
    replicas 1 devices [1] memory_bytes 0 in_flight 1
    forward_ns 0 backward_ns 0 transfer_ns 0 all_reduce_ns 0
  pipe.role 0 stages [0] actions <"">
}

// -----

pipe.program @job of @net on @host schedule "1f1b"
    objective_ns 2 bound_ns 1 method "exact" {
  // expected-note@+1 {{in_flight is stated here}}
  pipe.stage 0 layers [0, 3) "fc" to "loss" segments [0, 3)
    replicas 1 devices [0] memory_bytes 0 in_flight 2
    forward_ns 0 backward_ns 0 transfer_ns 0 all_reduce_ns 0
  // expected-error@+1 {{0 holds 3 micro-batches of stage 0 at once, its memory is for 2}}
  pipe.role 0 stages [0] actions <"0F0 0F1 0F2 0B0 0B1 0B2">
}

// -----

model.graph @net(%x: tensor<8xf32> <"x">, %y: tensor<i32> <"y", classes = 4>)
    training <global_batch = 16, micro_batches = 4> data synthetic {
  model.param @fc.weight : tensor<8x8xf32> init <normal, 0.02>
  model.param @head.weight : tensor<4x8xf32> init <normal, 0.02>
  %fc = model.linear "fc" %x weight @fc.weight : tensor<8xf32> -> tensor<8xf32>
  %head = model.linear "head" %fc weight @head.weight : tensor<8xf32> -> tensor<4xf32>
  %loss = model.cross_entropy "loss" %head, %y : tensor<4xf32>, tensor<i32>
  model.output %loss : tensor<f32>
}

// expected-error@+1 {{runs on 'host', which is no cluster of the module}}
pipe.program @job of @net on @host schedule "1f1b"
    objective_ns 2 bound_ns 1 method "exact" {
  pipe.stage 0 layers [0, 3) "fc" to "loss" segments [0, 3)
    replicas 1 devices [0] memory_bytes 0 in_flight 2
    forward_ns 0 backward_ns 0 transfer_ns 0 all_reduce_ns 0
}

// -----

pipe.cluster @host {
  #pipe.device<"cpu", flops = 1000000000, memory_bandwidth = 10000000000>
  #pipe.link<"shm", latency = 1000, bandwidth = 5000000000>
  #pipe.nodes<device = "cpu", devices = 4, link = "shm">
}

// expected-error@+1 {{is of 'net', which is no graph of the module}}
pipe.program @job of @net on @host schedule "1f1b"
    objective_ns 2 bound_ns 1 method "exact" {
  pipe.stage 0 layers [0, 3) "fc" to "loss" segments [0, 3)
    replicas 1 devices [0] memory_bytes 0 in_flight 2
    forward_ns 0 backward_ns 0 transfer_ns 0 all_reduce_ns 0
}

// -----

model.graph @net(%x: tensor<8xf32> <"x">, %y: tensor<i32> <"y", classes = 4>)
    training <global_batch = 16, micro_batches = 4> data synthetic {
  model.param @fc.weight : tensor<8x8xf32> init <normal, 0.02>
  model.param @head.weight : tensor<4x8xf32> init <normal, 0.02>
  %fc = model.linear "fc" %x weight @fc.weight : tensor<8xf32> -> tensor<8xf32>
  %head = model.linear "head" %fc weight @head.weight : tensor<8xf32> -> tensor<4xf32>
  %loss = model.cross_entropy "loss" %head, %y : tensor<4xf32>, tensor<i32>
  model.output %loss : tensor<f32>
}

// expected-error@+1 {{runs on 'net', which is no cluster of the module}}
pipe.program @job of @net on @net schedule "1f1b"
    objective_ns 2 bound_ns 1 method "exact" {
  pipe.stage 0 layers [0, 3) "fc" to "loss" segments [0, 3)
    replicas 1 devices [0] memory_bytes 0 in_flight 2
    forward_ns 0 backward_ns 0 transfer_ns 0 all_reduce_ns 0
}

// -----

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
    objective_ns 2 bound_ns 1 method "exact" {
  // expected-error@+1 {{0 runs on device 4, cluster 'host' has 4}}
  pipe.stage 0 layers [0, 3) "fc" to "loss" segments [0, 3)
    replicas 1 devices [4] memory_bytes 0 in_flight 1
    forward_ns 0 backward_ns 0 transfer_ns 0 all_reduce_ns 0
}

// -----

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
    objective_ns 2 bound_ns 1 method "exact" {
  // expected-error@+1 {{0 runs on device -1, cluster 'host' has 4}}
  pipe.stage 0 layers [0, 3) "fc" to "loss" segments [0, 3)
    replicas 1 devices [-1] memory_bytes 0 in_flight 1
    forward_ns 0 backward_ns 0 transfer_ns 0 all_reduce_ns 0
}

// -----

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
    objective_ns 2 bound_ns 1 method "exact" {
  // expected-error@+1 {{0 ends at layer 4, model 'net' has 3}}
  pipe.stage 0 layers [0, 4) "fc" to "loss" segments [0, 3)
    replicas 1 devices [0] memory_bytes 0 in_flight 1
    forward_ns 0 backward_ns 0 transfer_ns 0 all_reduce_ns 0
}

// -----

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

// expected-error@+1 {{ends at layer 1, model 'net' has 3}}
pipe.program @job of @net on @host schedule "1f1b"
    objective_ns 2 bound_ns 1 method "exact" {
  pipe.stage 0 layers [0, 1) "fc" to "fc" segments [0, 1)
    replicas 1 devices [0] memory_bytes 0 in_flight 2
    forward_ns 0 backward_ns 0 transfer_ns 0 all_reduce_ns 0
}

// -----

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
    objective_ns 2 bound_ns 1 method "exact" {
  // expected-error@+1 {{0 calls layer 0 'conv', in model 'net' it is 'fc'}}
  pipe.stage 0 layers [0, 3) "conv" to "loss" segments [0, 3)
    replicas 1 devices [0] memory_bytes 0 in_flight 1
    forward_ns 0 backward_ns 0 transfer_ns 0 all_reduce_ns 0
}

// -----

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
    objective_ns 2 bound_ns 1 method "exact" {
  // expected-error@+1 {{0 calls layer 2 'head', in model 'net' it is 'loss'}}
  pipe.stage 0 layers [0, 3) "fc" to "head" segments [0, 3)
    replicas 1 devices [0] memory_bytes 0 in_flight 1
    forward_ns 0 backward_ns 0 transfer_ns 0 all_reduce_ns 0
}

// -----

pipe.program @job of @net on @host schedule "1f1b"
    objective_ns 2 bound_ns 1 method "exact" {
  pipe.stage 0 layers [0, 1) "fc" to "fc" segments [0, 1)
    replicas 1 devices [0] memory_bytes 0 in_flight 2
    forward_ns 0 backward_ns 0 transfer_ns 0 all_reduce_ns 0
  pipe.stage 1 layers [1, 3) "head" to "loss" segments [1, 3)
    replicas 1 devices [1] memory_bytes 0 in_flight 1
    forward_ns 0 backward_ns 0 transfer_ns 0 all_reduce_ns 0
  // expected-error@+1 {{0 has stages 0 and 1, which have different devices}}
  pipe.role 0 stages [0, 1] actions <"">
}

// -----

pipe.program @job of @net on @host schedule "1f1b"
    objective_ns 2 bound_ns 1 method "exact" {
  pipe.stage 0 layers [0, 1) "fc" to "fc" segments [0, 1)
    replicas 1 devices [0] memory_bytes 0 in_flight 2
    forward_ns 0 backward_ns 0 transfer_ns 0 all_reduce_ns 0
  // expected-error@+1 {{1 has the devices of stage 0, but another role}}
  pipe.stage 1 layers [1, 3) "head" to "loss" segments [1, 3)
    replicas 1 devices [0] memory_bytes 0 in_flight 1
    forward_ns 0 backward_ns 0 transfer_ns 0 all_reduce_ns 0
  pipe.role 0 stages [0] actions <"">
  pipe.role 1 stages [1] actions <"">
}
