// RUN: takt-opt %s | FileCheck %s
// RUN: takt-opt %s | takt-opt | FileCheck %s
// RUN: takt-opt %s -mlir-print-op-generic | takt-opt | FileCheck %s

// Parts print by kind, one a line; defaults are left out.

// CHECK-LABEL: pipe.cluster @pair network "ib" {
// CHECK-NEXT: #pipe.device<"h100", flops = 49500000000000, memory_bandwidth = 2700000000000, memory = 85899345920, kernel_overhead = 4000, copy_engines = 3, transfer_share_ppm = 150000>
// CHECK-NEXT: #pipe.link<"nvlink", latency = 3000, bandwidth = 450000000000>
// CHECK-NEXT: #pipe.link<"ib", latency = 5000, bandwidth = 50000000000>
// CHECK-NEXT: #pipe.nodes<count = 2, device = "h100", devices = 8, link = "nvlink", cores = 96, host_memory = 1099511627776, network_ports = 4, network_port_bandwidth = 25000000000>
// CHECK-NEXT: }
pipe.cluster @pair network "ib" {
  #pipe.nodes<cores = 96, count = 2, device = "h100", devices = 8,
              link = "nvlink", host_memory = 1099511627776, network_ports = 4,
              network_port_bandwidth = 25.0e9>
  #pipe.link<"nvlink", latency = 3000, bandwidth = 450000000000>
  #pipe.link<"ib", latency = 5000, bandwidth = 50.0e9>
  #pipe.device<"h100", flops = 4.95e13, memory_bandwidth = 2700000000000,
               memory = 85899345920, kernel_overhead = 4000, copy_engines = 3,
               transfer_share_ppm = 150000>
}

// One device alone needs neither link nor network.
// CHECK-LABEL: pipe.cluster @one {
// CHECK-NEXT: #pipe.device<"cpu", flops = 1000000000, memory_bandwidth = 10000000000>
// CHECK-NEXT: #pipe.nodes<device = "cpu">
// CHECK-NEXT: }
pipe.cluster @one {
  #pipe.device<"cpu", flops = 1000000000, memory_bandwidth = 10000000000,
               memory = 0, kernel_overhead = 0>
  #pipe.nodes<count = 1, device = "cpu", devices = 1, cores = 0>
}

// Rates that are no whole numbers, or too large ones, keep every bit.
// CHECK-LABEL: pipe.cluster @"odd rates"
// CHECK: flops = 0.1, memory_bandwidth = 1.0e+300>
// CHECK: bandwidth = 333333333333.3333>
// CHECK: bandwidth = 0>
pipe.cluster @"odd rates" {
  #pipe.device<"d", flops = 0.1, memory_bandwidth = 1.0e300>
  #pipe.link<"third", latency = 0, bandwidth = 333333333333.33331>
  #pipe.link<"free", latency = 0, bandwidth = 0>
  #pipe.nodes<device = "d">
}
