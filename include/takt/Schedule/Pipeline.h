//===- Pipeline.h - families of pipeline schedules --------------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// What generators of schedules are given and what they return: ranks with one
// or several stages each, equal micro-batches, the times of every stage, the
// time of a message between ranks, and the activations that a rank may hold.
//
// Time model: a rank runs its list in order, one action at a time; an action
// starts when its rank is free and its inputs have arrived.
//
//   F(s,m)        needs F(s-1,m), and `hop` if that is on another rank
//   B(s,m) I(s,m) need F(s,m), and B or I of (s+1,m) and `hop` as above
//   W(s,m)        needs I(s,m)
//
// Memory model: F adds `held` when it starts; I takes all but `kept` of it away
// when it ends, W the rest, B all.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "takt/Schedule/Schedule.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace takt {

/// How the stages of a pipeline lie on p ranks; stage s on rank
enum class Placement : uint8_t {
  Linear,      ///< s
  Interleaved, ///< s mod p
  VShape,      ///< there and back: s, then 2p - 1 - s, then s - 2p, ...
};

/// Rank of each of the ranks x chunks stages.
std::vector<int32_t> placeStages(Placement placement, int32_t ranks,
                                 int32_t chunks);

/// Times of one stage for one micro-batch, all in one unit of choice, and what
/// it holds, in another. B takes inputGrad + weightGrad.
struct StageTimes {
  double forward = 1;
  double inputGrad = 1;
  double weightGrad = 1;
  double held = 1;   ///< by a micro-batch from the start of F
  double kept = 0.5; ///< of it, from the end of I to the end of W
};

struct PipelineProblem {
  int32_t ranks = 1;
  int32_t chunks = 1; ///< stages a rank
  int32_t microBatches = 1;
  std::vector<StageTimes> times = {}; ///< by stage; empty: all equal
  double hop = 0;                     ///< a message between two ranks
  /// Most that each rank may hold, in the unit of `held`; empty: no limit.
  std::vector<double> mostHeld = {};
  /// As in ScheduleProblem: `microBatches` are of each chain, and the ranks are
  /// those of all replicas together. Only families that say so take them.
  int32_t chains = 1;
  std::vector<int32_t> replicas = {};
  /// Micro-batches that the family treats together; 0: as many as it likes.
  int32_t group = 0;

  int32_t stages() const {
    return replicas.empty() ? ranks * chunks : int32_t(replicas.size());
  }
  StageTimes at(int32_t stage) const {
    return times.empty() ? StageTimes{} : times[stage];
  }
  std::optional<std::string> check() const;
};

/// List r is of rank r; `rankOfStage` names a stage's first replica.
struct Pipeline {
  Schedule schedule;
  std::vector<int32_t> rankOfStage;
};

/// A published family: its name as users write it and what it can do.
struct ScheduleFamily {
  std::string_view name;  ///< "zb-h1"
  std::string_view about; ///< a line for tables and help
  Placement placement;
  /// Stages a rank that it is made for.
  int32_t leastChunks, mostChunks;
  bool splitsBackward;
  /// Fills the lists; the problem passed `check()` and has a number of chunks
  /// that the family is made for.
  Schedule (*generate)(const PipelineProblem &problem);
  int32_t chains = 1;      ///< that it is made for
  bool replicated = false; ///< takes `replicas`
  bool grouped = false;    ///< takes `group`
  /// Why there is no order for a problem of the right sizes; null: always one.
  std::optional<std::string> (*refuse)(const PipelineProblem &) = nullptr;
  /// Updates weights while micro-batches are under way that read older ones.
  bool delayed = false;
};

/// In the order of publication.
const std::vector<ScheduleFamily> &scheduleFamilies();
const ScheduleFamily *findFamily(std::string_view name);
std::vector<std::string> familyNames();

/// Nothing if there is no such family, the problem fails its check, or the
/// family has no order for it (a limit of memory too low, a number of chunks
/// that it is not made for); then `why` says which.
std::optional<Pipeline> generatePipeline(std::string_view family,
                                         const PipelineProblem &problem,
                                         std::string &why);

/// When everything happens; by rank unless stated.
struct PipelineTiming {
  std::vector<std::vector<double>> start, end; ///< of each action
  double makespan = 0; ///< from 0 to the end of the last action
  /// From the start of a rank's first action to the end of its last; the
  /// largest. With optimizer steps not in unison this is the period.
  double longestSpan = 0;
  std::vector<double> busy;
  std::vector<double> peakHeld; ///< in the order of the rank's list
};

/// Nothing if the lists cannot run to their ends.
std::optional<PipelineTiming> timePipeline(const PipelineProblem &problem,
                                           const Pipeline &pipeline);

/// The shape of the problem with the stages where the pipeline has them.
ScheduleProblem shapeOf(const PipelineProblem &problem,
                        const Pipeline &pipeline);

/// `verify`, then that no rank ever holds more than it may.
std::optional<std::string> verifyPipeline(const PipelineProblem &problem,
                                          const Pipeline &pipeline);

/// Makespans that no order of actions on this placement can go below; the rules
/// that `mostHeld` enters take it for a limit at every moment.
struct PipelineBounds {
  double headAndWork = 0;  ///< first arrival at a rank, then all its work
  double criticalPath = 0; ///< one micro-batch there and back
  double warmUp = 0;       ///< what fits before the first backward, then the rest
  double memoryTime = 0;   ///< lives of micro-batches x what they hold
  double busyAndTail = 0;  ///< F and I of a rank, then the way down to stage 0
  double best() const;
};
/// With several chains or replicas only the work of the busiest rank.
PipelineBounds boundPipeline(const PipelineProblem &problem,
                             const std::vector<int32_t> &rankOfStage,
                             bool splitsBackward);

} // namespace takt
