// RUN: takt-opt %s -split-input-file -verify-diagnostics -takt-assign-stages | FileCheck %s

// The cheapest cut lies after 'b'; the constraints move it.

// CHECK: pipe.constraint "pin" ["b"] number 1
// CHECK: pipe.stage 0 layers [0, 1) "a" to "a"
// CHECK: pipe.stage 1 layers [1, 4) "b" to "loss"

model.graph @net(%x: tensor<8xf32> <"x">, %y: tensor<8xf32> <"y">)
    training <global_batch = 8, micro_batches = 4> data synthetic
    replica_options [1] cost_source "roofline" {
  model.param @a.weight : tensor<8x8xf32> init <normal, 0.02>
  model.param @b.weight : tensor<8x8xf32> init <normal, 0.02>
  model.param @c.weight : tensor<8x8xf32> init <normal, 0.02>
  %a = model.linear "a" %x weight @a.weight : tensor<8xf32> -> tensor<8xf32>
    cost <forward = [1000], input_grad = [0], weight_grad = [1000], update = 50>
  %b = model.linear "b" %a weight @b.weight : tensor<8xf32> -> tensor<8xf32>
    cost <forward = [1000], input_grad = [500], weight_grad = [500], update = 50>
  %c = model.linear "c" %b weight @c.weight : tensor<8xf32> -> tensor<8xf32>
    cost <forward = [2000], input_grad = [1600], weight_grad = [400], update = 50>
  %loss = model.mean_squared_error "loss" %c, %y : tensor<8xf32>, tensor<8xf32>
    cost <forward = [100], input_grad = [100], weight_grad = [0], update = 0>
  model.output %loss : tensor<f32>
}
pipe.cluster @pair {
  #pipe.device<"d", flops = 1000000000, memory_bandwidth = 1000000000>
  #pipe.link<"l", latency = 10, bandwidth = 0>
  #pipe.nodes<device = "d", devices = 2, link = "l">
}
pipe.constraint "pin" ["b"] number 1

// -----

// expected-error@+1 {{is of the unknown kind 'near'}}
pipe.constraint "near" ["b"] number 1

// -----

// expected-error@+1 {{of kind 'keep_apart' names 1 layers}}
pipe.constraint "keep_apart" ["b"]

// -----

// expected-error@+1 {{has a negative number}}
pipe.constraint "stages" [] number -1
