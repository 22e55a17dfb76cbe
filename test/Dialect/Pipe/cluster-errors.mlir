// RUN: takt-opt %s -split-input-file -verify-diagnostics

pipe.cluster @c {
  // expected-error@+1 {{flops of device kind 'd' must be positive and finite}}
  #pipe.device<"d", flops = 0, memory_bandwidth = 1>
  #pipe.nodes<device = "d">
}

// -----

pipe.cluster @c {
  // expected-error@+1 {{memory_bandwidth of device kind 'd' must be positive and finite}}
  #pipe.device<"d", flops = 1, memory_bandwidth = -1>
  #pipe.nodes<device = "d">
}

// -----

pipe.cluster @c {
  // expected-error@+1 {{memory of device kind 'd' must not be negative, got -5 bytes}}
  #pipe.device<"d", flops = 1, memory_bandwidth = 1, memory = -5>
  #pipe.nodes<device = "d">
}

// -----

pipe.cluster @c {
  // expected-error@+1 {{kernel_overhead of device kind 'd' must not be negative, got -5 ns}}
  #pipe.device<"d", flops = 1, memory_bandwidth = 1, kernel_overhead = -5>
  #pipe.nodes<device = "d">
}

// -----

pipe.cluster @c {
  // expected-error@+1 {{a device kind needs a name}}
  #pipe.device<"", flops = 1, memory_bandwidth = 1>
  #pipe.nodes<device = "d">
}

// -----

pipe.cluster @c {
  // expected-error@+2 {{expected floating point literal}}
  // expected-error@+1 {{failed to parse Pipe_DeviceAttr parameter 'flops'}}
  #pipe.device<"d", flops = fast, memory_bandwidth = 1>
}

// -----

pipe.cluster @c {
  // expected-error@+1 {{a link class needs a name}}
  #pipe.link<"", latency = 0, bandwidth = 1>
}

// -----

pipe.cluster @c {
  // expected-error@+1 {{latency of link class 'l' must not be negative, got -1 ns}}
  #pipe.link<"l", latency = -1, bandwidth = 1>
}

// -----

pipe.cluster @c {
  // expected-error@+1 {{bandwidth of link class 'l' must be finite and not negative}}
  #pipe.link<"l", latency = 1, bandwidth = -1>
}

// -----

pipe.cluster @c {
  // expected-error@+1 {{a node group needs at least 1 node, got 0}}
  #pipe.nodes<count = 0, device = "d">
}

// -----

pipe.cluster @c {
  // expected-error@+1 {{a node needs at least 1 device, got 0}}
  #pipe.nodes<device = "d", devices = 0>
}

// -----

pipe.cluster @c {
  // expected-error@+1 {{a node of 8 devices of kind 'd' needs a link class}}
  #pipe.nodes<device = "d", devices = 8>
}

// -----

pipe.cluster @c {
  // expected-error@+1 {{cores of a node must be from 0 to 2147483647, got -1}}
  #pipe.nodes<device = "d", cores = -1>
}

// -----

pipe.cluster @c {
  // expected-error@+1 {{network_ports of a node must be from 0 to 2147483647, got 3000000000}}
  #pipe.nodes<device = "d", network_ports = 3000000000>
}

// -----

pipe.cluster @c {
  // expected-error@+1 {{network_port_bandwidth of a node must be finite and not negative}}
  #pipe.nodes<device = "d", network_port_bandwidth = 1.0e999>
}

// -----

pipe.cluster @c {
  // expected-error@+1 {{copy_engines of device kind 'd' must be from 0 to 2147483647, got -1}}
  #pipe.device<"d", flops = 1, memory_bandwidth = 1, copy_engines = -1>
}

// -----

pipe.cluster @c {
  // expected-error@+1 {{transfer_share_ppm of device kind 'd' must be from 0 to 1000000, got 1000001}}
  #pipe.device<"d", flops = 1, memory_bandwidth = 1, transfer_share_ppm = 1000001>
}

// -----

pipe.cluster @c {
  // expected-error@+1 {{host_memory of a node must not be negative, got -1 bytes}}
  #pipe.nodes<device = "d", host_memory = -1>
}

// -----

pipe.cluster @c {
  // expected-error@+1 {{expected a #pipe.device, #pipe.link or #pipe.nodes attribute}}
  "h100"
}

// -----

// expected-error@+1 {{has two device kinds named 'd'}}
pipe.cluster @c {
  #pipe.device<"d", flops = 1, memory_bandwidth = 1>
  #pipe.device<"d", flops = 2, memory_bandwidth = 1>
  #pipe.nodes<device = "d">
}

// -----

// expected-error@+1 {{has two link classes named 'l'}}
pipe.cluster @c {
  #pipe.device<"d", flops = 1, memory_bandwidth = 1>
  #pipe.link<"l", latency = 1, bandwidth = 1>
  #pipe.link<"l", latency = 2, bandwidth = 1>
  #pipe.nodes<device = "d">
}

// -----

// expected-error@+1 {{needs at least one group of nodes}}
pipe.cluster @c {
  #pipe.device<"d", flops = 1, memory_bandwidth = 1>
}

// -----

// expected-error@+1 {{has nodes of device kind 'e', which it does not define}}
pipe.cluster @c {
  #pipe.device<"d", flops = 1, memory_bandwidth = 1>
  #pipe.nodes<device = "e">
}

// -----

// expected-error@+1 {{has nodes joined by link class 'l', which it does not define}}
pipe.cluster @c {
  #pipe.device<"d", flops = 1, memory_bandwidth = 1>
  #pipe.nodes<device = "d", devices = 2, link = "l">
}

// -----

// expected-error@+1 {{has 2 nodes and needs a network between them}}
pipe.cluster @c {
  #pipe.device<"d", flops = 1, memory_bandwidth = 1>
  #pipe.nodes<count = 2, device = "d">
}

// -----

// expected-error@+1 {{has network 'ib', a link class that it does not define}}
pipe.cluster @c network "ib" {
  #pipe.device<"d", flops = 1, memory_bandwidth = 1>
  #pipe.nodes<count = 2, device = "d">
}

// -----

// The product would overflow: checked before it is made.
// expected-error@+1 {{has more than 2147483647 devices}}
pipe.cluster @c network "l" {
  #pipe.device<"d", flops = 1, memory_bandwidth = 1>
  #pipe.link<"l", latency = 1, bandwidth = 1>
  #pipe.nodes<count = 9223372036854775807, device = "d",
              devices = 9223372036854775807, link = "l">
}

// -----

// expected-error@+1 {{has more than 2147483647 devices}}
pipe.cluster @c network "l" {
  #pipe.device<"d", flops = 1, memory_bandwidth = 1>
  #pipe.link<"l", latency = 1, bandwidth = 1>
  #pipe.nodes<count = 2000000000, device = "d">
  #pipe.nodes<count = 2000000000, device = "d">
}

// -----

pipe.cluster @c {
  // expected-error@+1 {{price of device kind 'd' must be from 0 to 1000000000000 millionths, got -1}}
  #pipe.device<"d", flops = 1, memory_bandwidth = 1, price = -1>
}
