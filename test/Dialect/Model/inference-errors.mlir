// RUN: takt-opt %s -split-input-file -verify-diagnostics

// In inference nothing is trained; a model may end in any layer, once.

// expected-error@+1 {{parameter 'fc.weight' is trained, and the mode is 'inference'}}
model.graph @g(%x: tensor<4xf32> <"x">) training <mode = inference> data synthetic {
  model.param @fc.weight : tensor<2x4xf32> init <zeros>
  %0 = model.linear "fc" %x weight @fc.weight : tensor<4xf32> -> tensor<2xf32>
  model.output %0 : tensor<2xf32>
}

// -----

// expected-error@+1 {{layer 'p' is trained, and the mode is 'inference'}}
model.graph @g(%x: tensor<4xf32> <"x">) training <mode = inference> data synthetic {
  %0 = model.profiled "p" %x profile <parameters = 4> : (tensor<4xf32>) -> tensor<1xf32>
  model.output %0 : tensor<1xf32>
}

// -----

// expected-error@+1 {{nothing reads the output of layer 'a'}}
model.graph @g(%x: tensor<4xf32> <"x">) training <mode = inference> data synthetic {
  %0 = model.relu "a" %x : tensor<4xf32>
  %1 = model.relu "b" %x : tensor<4xf32>
  model.output %1 : tensor<4xf32>
}

// -----

// The same in training must end in a loss.
// expected-error@+1 {{the last layer must be a loss: cross_entropy or mean_squared_error}}
model.graph @g(%x: tensor<4xf32> <"x">) training <> data synthetic {
  %0 = model.relu "a" %x : tensor<4xf32>
  model.output %0 : tensor<4xf32>
}

// -----

// This is well.
model.graph @g(%x: tensor<4xf32> <"x">) training <mode = inference> data synthetic {
  %0 = model.relu "a" %x : tensor<4xf32>
  model.output %0 : tensor<4xf32>
}
