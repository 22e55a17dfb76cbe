// RUN: takt-opt %s -takt-assign-stages="stages=2 replicas=1" | FileCheck %s
// RUN: takt-opt %s -takt-assign-stages="objective=price" | FileCheck %s --check-prefix=PRICE

// 'slow' takes twice the time: the layer that takes longest is for 'fast', whose
// node comes second in the cluster.
// CHECK: model.linear "a" {{.*}} costs [<forward = [1000, 500], input_grad = [0, 0], weight_grad = [0, 0], update = 50, device = "slow">, <forward = [500, 250], input_grad = [0, 0], weight_grad = [0, 0], update = 25, device = "fast">]
// CHECK: pipe.program @job of @net on @pair schedule "1f1b"
// CHECK-SAME: method "exact"
// CHECK: pipe.stage 0 layers [0, 2) "a" to "b"
// CHECK-NEXT: replicas 1 devices [2]
// CHECK: pipe.stage 1 layers [2, 4) "c" to "loss"
// CHECK-NEXT: replicas 1 devices [0]

// 'fast' costs ten times as much.
// PRICE: pipe.stage 0 layers [0, 4)
// PRICE-NEXT: devices [0]
// PRICE-NOT: pipe.stage 1

model.graph @net(%x: tensor<8xf32> <"x">, %y: tensor<8xf32> <"y">)
    training <global_batch = 8, micro_batches = 4> data synthetic
    replica_options [1, 2] cost_source "roofline" {
  model.param @a.weight : tensor<8x8xf32> init <normal, 0.02>
  model.param @b.weight : tensor<8x8xf32> init <normal, 0.02>
  model.param @c.weight : tensor<8x8xf32> init <normal, 0.02>
  %a = model.linear "a" %x weight @a.weight : tensor<8xf32> -> tensor<8xf32>
    costs [<forward = [1000, 500], input_grad = [0, 0], weight_grad = [0, 0], update = 50, device = "slow">, <forward = [500, 250], input_grad = [0, 0], weight_grad = [0, 0], update = 25, device = "fast">]
  %b = model.linear "b" %a weight @b.weight : tensor<8xf32> -> tensor<8xf32>
    costs [<forward = [3000, 1500], input_grad = [0, 0], weight_grad = [0, 0], update = 50, device = "slow">, <forward = [1500, 750], input_grad = [0, 0], weight_grad = [0, 0], update = 25, device = "fast">]
  %c = model.linear "c" %b weight @c.weight : tensor<8xf32> -> tensor<8xf32>
    costs [<forward = [1000, 500], input_grad = [0, 0], weight_grad = [0, 0], update = 50, device = "slow">, <forward = [500, 250], input_grad = [0, 0], weight_grad = [0, 0], update = 25, device = "fast">]
  %loss = model.mean_squared_error "loss" %c, %y : tensor<8xf32>, tensor<8xf32>
    costs [<forward = [100, 50], input_grad = [0, 0], weight_grad = [0, 0], update = 0, device = "slow">, <forward = [50, 25], input_grad = [0, 0], weight_grad = [0, 0], update = 0, device = "fast">]
  model.output %loss : tensor<f32>
}

pipe.cluster @pair network "l" {
  #pipe.device<"slow", flops = 1000000000, memory_bandwidth = 1000000000, price = 1000000>
  #pipe.device<"fast", flops = 2000000000, memory_bandwidth = 2000000000, price = 10000000>
  #pipe.link<"l", latency = 10, bandwidth = 0>
  #pipe.nodes<device = "slow", devices = 2, link = "l">
  #pipe.nodes<device = "fast">
}
