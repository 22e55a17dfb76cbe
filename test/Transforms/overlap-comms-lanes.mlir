// RUN: not takt-opt %S/overlap-comms.mlir -takt-schedule -takt-insert-comms -takt-overlap-comms=lanes=3 2>&1 | FileCheck %s -check-prefix=LANES
// RUN: not takt-opt %S/overlap-comms.mlir -takt-schedule -takt-insert-comms -takt-overlap-comms=bucket-size=-1 2>&1 | FileCheck %s -check-prefix=SIZE

// LANES: error: gradients are reduced on 1 or 2 lanes, not on 3
// SIZE: error: a bucket of -1 bytes
