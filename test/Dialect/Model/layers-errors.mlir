// RUN: takt-opt %s -split-input-file -verify-diagnostics

// The layer library's rules reach IR; each kind once, plus what IR adds: names,
// dimensions, parameters.

model.graph @g(%x: tensor<4xf32> <"x">, %y: tensor<4xf32> <"y">)
    training <> data synthetic {
  // expected-error@+1 {{'model.relu' op needs a layer name}}
  %0 = model.relu "" %x : tensor<4xf32>
  %1 = model.mean_squared_error "loss" %0, %y : tensor<4xf32>, tensor<4xf32>
  model.output %1 : tensor<f32>
}

// -----

model.graph @g(%x: tensor<4xf32> <"x">, %y: tensor<4xf32> <"y">)
    training <> data synthetic {
  // expected-error@+1 {{layer 'h.*' has a '*' outside a repeat}}
  %0 = model.relu "h.*" %x : tensor<4xf32>
  %1 = model.mean_squared_error "loss" %0, %y : tensor<4xf32>, tensor<4xf32>
  model.output %1 : tensor<f32>
}

// -----

%0 = builtin.unrealized_conversion_cast to tensor<4xf32>
// expected-error@+1 {{expects parent op to be one of 'model.graph, model.repeat'}}
%1 = model.relu "act" %0 : tensor<4xf32>

// -----

model.graph @g(%x: tensor<4xf32> <"x">) training <> data synthetic {
  // expected-error@+1 {{output has a dimension of 0}}
  %0 = model.profiled "p" %x profile <> : (tensor<4xf32>) -> tensor<0xf32>
  model.output %0 : tensor<0xf32>
}

// -----

model.graph @g(%x: tensor<4xf32> <"x">) training <> data synthetic {
  // expected-error@+1 {{output has more than 1099511627776 elements}}
  %0 = model.profiled "p" %x profile <> : (tensor<4xf32>) -> tensor<1048577x1048576xf32>
  model.output %0 : tensor<1048577x1048576xf32>
}

// -----

model.graph @g(%x: tensor<4xf32> <"x">) training <> data synthetic {
  // expected-error@+1 {{result #0 must be statically shaped tensor of 32-bit float values}}
  %0 = model.profiled "p" %x profile <> : (tensor<4xf32>) -> tensor<?xf32>
  model.output %0 : tensor<?xf32>
}

// -----

model.graph @g(%x: tensor<4xf32> <"x">, %y: tensor<4xf32> <"y">)
    training <> data synthetic {
  // expected-error@+1 {{uses parameter 'w', which is not declared}}
  %0 = model.linear "fc" %x weight @w : tensor<4xf32> -> tensor<4xf32>
  %1 = model.mean_squared_error "loss" %0, %y : tensor<4xf32>, tensor<4xf32>
  model.output %1 : tensor<f32>
}

// -----

model.graph @g(%ids: tensor<4xf32> <"ids">, %y: tensor<4x8xf32> <"y">)
    training <> data synthetic {
  model.param @w : tensor<16x8xf32> init <ones>
  // expected-error@+1 {{embedding needs int32 ids of shape [positions], got float32 [4]}}
  %0 = model.embedding "tok" %ids weight @w : tensor<4xf32> -> tensor<4x8xf32>
  %1 = model.mean_squared_error "loss" %0, %y : tensor<4x8xf32>, tensor<4x8xf32>
  model.output %1 : tensor<f32>
}

// -----

model.graph @g(%x: tensor<4x8xf32> <"x">, %y: tensor<4x8xf32> <"y">)
    training <> data synthetic {
  model.param @w : tensor<5x8xf32> init <ones>
  // expected-error@+1 {{'weight' has shape [5, 8], needed is [4, 8]}}
  %0 = model.positional_embedding "pos" %x weight @w : tensor<4x8xf32>
  %1 = model.mean_squared_error "loss" %0, %y : tensor<4x8xf32>, tensor<4x8xf32>
  model.output %1 : tensor<f32>
}

// -----

