// RUN: takt-opt %s | takt-opt | FileCheck %s
// RUN: takt-opt -mlir-print-op-generic %s | takt-opt | FileCheck %s

// Equal blocks as one: names with `*` stand for one thing a repetition, a
// parameter without it is shared. Costs: one for all repetitions, or one each.

// CHECK-LABEL: model.graph @blocks
// CHECK-NEXT:    training <global_batch = 8, micro_batches = 4> data synthetic replica_options [1, 2] cost_source "profile costs.yaml" {
// CHECK:       model.param @"h.*.fc.weight" : tensor<4x4xf32> init <normal, 0.1> repeated 3
// CHECK:       %h = model.repeat 3 "h" (%in = %x) : tensor<4xf32> {
// CHECK-NEXT:    %fc = model.linear "h.*.fc" %in weight @"h.*.fc.weight" bias @shared : tensor<4xf32> -> tensor<4xf32> costs [<forward = [8, 4], input_grad = [0, 0], weight_grad = [9, 5], update = 3>, <forward = [8, 4], input_grad = [8, 4], weight_grad = [9, 5], update = 3>, <forward = [9, 4], input_grad = [8, 4], weight_grad = [9, 5], update = 3>]
// CHECK-NEXT:    %act = model.relu "h.*.act" %fc : tensor<4xf32> cost <forward = [2, 1], input_grad = [2, 1], weight_grad = [0, 0]>
// CHECK-NEXT:    model.yield %act : tensor<4xf32>
// CHECK-NEXT:  }
// CHECK:       model.mean_squared_error "loss" %h, %y
model.graph @blocks(%x: tensor<4xf32> <"x">, %y: tensor<4xf32> <"y">)
    training <global_batch = 8, micro_batches = 4> data synthetic
    replica_options [1, 2] cost_source "profile costs.yaml" {
  model.param @shared : tensor<4xf32> init <zeros>
  model.param @"h.*.fc.weight" : tensor<4x4xf32> init <normal, 0.1> repeated 3
  %h = model.repeat 3 "h" (%in = %x) : tensor<4xf32> {
    %fc = model.linear "h.*.fc" %in weight @"h.*.fc.weight" bias @shared
        : tensor<4xf32> -> tensor<4xf32>
        costs [<forward = [8, 4], input_grad = [0, 0], weight_grad = [9, 5],
                update = 3>,
               <forward = [8, 4], input_grad = [8, 4], weight_grad = [9, 5],
                update = 3>,
               <forward = [9, 4], input_grad = [8, 4], weight_grad = [9, 5],
                update = 3>]
    %act = model.relu "h.*.act" %fc : tensor<4xf32>
        cost <forward = [2, 1], input_grad = [2, 1], weight_grad = [0, 0]>
    model.yield %act : tensor<4xf32>
  }
  %loss = model.mean_squared_error "loss" %h, %y : tensor<4xf32>, tensor<4xf32>
      cost <forward = [1, 1], input_grad = [1, 1], weight_grad = [0, 0]>
  model.output %loss : tensor<f32>
}
