//===- Dapple.h - stages by DAPPLE's pivot latency --------------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// The planner of DAPPLE (Fan et al. 2021, PPoPP, arXiv 2007.01045): synchronous
// steps of M micro-batches, each split by sample over the replicas of a stage.
// A boundary is a stage of its own between the two it joins. With the stage of
// least idle time as the pivot Q, a step takes
//
//     sum_{s <= Q} F_s + (M - 1) (F_Q + B_Q)
//       + max_s (R_s + sum_{a = s .. Q} B_a,       s <= Q
//                R_s - sum_{a = Q + 1 .. s} B_a,   s > Q)
//
// with R_s the all-reduce of stage s. Q is found from the last stage back: s
// replaces it where (M - 1) (F_s + B_s) is more than (M - 1) (F_Q + B_Q) and
// all F_a + B_a between. Idle time of the pivot itself is left out, so the
// formula is too short where M is small; `replaySeconds` runs the same stages.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "takt/Partition/Costs/Antichains.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace takt {

/// Equal machines of equal devices. Rates in bytes/s; the defaults are those of
/// the published planner.
struct DappleCluster {
  int64_t machines = 1, devicesPerMachine = 1;
  double withinRate = 25e9; ///< between two devices of a machine
  double acrossRate = 1e9;  ///< point to point between machines
  double reduceRate = 3e9;  ///< of a ring that leaves a machine
  /// The devices of a machine share its way out; else each has its own.
  bool sharedNetwork = true;
  double memoryBytes = 0; ///< of a device; 0: unlimited
};

/// Where the devices of a stage come from.
enum class DapplePlacement : uint8_t {
  Fresh,   ///< empty machines first
  Append,  ///< machines in use first
  Scatter, ///< evenly over machines with free devices
};

/// "fresh first", "append first", "scatter first".
const char *dapplePlacementName(DapplePlacement placement);

struct DappleProblem {
  std::vector<ProfiledNode> layers; ///< in the order of the chain
  int64_t profiledSamples = 1;      ///< that the layers' figures are for
  int64_t microBatchSamples = 1;
  int64_t microBatches = 1;
  DappleCluster cluster;
  std::vector<int64_t> replicaOptions; ///< ascending; empty: any number
  std::vector<DapplePlacement> placements{DapplePlacement::Fresh,
                                          DapplePlacement::Append,
                                          DapplePlacement::Scatter};
  int64_t maxStages = 0; ///< 0: no limit
  /// Bytes a device keeps for each byte of parameters.
  double stateFactor = 4;
  /// Rank by the replay in place of the formula.
  bool byReplay = false;

  std::optional<std::string> check() const;
};

struct DappleStage {
  int32_t begin = 0, end = 0; ///< layers [begin, end)
  DapplePlacement placement = DapplePlacement::Fresh;
  std::vector<int32_t> devices; ///< machine after machine
  // Filled by evaluate(), in seconds:
  double forward = 0, backward = 0; ///< one micro-batch on one device
  double transfer = 0;              ///< of one micro-batch to the next stage
  double allReduce = 0;
  int64_t mostInFlight = 0; ///< micro-batches that fit; at most all
};

struct DapplePlan {
  std::vector<DappleStage> stages;
  // Filled by evaluate():
  int64_t pivot = 0;  ///< stages and boundaries counted together, from 0
  double seconds = 0; ///< by the formula
  /// By running the micro-batches, with the better of the two warm-ups.
  double replaySeconds = 0;
  bool deepWarmUp = false; ///< that is 2 (S - i) - 1 micro-batches, else S - i
  int64_t work = 0;        ///< plans valued

  /// Of the formula against the replay; negative: too short.
  double error() const {
    return replaySeconds > 0 ? seconds / replaySeconds - 1 : 0;
  }
  /// The formula is within 10 % of the replay.
  bool isHonest() const { return error() >= -0.1 && error() <= 0.1; }
};

/// `count` free devices, ascending; of equal machines the first. `used`, the
/// devices in use by machine, is updated; they are used from the first on.
std::vector<int32_t> takeDevices(const DappleCluster &cluster,
                                 std::vector<int64_t> &used,
                                 DapplePlacement placement, int64_t count);

/// Fills what follows from the stages' layers and devices; false if a stage
/// does not fit its memory.
bool evaluate(const DappleProblem &problem, DapplePlan &plan);

/// Peels stages off the front: the best plan for each number of layers and each
/// occupancy of machines is kept, the rest of the layers on the rest of the
/// devices as last stage. Best of all plans with one or two stages; the formula
/// has no optimal substructure, so with more it is a good one. All devices are
/// used. Nothing if none fits.
std::optional<DapplePlan> solveDapple(const DappleProblem &problem);

/// All plans one by one, up to about 6 layers and devices.
std::optional<DapplePlan> bruteForceDapple(const DappleProblem &problem);

/// One stage on all devices.
std::optional<DapplePlan> dataParallelDapple(const DappleProblem &problem);

/// Independent check: layers and devices covered once, the stated figures.
std::optional<std::string> verify(const DappleProblem &problem,
                                  const DapplePlan &plan);

/// Times of stages and boundaries in order; stages are the even ones.
struct PivotPhase {
  double forward = 0, backward = 0, allReduce = 0;
};
int64_t pivotOf(const std::vector<PivotPhase> &phases, int64_t microBatches);
double pivotSeconds(const std::vector<PivotPhase> &phases,
                    int64_t microBatches);

/// A step in which stage i first runs warmUp[i] forwards and then one backward
/// and one forward in turn; a boundary carries one micro-batch at a time each
/// way. With the all-reduces.
double replaySeconds(const std::vector<PivotPhase> &phases,
                     const std::vector<int64_t> &warmUp, int64_t microBatches);

} // namespace takt
