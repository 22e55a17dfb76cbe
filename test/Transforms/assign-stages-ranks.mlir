// RUN: takt-opt %s -takt-assign-stages="stages=4 ranks=0,1,0,1 held=2,2,1,1" | FileCheck %s
// RUN: not takt-opt %s -takt-assign-stages="stages=4 ranks=0,2,0,1 held=2,2,1,1" 2>&1 | FileCheck %s --check-prefix=ORDER
// RUN: not takt-opt %s -takt-assign-stages="stages=4 ranks=0,1,0,1" 2>&1 | FileCheck %s --check-prefix=HELD
// RUN: not takt-opt %s -takt-assign-stages="stages=7 ranks=0,1,2,3,4,5,6 held=1,1,1,1,1,1,1" 2>&1 | FileCheck %s --check-prefix=MANY

// CHECK: pipe.stage 0
// CHECK-NEXT: devices [0] memory_bytes {{[0-9]+}} in_flight 2
// CHECK: pipe.stage 1
// CHECK-NEXT: devices [1] memory_bytes {{[0-9]+}} in_flight 2
// CHECK: pipe.stage 2
// CHECK-NEXT: devices [0] memory_bytes {{[0-9]+}} in_flight 1
// CHECK: pipe.stage 3
// CHECK-NEXT: devices [1] memory_bytes {{[0-9]+}} in_flight 1

// ORDER: stage 1 is on rank 2, expected at most 1: ranks count by their first stages
// HELD: 4 stages have a rank, 0 say how many micro-batches they hold
// MANY: no stages fit: 7 stages need as many segments to cut between, the model has 5

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

