// RUN: takt-opt %s -split-input-file -verify-diagnostics

model.graph @net(%x: tensor<8xf32> <"x">, %y: tensor<i32> <"y", classes = 8>)
    training <global_batch = 8, micro_batches = 2> data synthetic
    replica_options [1, 2] cost_source "roofline" {
  model.param @w0 : tensor<8x8xf32> init <normal, 0.02>
  model.param @w1 : tensor<8x8xf32> init <normal, 0.02>
  model.param @w2 : tensor<8x8xf32> init <normal, 0.02>
  %0 = model.linear "fc0" %x weight @w0 : tensor<8xf32> -> tensor<8xf32>
    cost <forward = [2000, 1000], input_grad = [0, 0], weight_grad = [4000, 2000], update = 50>
  %1 = model.linear "fc1" %0 weight @w1 : tensor<8xf32> -> tensor<8xf32>
    cost <forward = [2000, 1000], input_grad = [2000, 1000], weight_grad = [2000, 1000], update = 50>
  %2 = model.linear "fc2" %1 weight @w2 : tensor<8xf32> -> tensor<8xf32>
    cost <forward = [2000, 1000], input_grad = [2000, 1000], weight_grad = [2000, 1000], update = 50>
  %loss = model.cross_entropy "loss" %2, %y : tensor<8xf32>, tensor<i32>
    cost <forward = [0, 0], input_grad = [0, 0], weight_grad = [0, 0], update = 0>
  model.output %loss : tensor<f32>
}

pipe.cluster @two {
  #pipe.device<"cpu", flops = 1000000000, memory_bandwidth = 10000000000, memory = 65536>
  #pipe.link<"shm", latency = 100, bandwidth = 1000000000>
  #pipe.nodes<count = 1, device = "cpu", devices = 2, link = "shm">
}

pipe.program @job of @net on @two schedule "1f1b"
    objective_ns 2 bound_ns 1 method "exact" {
  pipe.stage 0 layers [0, 4) "fc0" to "loss" segments [0, 4)
    replicas 2 devices [0, 1] memory_bytes 0 in_flight 1
    forward_ns 0 backward_ns 0 transfer_ns 0 all_reduce_ns 0
  pipe.role 0 stages [0] actions <"0F0 0B0 0F1 0B1">
    lane compute <"0F0 0B0 0F1 0B1.0 0B1.1 0UPDATE">
    lane load <"0LOAD0 0LOAD1">
    lane reduce <"0REDUCE_GRAD0 0REDUCE_GRAD1">
  coll.group @dp0_0 stage 0 bucket 0 from layer 2 link <"shm", latency = 100, bandwidth = 1000000000>
  coll.group @dp0_1 stage 0 bucket 1 from layer 1 link <"shm", latency = 100, bandwidth = 1000000000>
// expected-error@+1 {{'coll.group' op is of gradient bucket 2, which stage 0 does not reduce}}
  coll.group @dp0_2 stage 0 bucket 2 from layer 0 link <"shm", latency = 100, bandwidth = 1000000000>
}

// -----

model.graph @net(%x: tensor<8xf32> <"x">, %y: tensor<i32> <"y", classes = 8>)
    training <global_batch = 8, micro_batches = 2> data synthetic
    replica_options [1, 2] cost_source "roofline" {
  model.param @w0 : tensor<8x8xf32> init <normal, 0.02>
  model.param @w1 : tensor<8x8xf32> init <normal, 0.02>
  model.param @w2 : tensor<8x8xf32> init <normal, 0.02>
  %0 = model.linear "fc0" %x weight @w0 : tensor<8xf32> -> tensor<8xf32>
    cost <forward = [2000, 1000], input_grad = [0, 0], weight_grad = [4000, 2000], update = 50>
  %1 = model.linear "fc1" %0 weight @w1 : tensor<8xf32> -> tensor<8xf32>
    cost <forward = [2000, 1000], input_grad = [2000, 1000], weight_grad = [2000, 1000], update = 50>
  %2 = model.linear "fc2" %1 weight @w2 : tensor<8xf32> -> tensor<8xf32>
    cost <forward = [2000, 1000], input_grad = [2000, 1000], weight_grad = [2000, 1000], update = 50>
  %loss = model.cross_entropy "loss" %2, %y : tensor<8xf32>, tensor<i32>
    cost <forward = [0, 0], input_grad = [0, 0], weight_grad = [0, 0], update = 0>
  model.output %loss : tensor<f32>
}

