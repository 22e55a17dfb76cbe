// RUN: takt-opt %s | takt-opt | FileCheck %s
// RUN: takt-opt -mlir-print-op-generic %s | takt-opt | FileCheck %s

// Inputs, training settings, data and parameters. Settings that equal the
// defaults are left out, numbers keep every bit.

// CHECK:      model.graph @classifier(%x: tensor<8xf32> <"x">, %y: tensor<i32> <"y", classes = 4>)
// CHECK-NEXT:   training <global_batch = 16, micro_batches = 4, seed = 18446744073709551615, optimizer = adamw, learning_rate = 0.1234567890123456, beta2 = 0.95, epsilon = 2.0e-08, weight_decay = 0.1, schedule = cosine, warmup_steps = 20, total_steps = 200, min_learning_rate = 5.0e-324> data synthetic {
// CHECK-NEXT:   model.param @head.weight : tensor<4x8xf32> init <normal, 0.02> frozen
// CHECK-NEXT:   model.param @head.bias : tensor<4xf32> init <zeros> frozen
// CHECK-NEXT:   %head = model.linear "head" %x weight @head.weight bias @head.bias : tensor<8xf32> -> tensor<4xf32>
// CHECK-NEXT:   %loss = model.cross_entropy "loss" %head, %y : tensor<4xf32>, tensor<i32>
// CHECK-NEXT:   model.output %loss : tensor<f32>
// CHECK-NEXT: }
model.graph @classifier(%a: tensor<8xf32> <"x">,
                        %b: tensor<i32> <"y", classes = 4>)
    training <global_batch = 16, micro_batches = 4,
              seed = 18446744073709551615, optimizer = adamw,
              learning_rate = 0.1234567890123456, momentum = 0.9, beta2 = 0.95,
              epsilon = 2.0e-8, weight_decay = 0.1, schedule = cosine,
              warmup_steps = 20, total_steps = 200,
              min_learning_rate = 5.0e-324> data synthetic {
  model.param @head.weight : tensor<4x8xf32> init <normal, 0.02> frozen
  model.param @head.bias : tensor<4xf32> init <zeros> frozen
  %head = model.linear "head" %a weight @head.weight bias @head.bias
      : tensor<8xf32> -> tensor<4xf32>
  %loss = model.cross_entropy "loss" %head, %b : tensor<4xf32>, tensor<i32>
  model.output %loss : tensor<f32>
}

// All settings at their defaults, text as data, attributes of others kept.

// CHECK:      model.graph @ids(%tokens: tensor<4xi32> <"tokens", classes = 256>, %targets: tensor<4xi32> <"targets", classes = 256>)
// CHECK-NEXT:   training <> data text attributes {note = "kept"} {
model.graph @ids(%tokens: tensor<4xi32> <"tokens", classes = 256>,
                 %targets: tensor<4xi32> <"targets", classes = 256>)
    training <global_batch = 1> data text attributes {note = "kept"} {
  model.param @table : tensor<256x256xf32> init <uniform, 1.5>
  %tok = model.embedding "tok" %tokens weight @table
      : tensor<4xi32> -> tensor<4x256xf32>
  %loss = model.cross_entropy "loss" %tok, %targets
      : tensor<4x256xf32>, tensor<4xi32>
  model.output %loss : tensor<f32>
}
