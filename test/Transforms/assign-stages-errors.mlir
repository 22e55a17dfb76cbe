// RUN: takt-opt %s -takt-assign-stages -split-input-file -verify-diagnostics

// expected-error@+1 {{needs exactly one 'model.graph', has 0}}
module {
pipe.cluster @pair {
  #pipe.device<"d", flops = 1000000000, memory_bandwidth = 1000000000>
  #pipe.link<"l", latency = 10, bandwidth = 0>
  #pipe.nodes<device = "d", devices = 2, link = "l">
}
}

// -----

// expected-error@+1 {{needs exactly one 'pipe.cluster', has 0}}
module {
model.graph @net(%x: tensor<8xf32> <"x">, %y: tensor<8xf32> <"y">)
    training <global_batch = 8, micro_batches = 4> data synthetic
    replica_options [1, 2] cost_source "roofline" {
  model.param @a.weight : tensor<8x8xf32> init <normal, 0.02>
  model.param @b.weight : tensor<8x8xf32> init <normal, 0.02>
  model.param @c.weight : tensor<8x8xf32> init <normal, 0.02>
  %a = model.linear "a" %x weight @a.weight : tensor<8xf32> -> tensor<8xf32>
    cost <forward = [1000, 500], input_grad = [0, 0], weight_grad = [1000, 500], update = 50>
  %b = model.linear "b" %a weight @b.weight : tensor<8xf32> -> tensor<8xf32>
    cost <forward = [1000, 500], input_grad = [500, 250], weight_grad = [500, 250], update = 50>
  %c = model.linear "c" %b weight @c.weight : tensor<8xf32> -> tensor<8xf32>
    cost <forward = [1000, 500], input_grad = [600, 300], weight_grad = [400, 200], update = 50>
  %loss = model.mean_squared_error "loss" %c, %y : tensor<8xf32>, tensor<8xf32>
    cost <forward = [100, 50], input_grad = [100, 50], weight_grad = [0, 0], update = 0>
  model.output %loss : tensor<f32>
}
}

// -----

// expected-error@+1 {{needs exactly one 'pipe.cluster', has 2}}
module {
model.graph @net(%x: tensor<8xf32> <"x">, %y: tensor<8xf32> <"y">)
    training <global_batch = 8, micro_batches = 4> data synthetic
    replica_options [1, 2] cost_source "roofline" {
  model.param @a.weight : tensor<8x8xf32> init <normal, 0.02>
  model.param @b.weight : tensor<8x8xf32> init <normal, 0.02>
  model.param @c.weight : tensor<8x8xf32> init <normal, 0.02>
  %a = model.linear "a" %x weight @a.weight : tensor<8xf32> -> tensor<8xf32>
    cost <forward = [1000, 500], input_grad = [0, 0], weight_grad = [1000, 500], update = 50>
  %b = model.linear "b" %a weight @b.weight : tensor<8xf32> -> tensor<8xf32>
    cost <forward = [1000, 500], input_grad = [500, 250], weight_grad = [500, 250], update = 50>
  %c = model.linear "c" %b weight @c.weight : tensor<8xf32> -> tensor<8xf32>
    cost <forward = [1000, 500], input_grad = [600, 300], weight_grad = [400, 200], update = 50>
  %loss = model.mean_squared_error "loss" %c, %y : tensor<8xf32>, tensor<8xf32>
    cost <forward = [100, 50], input_grad = [100, 50], weight_grad = [0, 0], update = 0>
  model.output %loss : tensor<f32>
}

pipe.cluster @pair {
  #pipe.device<"d", flops = 1000000000, memory_bandwidth = 1000000000>
  #pipe.link<"l", latency = 10, bandwidth = 0>
  #pipe.nodes<device = "d", devices = 2, link = "l">
}
pipe.cluster @other {
  #pipe.device<"d", flops = 1000000000, memory_bandwidth = 1000000000>
  #pipe.link<"l", latency = 10, bandwidth = 0>
  #pipe.nodes<device = "d", devices = 2, link = "l">
}
}

// -----

// expected-error@+1 {{the layers have no costs; run takt-annotate-costs first}}
model.graph @net(%x: tensor<8xf32> <"x">, %y: tensor<8xf32> <"y">)
    training <global_batch = 8, micro_batches = 4> data synthetic {
  model.param @a.weight : tensor<8x8xf32> init <normal, 0.02>
  model.param @b.weight : tensor<8x8xf32> init <normal, 0.02>
  model.param @c.weight : tensor<8x8xf32> init <normal, 0.02>
  %a = model.linear "a" %x weight @a.weight : tensor<8xf32> -> tensor<8xf32>
  %b = model.linear "b" %a weight @b.weight : tensor<8xf32> -> tensor<8xf32>
  %c = model.linear "c" %b weight @c.weight : tensor<8xf32> -> tensor<8xf32>
  %loss = model.mean_squared_error "loss" %c, %y : tensor<8xf32>, tensor<8xf32>
  model.output %loss : tensor<f32>
}

pipe.cluster @pair {
  #pipe.device<"d", flops = 1000000000, memory_bandwidth = 1000000000>
  #pipe.link<"l", latency = 10, bandwidth = 0>
  #pipe.nodes<device = "d", devices = 2, link = "l">
}

// -----

