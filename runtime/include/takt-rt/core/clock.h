//===- clock.h - the virtual clock: the simulator ---------------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Runs every rank's interpreter over a device that takes no time to compute but
// counts predicted time. What it counts:
//
//   call        the procedure's cost
//   load        0
//   send, recv  each piece starts when both its ranks are there and takes
//               `transferTime` of the channel; an instruction ends with the
//               last of its pieces
//   all-reduce  starts when the last member is there, `allReduceTime`
//
// Where the plan has `resources`, a piece takes latency + its own bytes /
// bandwidth, and calls and data on the move slow one another down where they
// ask for more than there is: ports and network, copy engines, SMs, memory
// bandwidth and host cores. Speeds are max-min fair in shares of the speed that
// each has alone; latencies are not stretched.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "takt-rt/core/interpreter.h"
#include "takt-rt/core/plan.h"

#include <cstdint>
#include <vector>

namespace takt::rt {

struct SimulateOptions {
  bool keepRecords = true; ///< 32 bytes an executed instruction
};

struct Simulation {
  Nanos makespan = 0;
  /// In the order of their ends. A transfer's or reduction's record begins when
  /// data begins to move, not when the instruction begins to wait for its peer.
  std::vector<Record> records;
  /// Of each record, how much later it ended than its last part would have by
  /// itself, for want of something shared; empty where the plan shares nothing.
  std::vector<Nanos> delays;
  std::vector<Nanos> busy;           ///< of each rank's compute lanes
  std::vector<int32_t> peakInFlight; ///< of each rank
};

/// One step of a plan that passes `checkStructure`. Throws `Error(BadInput)` if
/// the plan cannot run to its end, saying who waits for whom, or if the two
/// ends of a channel disagree about a message.
Simulation simulate(const Plan &plan, const SimulateOptions &options = {});

} // namespace takt::rt
