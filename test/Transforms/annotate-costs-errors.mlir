// RUN: takt-opt %s -split-input-file -verify-diagnostics -takt-annotate-costs=profile=%S/Inputs/costs.yaml

// expected-error@+1 {{needs one 'model.graph', found 0}}
module {
  pipe.cluster @one {
    #pipe.device<"d", flops = 1, memory_bandwidth = 1>
    #pipe.nodes<device = "d">
  }
}

// -----

// expected-error@+1 {{needs one 'pipe.cluster', found 2}}
module {
  // expected-note@+1 {{found here}}
  pipe.cluster @one {
    #pipe.device<"d", flops = 1, memory_bandwidth = 1>
    #pipe.nodes<device = "d">
  }
  // expected-note@+1 {{found here}}
  pipe.cluster @two {
    #pipe.device<"d", flops = 1, memory_bandwidth = 1>
    #pipe.nodes<device = "d">
  }
  model.graph @g() training <> data synthetic {
    %0 = model.profiled "p" profile <> : () -> tensor<1xf32>
    model.output %0 : tensor<1xf32>
  }
}

// -----

// expected-error@+1 {{costs.yaml' is of one kind of device, the cluster has 'd' and 'e'}}
pipe.cluster @mixed network "l" {
  #pipe.device<"d", flops = 1, memory_bandwidth = 1>
  #pipe.device<"e", flops = 2, memory_bandwidth = 1>
  #pipe.link<"l", latency = 1000, bandwidth = 1000000000>
  #pipe.nodes<device = "d">
  #pipe.nodes<device = "e">
}
model.graph @g() training <> data synthetic {
  %0 = model.profiled "p" profile <> : () -> tensor<1xf32>
  model.output %0 : tensor<1xf32>
}

// -----

// The profile knows 'fc' and two repetitions of 'h.*.act'.

pipe.cluster @one {
  #pipe.device<"d", flops = 1, memory_bandwidth = 1>
  #pipe.nodes<device = "d">
}
// expected-error@+1 {{costs.yaml' lacks 2 of the 5 layers}}
model.graph @g(%x: tensor<4xf32> <"x">, %y: tensor<4xf32> <"y">)
    training <> data synthetic {
  model.param @w : tensor<4x4xf32> init <ones>
  // expected-note@+1 {{no times of 'other'}}
  %0 = model.linear "other" %x weight @w : tensor<4xf32> -> tensor<4xf32>
  %h = model.repeat 3 "h" (%in = %0) : tensor<4xf32> {
    // expected-note@+1 {{no times of 'h.2.act'}}
    %act = model.relu "h.*.act" %in : tensor<4xf32>
    model.yield %act : tensor<4xf32>
  }
  %1 = model.mean_squared_error "loss" %h, %y : tensor<4xf32>, tensor<4xf32>
  model.output %1 : tensor<f32>
}
