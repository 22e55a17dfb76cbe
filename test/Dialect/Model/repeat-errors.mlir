// RUN: takt-opt %s -split-input-file -verify-diagnostics

model.graph @g(%x: tensor<4xf32> <"x">, %y: tensor<4xf32> <"y">)
    training <> data synthetic {
  // expected-error@+1 {{repeats its block 0 times, allowed are 1 to 100000}}
  %h = model.repeat 0 "h" (%in = %x) : tensor<4xf32> {
    %0 = model.relu "h.*.act" %in : tensor<4xf32>
    model.yield %0 : tensor<4xf32>
  }
  %1 = model.mean_squared_error "loss" %h, %y : tensor<4xf32>, tensor<4xf32>
  model.output %1 : tensor<f32>
}

// -----

model.graph @g(%x: tensor<4xf32> <"x">, %y: tensor<4xf32> <"y">)
    training <> data synthetic {
  model.param @w : tensor<8x4xf32> init <ones>
  // expected-error@+1 {{starts from 'tensor<4xf32>' but yields 'tensor<8xf32>'}}
  %h = model.repeat 2 "h" (%in = %x) : tensor<4xf32> {
    %0 = model.linear "h.*.fc" %in weight @w : tensor<4xf32> -> tensor<8xf32>
    // expected-note@+1 {{yielded here}}
    model.yield %0 : tensor<8xf32>
  }
  %1 = model.mean_squared_error "loss" %h, %y : tensor<4xf32>, tensor<4xf32>
  model.output %1 : tensor<f32>
}

// -----

model.graph @g(%x: tensor<4xf32> <"x">, %y: tensor<4xf32> <"y">)
    training <> data synthetic {
  // expected-error@+1 {{needs one block argument of type 'tensor<4xf32>'}}
  %h = "model.repeat"(%x) ({
  ^bb0(%in: tensor<5xf32>):
    model.yield %x : tensor<4xf32>
  }) {count = 2 : i64, block = "h"} : (tensor<4xf32>) -> tensor<4xf32>
  %1 = model.mean_squared_error "loss" %h, %y : tensor<4xf32>, tensor<4xf32>
  model.output %1 : tensor<f32>
}

// -----

model.graph @g(%x: tensor<4xf32> <"x">, %y: tensor<4xf32> <"y">)
    training <> data synthetic {
  %h = model.repeat 2 "h" (%in = %x) : tensor<4xf32> {
    // expected-error@+1 {{layer 'act' needs one '*' for the repetition's index}}
    %0 = model.relu "act" %in : tensor<4xf32>
    model.yield %0 : tensor<4xf32>
  }
  %1 = model.mean_squared_error "loss" %h, %y : tensor<4xf32>, tensor<4xf32>
  model.output %1 : tensor<f32>
}

// -----

model.graph @g(%x: tensor<4xf32> <"x">, %y: tensor<4xf32> <"y">)
    training <> data synthetic {
  // expected-note@+1 {{declared here}}
  model.param @"h.*.w" : tensor<4x4xf32> init <ones> repeated 3
  %h = model.repeat 2 "h" (%in = %x) : tensor<4xf32> {
    // expected-error@+1 {{uses parameter 'h.*.w', which is repeated 3 times, in a block that is repeated 2 times}}
    %0 = model.linear "h.*.fc" %in weight @"h.*.w" : tensor<4xf32> -> tensor<4xf32>
    model.yield %0 : tensor<4xf32>
  }
  %1 = model.mean_squared_error "loss" %h, %y : tensor<4xf32>, tensor<4xf32>
  model.output %1 : tensor<f32>
}

// -----

model.graph @g(%x: tensor<4xf32> <"x">, %y: tensor<4xf32> <"y">)
    training <> data synthetic {
  // expected-note@+1 {{declared here}}
  model.param @"h.*.w" : tensor<4x4xf32> init <ones> repeated 3
  // expected-error@+1 {{uses parameter 'h.*.w', which is repeated 3 times, outside a repeat}}
  %0 = model.linear "fc" %x weight @"h.*.w" : tensor<4xf32> -> tensor<4xf32>
  %1 = model.mean_squared_error "loss" %0, %y : tensor<4xf32>, tensor<4xf32>
  model.output %1 : tensor<f32>
}

// -----

model.graph @g(%x: tensor<4xf32> <"x">, %y: tensor<4xf32> <"y">)
    training <> data synthetic {
  // expected-error@+1 {{parameter 'w' needs one '*' for the repetition's index}}
  model.param @w : tensor<4x4xf32> init <ones> repeated 3
  %1 = model.mean_squared_error "loss" %x, %y : tensor<4xf32>, tensor<4xf32>
  model.output %1 : tensor<f32>
}

// -----

model.graph @g(%x: tensor<4xf32> <"x">, %y: tensor<4xf32> <"y">)
    training <> data synthetic {
  // expected-error@+1 {{must be repeated at least once}}
  model.param @"h.*.w" : tensor<4x4xf32> init <ones> repeated 0
  %1 = model.mean_squared_error "loss" %x, %y : tensor<4xf32>, tensor<4xf32>
  model.output %1 : tensor<f32>
}

// -----

// Repeats do not nest.
model.graph @g(%x: tensor<4xf32> <"x">, %y: tensor<4xf32> <"y">)
    training <> data synthetic {
  %h = model.repeat 2 "h" (%in = %x) : tensor<4xf32> {
    // expected-error@+1 {{'model.repeat' op is not a layer}}
    %0 = model.repeat 2 "k" (%in2 = %in) : tensor<4xf32> {
      %1 = model.relu "k.*.act" %in2 : tensor<4xf32>
      model.yield %1 : tensor<4xf32>
    }
    model.yield %0 : tensor<4xf32>
  }
  %1 = model.mean_squared_error "loss" %h, %y : tensor<4xf32>, tensor<4xf32>
  model.output %1 : tensor<f32>
}
