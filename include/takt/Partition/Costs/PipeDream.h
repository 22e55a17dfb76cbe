//===- PipeDream.h - stages by PipeDream's cost model -----------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// The planner of PipeDream (Narayanan et al. 2019, SOSP, arXiv 1806.03377) in
// its own terms: minibatches stream without a flush, the replicas of a stage
// take them in turn, and the objective is the time of the slowest resource in
// the steady state. A stage of T seconds and P parameter bytes on r devices
// behind links of B bytes/s takes
//
//     (T + 4 (r - 1) P / (r B)) / r
//
// and the cuts before and after it, of A bytes each, 2 A / (r B). Links have
// levels: the best times within a machine become the T of the level above. As
// in the published planner, the parameters of the first stage of a level are
// spread over the devices within its machines, those of later stages are not;
// and the first cut is counted by the stage behind it only.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "takt/Partition/Costs/Antichains.h"

#include <optional>
#include <string>
#include <vector>

namespace takt {

/// `devices` of the level below behind links of this speed.
struct LinkLevel {
  int64_t devices = 1;
  double bytesPerSecond = 0;
};

struct PipeDreamProblem {
  std::vector<ProfileState> states;
  std::vector<LinkLevel> levels; ///< the innermost first; all devices are used
  bool replicas = true;          ///< false: one device a stage
  bool countTransfers = true;    ///< false: cuts take no time
  std::vector<int64_t> replicaOptions; ///< ascending; empty: any number
  /// Of a device: a stage on r of the N devices of its level, d of them from
  /// the first stage to it, keeps ceil((N - d) / r) copies of its activations
  /// and parameters. 0: unlimited.
  double memoryBytes = 0;

  std::optional<std::string> check() const;
};

struct PipeDreamStage {
  int32_t begin = 0,
          end = 0;      ///< what lies after state begin - 1, up to end - 1
  int64_t replicas = 1; ///< machines of the level below
  std::vector<PipeDreamStage> inner; ///< how each is divided; empty: a device
};

struct PipeDreamPlan {
  std::vector<PipeDreamStage> stages; ///< of the outermost level
  double seconds = 0;                 ///< of the slowest resource, a minibatch
  int64_t work = 0;                   ///< transitions looked at
};

/// The best plan on these states, or nothing if none fits the memory.
std::optional<PipeDreamPlan> solvePipeDream(const PipeDreamProblem &problem);

/// The same by trying all plans; for tests, up to about 6 states.
std::optional<PipeDreamPlan>
bruteForcePipeDream(const PipeDreamProblem &problem);

/// All devices as replicas of one stage, level by level.
double dataParallelSeconds(const PipeDreamProblem &problem);

/// Stages of single devices, first stage first, with the replicas of all levels
/// multiplied.
std::vector<PipeDreamStage> flatten(const PipeDreamPlan &plan);

/// Independent check: the stages follow each other to the last state, use all
/// devices of every level, fit, and take what the plan says.
std::optional<std::string> verify(const PipeDreamProblem &problem,
                                  const PipeDreamPlan &plan);

} // namespace takt