pipe.cluster @two {
  #pipe.device<"cpu", flops = 1000000000, memory_bandwidth = 10000000000, memory = 65536>
  #pipe.link<"shm", latency = 100, bandwidth = 1000000000>
  #pipe.nodes<count = 1, device = "cpu", devices = 2, link = "shm">
}

pipe.program @job of @net on @two schedule "1f1b"
    objective_ns 2 bound_ns 1 method "exact" {
  pipe.stage 0 layers [0, 4) "fc0" to "loss" segments [0, 4)
    replicas 2 devices [0, 1] memory_bytes 0 in_flight 1
    forward_ns 0 backward_ns 0 transfer_ns 0 all_reduce_ns 0
  pipe.role 0 stages [0] actions <"0F0 0B0 0F1 0B1">
    lane compute <"0F0 0B0 0F1 0B1 0UPDATE">
    lane load <"0LOAD0 0LOAD1">
    lane reduce <"0REDUCE_GRAD">
// expected-error@+1 {{'coll.group' op is of gradient bucket 0, which stage 0 does not reduce}}
  coll.group @dp0_0 stage 0 bucket 0 from layer 0 link <"shm", latency = 100, bandwidth = 1000000000>
}

// -----

model.graph @net(%x: tensor<8xf32> <"x">, %y: tensor<i32> <"y", classes = 8>)
    training <global_batch = 8, micro_batches = 2> data synthetic
    replica_options [1, 2] cost_source "roofline" {
  model.param @w0 : tensor<8x8xf32> init <normal, 0.02>
  model.param @w1 : tensor<8x8xf32> init <normal, 0.02>
  model.param @w2 : tensor<8x8xf32> init <normal, 0.02>
  %0 = model.linear "fc0" %x weight @w0 : tensor<8xf32> -> tensor<8xf32>
    cost <forward = [2000, 1000], input_grad = [0, 0], weight_grad = [4000, 2000], update = 50>
  %1 = model.linear "fc1" %0 weight @w1 : tensor<8xf32> -> tensor<8xf32>
    cost <forward = [2000, 1000], input_grad = [2000, 1000], weight_grad = [2000, 1000], update = 50>
  %2 = model.linear "fc2" %1 weight @w2 : tensor<8xf32> -> tensor<8xf32>
    cost <forward = [2000, 1000], input_grad = [2000, 1000], weight_grad = [2000, 1000], update = 50>
  %loss = model.cross_entropy "loss" %2, %y : tensor<8xf32>, tensor<i32>
    cost <forward = [0, 0], input_grad = [0, 0], weight_grad = [0, 0], update = 0>
  model.output %loss : tensor<f32>
}

pipe.cluster @two {
  #pipe.device<"cpu", flops = 1000000000, memory_bandwidth = 10000000000, memory = 65536>
  #pipe.link<"shm", latency = 100, bandwidth = 1000000000>
  #pipe.nodes<count = 1, device = "cpu", devices = 2, link = "shm">
}

pipe.program @job of @net on @two schedule "1f1b"
    objective_ns 2 bound_ns 1 method "exact" {
  pipe.stage 0 layers [0, 4) "fc0" to "loss" segments [0, 4)
    replicas 2 devices [0, 1] memory_bytes 0 in_flight 1
    forward_ns 0 backward_ns 0 transfer_ns 0 all_reduce_ns 0
  pipe.role 0 stages [0] actions <"0F0 0B0 0F1 0B1">
    lane compute <"0F0 0B0 0F1 0B1.0 0B1.1 0UPDATE">
    lane load <"0LOAD0 0LOAD1">
    lane reduce <"0REDUCE_GRAD0 0REDUCE_GRAD1">
// expected-error@+1 {{'coll.group' op is of the whole gradients of stage 0, which reduces them in buckets}}
  coll.group @dp0 stage 0 link <"shm", latency = 100, bandwidth = 1000000000>
}

// -----

