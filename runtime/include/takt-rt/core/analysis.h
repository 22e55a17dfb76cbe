//===- analysis.h - where a step's time and memory go -----------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Reads a simulated step: the chain of instructions that its length hangs on,
// what every rank waits for and how much of that is data on the move, and which
// memory is held when. Times are nanoseconds from the start of the step.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "takt-rt/core/clock.h"
#include "takt-rt/core/plan.h"

#include <string>
#include <vector>

namespace takt::rt {

//===----------------------------------------------------------------------===//
// Memory over time
//===----------------------------------------------------------------------===//

/// From `time` on the rank holds `bytes`, until the next point.
struct MemoryPoint {
  Nanos time = 0;
  Bytes bytes = 0;
};

struct MemoryCurve {
  /// Held from before the step to after it: weights, gradients, optimizer
  /// state, losses.
  Bytes base = 0;
  Bytes peak = 0;
  Nanos peakAt = 0; ///< when the peak is first reached
  /// Begins at time 0, ends with `base`; times ascend, neighbours differ.
  std::vector<MemoryPoint> points;
};

/// One curve a rank. A slot of a pool is held for a micro-batch from the begin
/// of the first record that touches it to the end of the last one, a workspace
/// for a call. A transfer's buffer counts from when data begins to move. Pools
/// that no kernel names (of layers known by costs only) are held from the F to
/// the end of the backward, or to or from the transfer they serve.
std::vector<MemoryCurve> memoryCurves(const Plan &plan,
                                      const std::vector<Record> &records);

//===----------------------------------------------------------------------===//
// Time
//===----------------------------------------------------------------------===//

/// What a compute lane waits for between two calls.
enum class IdleCause : uint8_t {
  StartUp,    ///< before the first call
  Activation, ///< from the stage named
  Gradient,   ///< from the stage named
  AllReduce,  ///< of the replicas
  Tie,        ///< sum of tied weights from the stage named
  Load,
  SlotCredit, ///< a buffer that is still in use
  Lane,       ///< a call on another lane of the rank
  Drain,      ///< after the last call
};
const char *nameOf(IdleCause cause); ///< "start-up", "activation", ...

struct IdlePart {
  IdleCause cause = IdleCause::StartUp;
  int32_t stage = -1; ///< the other end's, where the cause has one
  Nanos waiting = 0;  ///< nothing moves: the other end is not ready
  Nanos moving = 0;   ///< the data waited for is on its way
  Nanos delayed = 0;  ///< of `moving`: the data shares a port with other data
};

struct RankTimes {
  Nanos busy = 0;    ///< calls
  Nanos slowed = 0;  ///< of `busy`: calls share cores, memory or SMs
  Nanos bubble = 0;  ///< sum of `waiting`
  Nanos exposed = 0; ///< sum of `moving`: communication that nothing hides
  Nanos delayed = 0; ///< sum of `delayed`
  /// By cause and stage. busy + bubble + exposed = makespan (times the number
  /// of compute lanes, if there are several).
  std::vector<IdlePart> parts;
};

/// An instruction of the critical path: begins when what it waited for last
/// has ended.
struct PathStep {
  size_t record = 0; ///< into Simulation::records
  Nanos begin = 0;   ///< end of the step before; 0 for the first
};

struct Analysis {
  Nanos makespan = 0;
  std::vector<RankTimes> ranks;
  /// From time 0 to the makespan without a gap. Of equal chains the one through
  /// the own rank, then through the lowest lane.
  std::vector<PathStep> criticalPath;
  /// Of each record: how much later it could end, all else equal, without a
  /// longer step.
  std::vector<Nanos> slack;
  std::vector<MemoryCurve> memory; ///< of each rank

  /// Mean share of time in which compute lanes do nothing.
  double bubbleShare() const;
};

/// `run` holds the records of the whole plan.
Analysis analyze(const Plan &plan, const Simulation &run);

/// What `takt-plan simulate` prints; the JSON's keys are in
/// docs/reference/takt-plan.md.
std::string printText(const Plan &plan, const Simulation &run,
                      const Analysis &analysis);
std::string toJson(const Plan &plan, const Simulation &run,
                   const Analysis &analysis);

} // namespace takt::rt