model.graph @g(%x: tensor<4xf32> <"x">, %y: tensor<4xf32> <"y">)
    training <> data synthetic {
  model.param @w : tensor<4x5xf32> init <ones>
  // expected-error@+1 {{input of shape [4] does not end in the 5 columns of the weight [4, 5]}}
  %0 = model.linear "fc" %x weight @w : tensor<4xf32> -> tensor<4xf32>
  %1 = model.mean_squared_error "loss" %0, %y : tensor<4xf32>, tensor<4xf32>
  model.output %1 : tensor<f32>
}

// -----

model.graph @g(%x: tensor<4xf32> <"x">, %y: tensor<4xf32> <"y">)
    training <> data synthetic {
  model.param @w : tensor<8x4xf32> init <ones>
  // expected-error@+1 {{gives 'tensor<8xf32>', but 'tensor<4xf32>' is stated}}
  %0 = model.linear "fc" %x weight @w : tensor<4xf32> -> tensor<4xf32>
  %1 = model.mean_squared_error "loss" %0, %y : tensor<4xf32>, tensor<4xf32>
  model.output %1 : tensor<f32>
}

// -----

model.graph @g(%x: tensor<4xf32> <"x">, %y: tensor<4xf32> <"y">)
    training <> data synthetic {
  model.param @w : tensor<4x4xf32> init <ones>
  model.param @b : tensor<5xf32> init <ones>
  // expected-error@+1 {{'bias' has shape [5], needed is [4]}}
  %0 = model.linear "fc" %x weight @w bias @b : tensor<4xf32> -> tensor<4xf32>
  %1 = model.mean_squared_error "loss" %0, %y : tensor<4xf32>, tensor<4xf32>
  model.output %1 : tensor<f32>
}

// -----

model.graph @g(%x: tensor<4xf32> <"x">, %y: tensor<4xf32> <"y">)
    training <> data synthetic {
  model.param @w : tensor<3xf32> init <ones>
  // expected-error@+1 {{'weight' has shape [3], needed is [4]}}
  %0 = model.layer_norm "ln" %x gain @w bias @w epsilon 1.0e-5 : tensor<4xf32>
  %1 = model.mean_squared_error "loss" %0, %y : tensor<4xf32>, tensor<4xf32>
  model.output %1 : tensor<f32>
}

// -----

model.graph @g(%x: tensor<2x12xf32> <"x">, %y: tensor<2x4xf32> <"y">)
    training <> data synthetic {
  // expected-error@+1 {{3 heads do not divide the width 4}}
  %0 = model.attention "a" %x heads 3 : tensor<2x12xf32> -> tensor<2x4xf32>
  %1 = model.mean_squared_error "loss" %0, %y : tensor<2x4xf32>, tensor<2x4xf32>
  model.output %1 : tensor<f32>
}

// -----

model.graph @g(%x: tensor<4xi32> <"x">) training <> data synthetic {
  // expected-error@+1 {{gelu needs a float32 input, got int32}}
  %0 = model.gelu "act" %x : tensor<4xi32>
  model.output %0 : tensor<4xi32>
}

// -----

model.graph @g(%x: tensor<4xf32> <"x">, %y: tensor<3xf32> <"y">)
    training <> data synthetic {
  // expected-error@+1 {{failed to verify that all of {lhs, rhs, output} have same type}}
  %0 = "model.add"(%x, %y) {layer = "sum"} : (tensor<4xf32>, tensor<3xf32>) -> tensor<4xf32>
  model.output %0 : tensor<4xf32>
}

// -----

model.graph @g(%x: tensor<4xf32> <"x">, %y: tensor<3xf32> <"y">)
    training <> data synthetic {
  // expected-error@+1 {{'target' has shape [3], needed is [4]}}
  %0 = model.mean_squared_error "loss" %x, %y : tensor<4xf32>, tensor<3xf32>
  model.output %0 : tensor<f32>
}

// -----

model.graph @g(%x: tensor<4xf32> <"x">, %y: tensor<f32> <"y">)
    training <> data synthetic {
  // expected-error@+1 {{the target of cross_entropy must be int32 class ids}}
  %0 = model.cross_entropy "loss" %x, %y : tensor<4xf32>, tensor<f32>
  model.output %0 : tensor<f32>
}

// -----