model.graph @net(%x: tensor<8xf32> <"x">, %y: tensor<i32> <"y", classes = 8>)
    training <global_batch = 8, micro_batches = 2> data synthetic
    replica_options [1, 2] cost_source "roofline" {
  model.param @w0 : tensor<8x8xf32> init <normal, 0.02>
  model.param @w1 : tensor<8x8xf32> init <normal, 0.02>
  model.param @w2 : tensor<8x8xf32> init <normal, 0.02>
  %0 = model.linear "fc0" %x weight @w0 : tensor<8xf32> -> tensor<8xf32>
    cost <forward = [2000, 1000], input_grad = [0, 0], weight_grad = [4000, 2000], update = 50>
  %1 = model.linear "fc1" %0 weight @w1 : tensor<8xf32> -> tensor<8xf32>
    cost <forward = [2000, 1000], input_grad = [2000, 1000], weight_grad = [2000, 1000], update = 50>
  %2 = model.linear "fc2" %1 weight @w2 : tensor<8xf32> -> tensor<8xf32>
    cost <forward = [2000, 1000], input_grad = [2000, 1000], weight_grad = [2000, 1000], update = 50>
  %loss = model.cross_entropy "loss" %2, %y : tensor<8xf32>, tensor<i32>
    cost <forward = [0, 0], input_grad = [0, 0], weight_grad = [0, 0], update = 0>
  model.output %loss : tensor<f32>
}

pipe.cluster @two {
  #pipe.device<"cpu", flops = 1000000000, memory_bandwidth = 10000000000, memory = 65536>
  #pipe.link<"shm", latency = 100, bandwidth = 1000000000>
  #pipe.nodes<count = 1, device = "cpu", devices = 2, link = "shm">
}

pipe.program @job of @net on @two schedule "1f1b"
    objective_ns 2 bound_ns 1 method "exact" {
  pipe.stage 0 layers [0, 4) "fc0" to "loss" segments [0, 4)
    replicas 2 devices [0, 1] memory_bytes 0 in_flight 1
    forward_ns 0 backward_ns 0 transfer_ns 0 all_reduce_ns 0
// expected-error@+1 {{'pipe.role' op 0 has '0B1.0' among its compute actions; pieces stand on the compute lane only}}
  pipe.role 0 stages [0] actions <"0F0 0B0 0F1 0B1.0 0B1.1">
}

// -----

model.graph @net(%x: tensor<8xf32> <"x">, %y: tensor<i32> <"y", classes = 8>)
    training <global_batch = 8, micro_batches = 2> data synthetic
    replica_options [1, 2] cost_source "roofline" {
  model.param @w0 : tensor<8x8xf32> init <normal, 0.02>
  model.param @w1 : tensor<8x8xf32> init <normal, 0.02>
  model.param @w2 : tensor<8x8xf32> init <normal, 0.02>
  %0 = model.linear "fc0" %x weight @w0 : tensor<8xf32> -> tensor<8xf32>
    cost <forward = [2000, 1000], input_grad = [0, 0], weight_grad = [4000, 2000], update = 50>
  %1 = model.linear "fc1" %0 weight @w1 : tensor<8xf32> -> tensor<8xf32>
    cost <forward = [2000, 1000], input_grad = [2000, 1000], weight_grad = [2000, 1000], update = 50>
  %2 = model.linear "fc2" %1 weight @w2 : tensor<8xf32> -> tensor<8xf32>
    cost <forward = [2000, 1000], input_grad = [2000, 1000], weight_grad = [2000, 1000], update = 50>
  %loss = model.cross_entropy "loss" %2, %y : tensor<8xf32>, tensor<i32>
    cost <forward = [0, 0], input_grad = [0, 0], weight_grad = [0, 0], update = 0>
  model.output %loss : tensor<f32>
}

pipe.cluster @two {
  #pipe.device<"cpu", flops = 1000000000, memory_bandwidth = 10000000000, memory = 65536>
  #pipe.link<"shm", latency = 100, bandwidth = 1000000000>
  #pipe.nodes<count = 1, device = "cpu", devices = 2, link = "shm">
}

pipe.program @job of @net on @two schedule "1f1b"
    objective_ns 2 bound_ns 1 method "exact" {
  pipe.stage 0 layers [0, 4) "fc0" to "loss" segments [0, 4)
    replicas 2 devices [0, 1] memory_bytes 0 in_flight 1
    forward_ns 0 backward_ns 0 transfer_ns 0 all_reduce_ns 0
// expected-error@+1 {{'pipe.role' op 0 has three lanes 'reduce'}}
  pipe.role 0 stages [0] actions <"0F0 0B0 0F1 0B1">
    lane compute <"0F0 0B0 0F1 0B1.0 0B1.1 0UPDATE">
    lane load <"0LOAD0 0LOAD1">
    lane reduce <"0REDUCE_GRAD0">
    lane reduce <"0REDUCE_GRAD1">
    lane reduce <"0REDUCE_GRAD2">
}
