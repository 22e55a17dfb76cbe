// RUN: takt-opt %s -takt-pipeline=stages=2 | FileCheck %s
// RUN: takt-opt %s -takt-pipeline=stages=2 | takt-opt | FileCheck %s
// RUN: takt-opt %s -takt-annotate-costs -takt-assign-stages=stages=2 -takt-schedule -takt-insert-comms | FileCheck %s
// RUN: takt-opt %s -takt-pipeline="cuts=1 schedule=gpipe" | FileCheck %s -check-prefix=GPIPE
// RUN: takt-opt %s -takt-pipeline=stages=1 | FileCheck %s -check-prefix=ONE
// RUN: not takt-opt %s -takt-pipeline=schedule=none 2>&1 | FileCheck %s -check-prefix=UNKNOWN

// The whole line on two devices that do one operation a nanosecond. A layer
// takes 41 us forward (40000 operations and a kernel) and as much for each
// gradient; an activation of 200 floats takes 1000 + 800 ns each way.
//   t0 = 2 * 41000 + 3 * 41000           = 205000 (no gradient of the input)
//   t1 = 2 * 41000 + 4 * 41000 + 3000    = 249000 (with the loss)
//   sum + transfers + 3 more of t1 + update
//      = 205000 + 249000 + 3600 + 3 * 249000 + 42000 = 1246600

// CHECK: model.graph @net
// CHECK: pipe.program @job of @net on @pair schedule "1f1b" objective_ns 1246600 bound_ns 1246600 method "exact" {
// CHECK:   pipe.stage 0 layers [0, 2) "h.0.fc" to "h.1.fc"
// CHECK:     forward_ns 82000 backward_ns 123000 transfer_ns 3600 all_reduce_ns 42000
// CHECK:   pipe.stage 1 layers [2, 5) "h.2.fc" to "loss"
// CHECK:     forward_ns 83600 backward_ns 165400 transfer_ns 0 all_reduce_ns 42000
// CHECK:   pipe.role 0 stages [0] actions <"0F0 0F1 0B0 0F2 0B1 0F3 0B2 0B3">
// CHECK:     lane compute <"0F0 0F1 0B0 0F2 0B1 0F3 0B2 0B3 0UPDATE">
// CHECK:   pipe.role 1 stages [1] actions <"1F0 1B0 1F1 1B1 1F2 1B2 1F3 1B3">
// CHECK:   coll.channel @act0 activation from 0 to 1 bytes 800
// CHECK:   coll.channel @grad0 gradient from 1 to 0 bytes 800

// GPIPE: pipe.program @job of @net on @pair schedule "gpipe" {{.*}} method "given cuts"
// GPIPE:   pipe.stage 0 layers [0, 1) {{.*}} segments [0, 1)
// GPIPE:   pipe.stage 1 layers [1, 5)
// GPIPE:   pipe.role 0 stages [0] actions <"0F0 0F1 0F2 0F3 0B0 0B1 0B2 0B3">

// ONE:     pipe.stage 0 layers [0, 5)
// ONE-NOT: pipe.stage 1
// ONE-NOT: coll.channel

// UNKNOWN: error: unknown schedule policy 'none'; known are '1f1b' and 'gpipe'

pipe.cluster @pair {
  #pipe.device<"d", flops = 1000000000, memory_bandwidth = 1000000000000000,
               memory = 1073741824, kernel_overhead = 1000>
  #pipe.link<"l", latency = 1000, bandwidth = 1000000000>
  #pipe.nodes<device = "d", devices = 2, link = "l">
}
model.graph @net(%x: tensor<100xf32> <"x">, %y: tensor<100xf32> <"y">)
    training <global_batch = 8, micro_batches = 4> data synthetic {
  model.param @"h.*.fc.weight" : tensor<100x100xf32> init <normal, 0.1>
      repeated 4
  %h = model.repeat 4 "h" (%in = %x) : tensor<100xf32> {
    %fc = model.linear "h.*.fc" %in weight @"h.*.fc.weight"
        : tensor<100xf32> -> tensor<100xf32>
    model.yield %fc : tensor<100xf32>
  }
  %loss = model.mean_squared_error "loss" %h, %y
      : tensor<100xf32>, tensor<100xf32>
  model.output %loss : tensor<f32>
}
