// RUN: takt-opt %s | takt-opt | FileCheck %s
// RUN: takt-opt -mlir-print-op-generic %s | takt-opt | FileCheck %s

// One op of each kind. Values are printed under the last part of their layer's
// name; a tied weight is two uses of one symbol.

// CHECK-LABEL: model.graph @every
// CHECK:       %tok = model.embedding "tok" %tokens weight @tok.weight : tensor<8xi32> -> tensor<8x12xf32>
// CHECK:       %pos = model.positional_embedding "pos" %tok weight @pos.weight : tensor<8x12xf32>
// CHECK:       %ln = model.layer_norm "block.ln" %pos gain @ln.weight bias @ln.bias epsilon 1.0e-05 : tensor<8x12xf32>
// CHECK:       %qkv = model.linear "block.qkv" %ln weight @qkv.weight bias @qkv.bias : tensor<8x12xf32> -> tensor<8x36xf32>
// CHECK:       %attn = model.attention "block.attn" %qkv heads 3 : tensor<8x36xf32> -> tensor<8x12xf32>
// CHECK:       %gelu = model.gelu "gelu" %attn : tensor<8x12xf32>
// CHECK:       %relu = model.relu "relu" %gelu : tensor<8x12xf32>
// CHECK:       %sum = model.add "sum" %pos, %relu : tensor<8x12xf32>
// CHECK:       %head = model.linear "head" %sum weight @tok.weight : tensor<8x12xf32> -> tensor<8x256xf32>
// CHECK:       %loss = model.cross_entropy "loss" %head, %targets : tensor<8x256xf32>, tensor<8xi32>
model.graph @every(%tokens: tensor<8xi32> <"tokens", classes = 256>,
                   %targets: tensor<8xi32> <"targets", classes = 256>)
    training <global_batch = 2> data text {
  model.param @tok.weight : tensor<256x12xf32> init <normal, 0.02>
  model.param @pos.weight : tensor<8x12xf32> init <normal, 0.02>
  model.param @ln.weight : tensor<12xf32> init <ones>
  model.param @ln.bias : tensor<12xf32> init <zeros>
  model.param @qkv.weight : tensor<36x12xf32> init <normal, 0.02>
  model.param @qkv.bias : tensor<36xf32> init <zeros>
  %0 = model.embedding "tok" %tokens weight @tok.weight
      : tensor<8xi32> -> tensor<8x12xf32>
  %1 = model.positional_embedding "pos" %0 weight @pos.weight : tensor<8x12xf32>
  %2 = model.layer_norm "block.ln" %1 gain @ln.weight bias @ln.bias
      epsilon 0.00001 : tensor<8x12xf32>
  %3 = model.linear "block.qkv" %2 weight @qkv.weight bias @qkv.bias
      : tensor<8x12xf32> -> tensor<8x36xf32>
  %4 = model.attention "block.attn" %3 heads 3
      : tensor<8x36xf32> -> tensor<8x12xf32>
  %5 = model.gelu "gelu" %4 : tensor<8x12xf32>
  %6 = model.relu "relu" %5 : tensor<8x12xf32>
  %7 = model.add "sum" %1, %6 : tensor<8x12xf32>
  %8 = model.linear "head" %7 weight @tok.weight
      : tensor<8x12xf32> -> tensor<8x256xf32>
  %9 = model.cross_entropy "loss" %8, %targets
      : tensor<8x256xf32>, tensor<8xi32>
  model.output %9 : tensor<f32>
}

// CHECK-LABEL: model.graph @llama
// CHECK:       %n = model.rms_norm "n" %tok gain @n.weight epsilon 1.0e-06 : tensor<8x12xf32>
// CHECK:       %rotary = model.rotary "rotary" %n heads 2 head_dim 4 theta 10000.0 : tensor<8x12xf32>
// CHECK:       %core = model.attention "core" %rotary heads 1 kv_heads 1 : tensor<8x12xf32> -> tensor<8x4xf32>
// CHECK:       %act = model.gelu_tanh "act" %core : tensor<8x4xf32>
// CHECK:       %gate = model.glu "gate" %act silu : tensor<8x4xf32> -> tensor<8x2xf32>
model.graph @llama(%tokens: tensor<8xi32> <"tokens", classes = 256>,
                   %targets: tensor<8xi32> <"targets", classes = 2>)
    training <global_batch = 2> data synthetic {
  model.param @tok.weight : tensor<256x12xf32> init <normal, 0.02>
  model.param @n.weight : tensor<12xf32> init <ones>
  %0 = model.embedding "tok" %tokens weight @tok.weight
      : tensor<8xi32> -> tensor<8x12xf32>
  %1 = model.rms_norm "n" %0 gain @n.weight epsilon 1.0e-6 : tensor<8x12xf32>
  %2 = model.rotary "rotary" %1 heads 2 head_dim 4 theta 1.0e4 : tensor<8x12xf32>
  %3 = model.attention "core" %2 heads 1 kv_heads 1
      : tensor<8x12xf32> -> tensor<8x4xf32>
  %4 = model.gelu_tanh "act" %3 : tensor<8x4xf32>
  %5 = model.glu "gate" %4 silu : tensor<8x4xf32> -> tensor<8x2xf32>
  %6 = model.cross_entropy "loss" %5, %targets
      : tensor<8x2xf32>, tensor<8xi32>
  model.output %6 : tensor<f32>
}

// CHECK-LABEL: model.graph @regression
// CHECK:       %loss = model.mean_squared_error "loss" %fc, %y : tensor<4xf32>, tensor<4xf32>
model.graph @regression(%x: tensor<8xf32> <"x">, %y: tensor<4xf32> <"y">)
    training <global_batch = 2> data synthetic {
  model.param @fc.weight : tensor<4x8xf32> init <normal, 0.1>
  %0 = model.linear "fc" %x weight @fc.weight : tensor<8xf32> -> tensor<4xf32>
  %1 = model.mean_squared_error "loss" %0, %y : tensor<4xf32>, tensor<4xf32>
  model.output %1 : tensor<f32>
}

// A chain known by costs only: no input, no loss.

// CHECK-LABEL: model.graph @profiled()
// CHECK:       %conv1 = model.profiled "conv1" profile <samples = 4, forward = 12, input_grad = 13, weight_grad = 14, activation = 1600, parameters = 36> : () -> tensor<100xf32>
// CHECK:       %conv2 = model.profiled "conv2" %conv1 profile <forward = 7> {frozen} : (tensor<100xf32>) -> tensor<1xf32>
model.graph @profiled() training <global_batch = 4> data synthetic {
  %0 = model.profiled "conv1"
      profile <samples = 4, forward = 12, input_grad = 13, weight_grad = 14,
               activation = 1600, parameters = 36> : () -> tensor<100xf32>
  %1 = model.profiled "conv2" %0 profile <forward = 7> {frozen}
      : (tensor<100xf32>) -> tensor<1xf32>
  model.output %1 : tensor<1xf32>
}