// expected-error@+1 {{the layers have no costs on devices of kind 'e'; run takt-annotate-costs first}}
model.graph @net(%x: tensor<8xf32> <"x">, %y: tensor<8xf32> <"y">)
    training <global_batch = 8, micro_batches = 4> data synthetic
    replica_options [1, 2] cost_source "roofline" {
  model.param @a.weight : tensor<8x8xf32> init <normal, 0.02>
  model.param @b.weight : tensor<8x8xf32> init <normal, 0.02>
  model.param @c.weight : tensor<8x8xf32> init <normal, 0.02>
  %a = model.linear "a" %x weight @a.weight : tensor<8xf32> -> tensor<8xf32>
    cost <forward = [1000, 500], input_grad = [0, 0], weight_grad = [1000, 500], update = 50, device = "d">
  %b = model.linear "b" %a weight @b.weight : tensor<8xf32> -> tensor<8xf32>
    cost <forward = [1000, 500], input_grad = [500, 250], weight_grad = [500, 250], update = 50, device = "d">
  %c = model.linear "c" %b weight @c.weight : tensor<8xf32> -> tensor<8xf32>
    cost <forward = [1000, 500], input_grad = [600, 300], weight_grad = [400, 200], update = 50, device = "d">
  %loss = model.mean_squared_error "loss" %c, %y : tensor<8xf32>, tensor<8xf32>
    cost <forward = [100, 50], input_grad = [100, 50], weight_grad = [0, 0], update = 0, device = "d">
  model.output %loss : tensor<f32>
}

pipe.cluster @pair network "l" {
  #pipe.device<"d", flops = 1000000000, memory_bandwidth = 1000000000>
  #pipe.link<"l", latency = 10, bandwidth = 0>
  #pipe.device<"e", flops = 1000000000, memory_bandwidth = 1000000000>
  #pipe.nodes<device = "d">
  #pipe.nodes<device = "e">
}

// -----

// expected-error@+1 {{stages are assigned already}}
module {
model.graph @net(%x: tensor<8xf32> <"x">, %y: tensor<8xf32> <"y">)
    training <global_batch = 8, micro_batches = 4> data synthetic
    replica_options [1, 2] cost_source "roofline" {
  model.param @a.weight : tensor<8x8xf32> init <normal, 0.02>
  model.param @b.weight : tensor<8x8xf32> init <normal, 0.02>
  model.param @c.weight : tensor<8x8xf32> init <normal, 0.02>
  %a = model.linear "a" %x weight @a.weight : tensor<8xf32> -> tensor<8xf32>
    cost <forward = [1000, 500], input_grad = [0, 0], weight_grad = [1000, 500], update = 50>
  %b = model.linear "b" %a weight @b.weight : tensor<8xf32> -> tensor<8xf32>
    cost <forward = [1000, 500], input_grad = [500, 250], weight_grad = [500, 250], update = 50>
  %c = model.linear "c" %b weight @c.weight : tensor<8xf32> -> tensor<8xf32>
    cost <forward = [1000, 500], input_grad = [600, 300], weight_grad = [400, 200], update = 50>
  %loss = model.mean_squared_error "loss" %c, %y : tensor<8xf32>, tensor<8xf32>
    cost <forward = [100, 50], input_grad = [100, 50], weight_grad = [0, 0], update = 0>
  model.output %loss : tensor<f32>
}

pipe.cluster @pair {
  #pipe.device<"d", flops = 1000000000, memory_bandwidth = 1000000000>
  #pipe.link<"l", latency = 10, bandwidth = 0>
  #pipe.nodes<device = "d", devices = 2, link = "l">
}
pipe.program @job of @net on @pair schedule "1f1b"
    objective_ns 2 bound_ns 1 method "exact" {
  pipe.stage 0 layers [0, 4) "a" to "loss" segments [0, 4)
    replicas 1 devices [0] memory_bytes 0 in_flight 1
    forward_ns 0 backward_ns 0 transfer_ns 0 all_reduce_ns 0
}
}

// -----

// No device holds the first layer.
model.graph @net(%x: tensor<8xf32> <"x">, %y: tensor<8xf32> <"y">)
    training <global_batch = 8, micro_batches = 4> data synthetic
    replica_options [1, 2] cost_source "roofline" {
  model.param @a.weight : tensor<8x8xf32> init <normal, 0.02>
  model.param @b.weight : tensor<8x8xf32> init <normal, 0.02>
  model.param @c.weight : tensor<8x8xf32> init <normal, 0.02>
  // expected-error@+1 {{no stages fit: segment 'a' alone needs}}
  %a = model.linear "a" %x weight @a.weight : tensor<8xf32> -> tensor<8xf32>
    cost <forward = [1000, 500], input_grad = [0, 0], weight_grad = [1000, 500], update = 50>
  %b = model.linear "b" %a weight @b.weight : tensor<8xf32> -> tensor<8xf32>
    cost <forward = [1000, 500], input_grad = [500, 250], weight_grad = [500, 250], update = 50>
  %c = model.linear "c" %b weight @c.weight : tensor<8xf32> -> tensor<8xf32>
    cost <forward = [1000, 500], input_grad = [600, 300], weight_grad = [400, 200], update = 50>
  %loss = model.mean_squared_error "loss" %c, %y : tensor<8xf32>, tensor<8xf32>
    cost <forward = [100, 50], input_grad = [100, 50], weight_grad = [0, 0], update = 0>
  model.output %loss : tensor<f32>
}

// expected-note@+1 {{use devices with at least}}
pipe.cluster @pair {
  #pipe.device<"d", flops = 1000000000, memory_bandwidth = 1000000000, memory = 1000>
  #pipe.link<"l", latency = 10, bandwidth = 0>
  #pipe.nodes<device = "d", devices = 2, link = "l">
}
