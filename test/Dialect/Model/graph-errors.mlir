// RUN: takt-opt %s -split-input-file -verify-diagnostics

// Rules of a whole graph: inputs, output, names, one loss at the end, costs.

// expected-error@+1 {{has 1 arguments and names 0 inputs}}
"model.graph"() ({
^bb0(%x: tensor<4xf32>):
  %0 = model.profiled "p" %x profile <> : (tensor<4xf32>) -> tensor<1xf32>
  model.output %0 : tensor<1xf32>
}) {sym_name = "g", inputs = [], training = #model.training<>, data = #model<data text>} : () -> ()

// -----

// expected-error@+1 {{input 'x' has type 'tensor<4xf64>', allowed are f32 and i32 tensors of static shape}}
model.graph @g(%x: tensor<4xf64> <"x">) training <> data synthetic {
  %0 = model.profiled "p" profile <> : () -> tensor<1xf32>
  model.output %0 : tensor<1xf32>
}

// -----

// expected-error@+1 {{has two inputs named 'x'}}
model.graph @g(%x: tensor<4xf32> <"x">, %y: tensor<4xf32> <"x">)
    training <> data synthetic {
  %0 = model.mean_squared_error "loss" %x, %y : tensor<4xf32>, tensor<4xf32>
  model.output %0 : tensor<f32>
}

// -----

model.graph @g(%x: tensor<4xf32> <"x">, %y: tensor<4xf32> <"y">)
    training <> data synthetic {
  // expected-error@+1 {{is not a layer, parameter or repeat}}
  builtin.module {}
  %0 = model.mean_squared_error "loss" %x, %y : tensor<4xf32>, tensor<4xf32>
  model.output %0 : tensor<f32>
}

// -----

// expected-error@+1 {{the model has no layers}}
model.graph @g(%x: tensor<4xf32> <"x">) training <> data synthetic {
  model.output %x : tensor<4xf32>
}

// -----

// expected-error@+1 {{two layers are named 'act'}}
model.graph @g(%x: tensor<4xf32> <"x">, %y: tensor<4xf32> <"y">)
    training <> data synthetic {
  %0 = model.relu "act" %x : tensor<4xf32>
  %1 = model.gelu "act" %0 : tensor<4xf32>
  %2 = model.mean_squared_error "loss" %1, %y : tensor<4xf32>, tensor<4xf32>
  model.output %2 : tensor<f32>
}

// -----

// A repetition's name may clash with a layer outside.
// expected-error@+1 {{two layers are named 'h.1.act'}}
model.graph @g(%x: tensor<4xf32> <"x">, %y: tensor<4xf32> <"y">)
    training <> data synthetic {
  %0 = model.relu "h.1.act" %x : tensor<4xf32>
  %h = model.repeat 2 "h" (%in = %0) : tensor<4xf32> {
    %1 = model.relu "h.*.act" %in : tensor<4xf32>
    model.yield %1 : tensor<4xf32>
  }
  %2 = model.mean_squared_error "loss" %h, %y : tensor<4xf32>, tensor<4xf32>
  model.output %2 : tensor<f32>
}

// -----

// expected-error@+1 {{nothing reads the output of layer 'act'}}
model.graph @g(%x: tensor<4xf32> <"x">, %y: tensor<4xf32> <"y">)
    training <> data synthetic {
  %0 = model.relu "act" %x : tensor<4xf32>
  %1 = model.mean_squared_error "loss" %x, %y : tensor<4xf32>, tensor<4xf32>
  model.output %1 : tensor<f32>
}

// -----

// expected-error@+1 {{the loss 'loss' must be the last layer}}
model.graph @g(%x: tensor<4xf32> <"x">, %y: tensor<4xf32> <"y">)
    training <> data synthetic {
  %0 = model.mean_squared_error "loss" %x, %y : tensor<4xf32>, tensor<4xf32>
  %1 = model.relu "act" %x : tensor<4xf32>
  model.output %1 : tensor<4xf32>
}

// -----

// expected-error@+1 {{the last layer must be a loss: cross_entropy or mean_squared_error}}
model.graph @g(%x: tensor<4xf32> <"x">) training <> data synthetic {
  %0 = model.relu "act" %x : tensor<4xf32>
  model.output %0 : tensor<4xf32>
}

// -----

model.graph @g(%x: tensor<4xf32> <"x">, %y: tensor<4xf32> <"y">)
    training <> data synthetic {
  %0 = model.mean_squared_error "loss" %x, %y : tensor<4xf32>, tensor<4xf32>
  // expected-error@+1 {{must name the output of the last layer}}
  model.output %x : tensor<4xf32>
}

// -----

// MLIR's own rule still speaks, in its own words.
model.graph @g(%x: tensor<4xf32> <"x">, %y: tensor<4xf32> <"y">)
    training <> data synthetic {
  // expected-error@+1 {{operand #0 does not dominate this use}}
  %0 = model.relu "one" %1 : tensor<4xf32>
  // expected-note@+1 {{operand defined here}}
  %1 = model.relu "two" %0 : tensor<4xf32>
  %2 = model.mean_squared_error "loss" %1, %y : tensor<4xf32>, tensor<4xf32>
  model.output %2 : tensor<f32>
}

// -----

// expected-error@+1 {{replica options must be positive and ascend}}
model.graph @g(%x: tensor<4xf32> <"x">, %y: tensor<4xf32> <"y">)
    training <global_batch = 4> data synthetic replica_options [2, 1] {
  %0 = model.mean_squared_error "loss" %x, %y : tensor<4xf32>, tensor<4xf32>
  model.output %0 : tensor<f32>
}

// -----

// expected-error@+1 {{replica option 4 does not divide the 6 samples of a micro-batch}}
model.graph @g(%x: tensor<4xf32> <"x">, %y: tensor<4xf32> <"y">)
    training <global_batch = 12, micro_batches = 2> data synthetic
    replica_options [1, 4] {
  %0 = model.mean_squared_error "loss" %x, %y : tensor<4xf32>, tensor<4xf32>
  model.output %0 : tensor<f32>
}

// -----

model.graph @g(%x: tensor<4xf32> <"x">, %y: tensor<4xf32> <"y">)
    training <global_batch = 4> data synthetic replica_options [1, 2] {
  // expected-error@+1 {{has a cost with 1 entry for 2 replica options}}
  %0 = model.mean_squared_error "loss" %x, %y : tensor<4xf32>, tensor<4xf32>
      cost <forward = [1], input_grad = [1], weight_grad = [1]>
  model.output %0 : tensor<f32>
}

// -----

model.graph @g(%x: tensor<4xf32> <"x">, %y: tensor<4xf32> <"y">)
    training <global_batch = 4> data synthetic replica_options [1] {
  %h = model.repeat 3 "h" (%in = %x) : tensor<4xf32> {
    // expected-error@+1 {{has 2 costs for 3 repetitions}}
    %0 = model.relu "h.*.act" %in : tensor<4xf32>
        costs [<forward = [1], input_grad = [1], weight_grad = [1]>,
               <forward = [1], input_grad = [1], weight_grad = [2]>]
    model.yield %0 : tensor<4xf32>
  }
  %1 = model.mean_squared_error "loss" %h, %y : tensor<4xf32>, tensor<4xf32>
  model.output %1 : tensor<f32>
}

// -----

// expected-error@+1 {{has 200001 layers, allowed are 100000}}
model.graph @g(%x: tensor<4xf32> <"x">, %y: tensor<4xf32> <"y">)
    training <> data synthetic {
  %h = model.repeat 100000 "h" (%in = %x) : tensor<4xf32> {
    %0 = model.relu "h.*.one" %in : tensor<4xf32>
    %1 = model.relu "h.*.two" %0 : tensor<4xf32>
    model.yield %1 : tensor<4xf32>
  }
  %2 = model.mean_squared_error "loss" %h, %y : tensor<4xf32>, tensor<4xf32>
  model.output %2 : tensor<f32>
}

// -----

model.graph @g(%x: tensor<4xf32> <"x">, %y: tensor<4xf32> <"y">)
    training <global_batch = 4> data synthetic replica_options [1] {
  // expected-error@+1 {{has costs of one kind of device apart}}
  %0 = model.relu "act" %x : tensor<4xf32>
      costs [<forward = [1], input_grad = [1], weight_grad = [1], device = "d">,
             <forward = [2], input_grad = [1], weight_grad = [1], device = "e">,
             <forward = [3], input_grad = [1], weight_grad = [1], device = "d">]
  %1 = model.mean_squared_error "loss" %0, %y : tensor<4xf32>, tensor<4xf32>
  model.output %1 : tensor<f32>
}

// -----

model.graph @g(%x: tensor<4xf32> <"x">, %y: tensor<4xf32> <"y">)
    training <global_batch = 4> data synthetic replica_options [1] {
  // expected-error@+1 {{has costs of some and costs of all kinds of device}}
  %0 = model.relu "act" %x : tensor<4xf32>
      costs [<forward = [1], input_grad = [1], weight_grad = [1], device = "d">,
             <forward = [2], input_grad = [1], weight_grad = [1]>]
  %1 = model.mean_squared_error "loss" %0, %y : tensor<4xf32>, tensor<4xf32>
  model.output %1 : tensor<f32>
}
