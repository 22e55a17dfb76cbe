// RUN: takt-opt %s -takt-insert-comms -split-input-file -verify-diagnostics

// expected-error@+1 {{the module has no stages ('pipe.program')}}
module {
}

// -----

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

// expected-error@+1 {{has no schedule; run takt-schedule first}}
pipe.program @job of @net on @two schedule "1f1b"
    objective_ns 2 bound_ns 1 method "exact" {
  pipe.stage 0 layers [0, 5) "tok" to "loss" segments [0, 5)
    replicas 1 devices [0] memory_bytes 0 in_flight 2
    forward_ns 0 backward_ns 0 transfer_ns 0 all_reduce_ns 0
}

// -----

// expected-error@+1 {{the layers of model 'net' have no costs}}
model.graph @net(%x: tensor<8xf32> <"x">, %y: tensor<i32> <"y", classes = 8>)
    training <global_batch = 8, micro_batches = 2> data synthetic {
  model.param @tok.weight : tensor<8x8xf32> init <normal, 0.02>
  model.param @fc.weight : tensor<16x8xf32> init <normal, 0.02>
  model.param @out.weight : tensor<8x16xf32> init <normal, 0.02>
  %tok = model.linear "tok" %x weight @tok.weight : tensor<8xf32> -> tensor<8xf32>
  %fc = model.linear "fc" %tok weight @fc.weight : tensor<8xf32> -> tensor<16xf32>
  %out = model.linear "out" %fc weight @out.weight : tensor<16xf32> -> tensor<8xf32>
  %head = model.linear "head" %out weight @tok.weight : tensor<8xf32> -> tensor<8xf32>
  %loss = model.cross_entropy "loss" %head, %y : tensor<8xf32>, tensor<i32>
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
  pipe.stage 0 layers [0, 5) "tok" to "loss" segments [0, 5)
    replicas 1 devices [0] memory_bytes 0 in_flight 2
    forward_ns 0 backward_ns 0 transfer_ns 0 all_reduce_ns 0
  pipe.role 0 stages [0] actions <"0F0 0B0 0F1 0B1">
}

// -----

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
  pipe.stage 0 layers [0, 5) "tok" to "loss" segments [0, 5)
    replicas 1 devices [0] memory_bytes 0 in_flight 2
    forward_ns 0 backward_ns 0 transfer_ns 0 all_reduce_ns 0
  // expected-error@+1 {{role 0 has communication already}}
  pipe.role 0 stages [0] actions <"0F0 0B0 0F1 0B1">
    lane compute <"0F0 0B0 0F1 0B1 0UPDATE">
}

// -----

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
  pipe.stage 0 layers [0, 3) "tok" to "out" segments [0, 3)
    replicas 1 devices [0] memory_bytes 0 in_flight 2
    forward_ns 0 backward_ns 0 transfer_ns 0 all_reduce_ns 0
  pipe.stage 1 layers [3, 5) "head" to "loss" segments [3, 5)
    replicas 1 devices [1] memory_bytes 0 in_flight 1
    forward_ns 0 backward_ns 0 transfer_ns 0 all_reduce_ns 0
  // expected-error@+1 {{0 has stages 0 and 1, which have different devices}}
  pipe.role 0 stages [0, 1] actions <"">
}

// -----

// Costs are for the divisors of the micro-batch size.
// expected-error@+1 {{stage 0 has 3 replicas, for which the layers have no costs}}
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
  pipe.stage 0 layers [0, 5) "tok" to "loss" segments [0, 5)
    replicas 3 devices [0, 1, 2] memory_bytes 0 in_flight 2
    forward_ns 0 backward_ns 0 transfer_ns 0 all_reduce_ns 0
  pipe.role 0 stages [0] actions <"0F0 0B0 0F1 0B1">
}