model.graph @g(%x: tensor<4xf32> <"x">) training <> data synthetic {
  // expected-error@+1 {{gives 'tensor<25xf32>', but 'tensor<24xf32>' is stated}}
  %0 = model.profiled "p" %x profile <samples = 2, activation = 200> : (tensor<4xf32>) -> tensor<24xf32>
  model.output %0 : tensor<24xf32>
}

// -----

model.graph @g(%x: tensor<8x10xf32> <"x">, %y: tensor<8x12xf32> <"y">)
    training <> data synthetic {
  // expected-error@+1 {{attention needs 2 heads of queries and 1 each of keys and values side by side, got [8, 10]}}
  %0 = model.attention "a" %x heads 2 kv_heads 1 : tensor<8x10xf32> -> tensor<8x5xf32>
  %1 = model.mean_squared_error "loss" %0, %y : tensor<8x5xf32>, tensor<8x12xf32>
  model.output %1 : tensor<f32>
}

// -----

model.graph @g(%x: tensor<8x12xf32> <"x">, %y: tensor<8x12xf32> <"y">)
    training <> data synthetic {
  // expected-error@+1 {{2 heads of keys and values do not divide 3 heads}}
  %0 = model.attention "a" %x heads 3 kv_heads 2 : tensor<8x12xf32> -> tensor<8x12xf32>
  %1 = model.mean_squared_error "loss" %0, %y : tensor<8x12xf32>, tensor<8x12xf32>
  model.output %1 : tensor<f32>
}

// -----

model.graph @g(%x: tensor<8x12xf32> <"x">, %y: tensor<8x12xf32> <"y">)
    training <> data synthetic {
  // expected-error@+1 {{a head of 3 has an odd one}}
  %0 = model.rotary "r" %x heads 2 head_dim 3 theta 1.0e4 : tensor<8x12xf32>
  %1 = model.mean_squared_error "loss" %0, %y : tensor<8x12xf32>, tensor<8x12xf32>
  model.output %1 : tensor<f32>
}

// -----

model.graph @g(%x: tensor<8x12xf32> <"x">, %y: tensor<8x12xf32> <"y">)
    training <> data synthetic {
  // expected-error@+1 {{4 heads of 4 elements do not lie in rows of 12}}
  %0 = model.rotary "r" %x heads 4 head_dim 4 theta 1.0e4 : tensor<8x12xf32>
  %1 = model.mean_squared_error "loss" %0, %y : tensor<8x12xf32>, tensor<8x12xf32>
  model.output %1 : tensor<f32>
}

// -----

model.graph @g(%x: tensor<8x12xf32> <"x">, %y: tensor<8x12xf32> <"y">)
    training <> data synthetic {
  // expected-error@+1 {{rotary needs a theta above 0, got 0}}
  %0 = model.rotary "r" %x heads 2 head_dim 4 theta 0.0 : tensor<8x12xf32>
  %1 = model.mean_squared_error "loss" %0, %y : tensor<8x12xf32>, tensor<8x12xf32>
  model.output %1 : tensor<f32>
}

// -----

model.graph @g(%x: tensor<8x11xf32> <"x">, %y: tensor<8x12xf32> <"y">)
    training <> data synthetic {
  // expected-error@+1 {{glu needs two halves in the last dimension, got [8, 11]}}
  %0 = model.glu "g" %x gelu : tensor<8x11xf32> -> tensor<8x5xf32>
  %1 = model.mean_squared_error "loss" %0, %y : tensor<8x5xf32>, tensor<8x12xf32>
  model.output %1 : tensor<f32>
}

// -----

model.graph @g(%x: tensor<8x12xf32> <"x">, %y: tensor<8x12xf32> <"y">)
    training <> data synthetic {
  model.param @n.weight : tensor<10xf32> init <ones>
  // expected-error@+1 {{'weight' has shape [10], needed is [12]}}
  %0 = model.rms_norm "n" %x gain @n.weight epsilon 1.0e-5 : tensor<8x12xf32>
  %1 = model.mean_squared_error "loss" %0, %y : tensor<8x12xf32>, tensor<8x12xf32>
  model.output %1 : tensor<f32>
}
