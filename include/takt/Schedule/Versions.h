//===- Versions.h - which weights an action reads ---------------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Schedules that do not empty the pipeline at the end of a step read weights
// of several versions. A policy says which version an action reads; what that
// means for training is found by replay of the action lists with a version tag
// on every read, never from the name of a policy.
//
// Version v of a stage is its weights after v updates. Update k of a stage
// applies the summed gradients of step k, its micro-batches k * perStep up to
// (k + 1) * perStep - 1, and makes version k + 1. Training one step after the
// other reads version k in step k; the lag of a read is k less the version.
//
// Sources: Narayanan et al., "PipeDream", SOSP 2019 (stash, vertical sync);
// "Memory-Efficient Pipeline-Parallel DNN Training", ICML 2021 (2bw); Zhang
// and Abdelrahman, arXiv 1912.12675, and Dutta et al., arXiv 2509.23241
// (latest, blend); Li et al., "Pipe-SGD", NeurIPS 2018 (one-step-delayed);
// Ajanthan et al., "AsyncMesh", arXiv 2601.22442 (look-ahead).
//
//===----------------------------------------------------------------------===//
#pragma once

#include "takt/Schedule/Pipeline.h"

namespace takt {

/// The version that F and B (or I; W reads no weights) of a micro-batch of step
/// k read; "newest" is that of the stage at that place of its list.
enum class WeightPolicy : uint8_t {
  Sync,           ///< k
  Stash,          ///< F the newest, B what F read
  DoubleBuffer,   ///< max(k - 1, 0)
  VerticalSync,   ///< on every stage what F on stage 0 read, its newest
  Latest,         ///< the newest each
  Blend,          ///< F the newest, B a mean of what F read and the newest
  OneStepDelayed, ///< max(k - 1, 0), at most one version at a time
  LookAhead,      ///< the newest each, moved on along the last change
};

/// "sync", "stash", "2bw", "vertical-sync", "latest", "blend",
/// "one-step-delayed", "look-ahead"
std::string_view toText(WeightPolicy policy);
std::optional<WeightPolicy> parseWeightPolicy(std::string_view text);
std::vector<std::string_view> weightPolicyNames();

/// An action of a stream of steps: a pass of micro-batches first up to first +
/// count - 1 through a stage, or the update with the gradients of step `first`.
struct StreamAction {
  enum class Kind : uint8_t { F, I, W, B, Update };
  int32_t stage = 0;
  Kind kind = Kind::F;
  int32_t first = 0;
  int32_t count = 1; ///< 1 for updates
  bool operator==(const StreamAction &o) const {
    return stage == o.stage && kind == o.kind && first == o.first &&
           count == o.count;
  }
};
/// "0F3", "1B4-5", "2U0"
std::string toText(const StreamAction &action);

struct StreamProblem {
  int32_t stages = 1;
  int32_t steps = 1;
  int32_t perStep = 1; ///< micro-batches a step
  /// By stage, of a micro-batch; empty: all equal. Updates take no time.
  std::vector<StageTimes> times = {};
  double hop = 0; ///< a message between two ranks

  int32_t microBatches() const { return steps * perStep; }
  int32_t stepOf(int32_t microBatch) const { return microBatch / perStep; }
  StageTimes at(int32_t stage) const {
    return times.empty() ? StageTimes{} : times[stage];
  }
  std::optional<std::string> check() const;
};

/// List r is of rank r; a stage's actions are all on one rank.
struct UpdateStream {
  std::vector<std::vector<StreamAction>> ranks;
};

/// Steps one after the other, each with the lists of `step`.
Schedule repeatSteps(const Schedule &step, int32_t microBatches, int32_t steps);

/// Puts in the update of step k of each stage, right behind the stage's last
/// gradient of step k + putOff (of the last step, if there are fewer).
UpdateStream withUpdates(const StreamProblem &problem, const Schedule &schedule,
                         int32_t putOff = 0);

struct VersionReplay {
  /// Version read by each pass, by stage and micro-batch; of a blend the newer.
  std::vector<std::vector<int32_t>> forward, backward;
  /// By stage: most versions at a time, the one that the next update is applied
  /// to among them; most steps whose gradients wait for their update.
  std::vector<int32_t> alive, gradients;
  /// By micro-batch: updates that all stages have had when its F starts on the
  /// first stage, when its B starts on the last one.
  std::vector<int32_t> wholeAtForward, wholeAtBackward;
  double makespan = 0;
};

/// Runs the lists with the time model of Pipeline.h. Nothing if the stream is
/// not whole, cannot run to its end, updates a stage without a gradient of the
/// step, or reads a version that the stage has not made; `why` names the
/// action.
std::optional<VersionReplay> replayVersions(const StreamProblem &problem,
                                            const UpdateStream &stream,
                                            WeightPolicy policy,
                                            std::string &why);

/// From the strictest to the loosest. The first steps cannot have the whole
/// lag d: min(k, d) counts as d.
enum class Consistency : uint8_t {
  Exact,        ///< as one step after the other
  UniformDelay, ///< F and B of all stages read one version, d updates old
  StageDelay,   ///< F and B read one version, each stage with a lag of its own
  VaryingDelay, ///< F and B read one version, its lag changes on a stage
  Inconsistent, ///< some B reads another version than its F
};
std::string_view toText(Consistency consistency);

struct StageVersions {
  int32_t alive = 1, gradients = 1;
  int32_t forwardLag = 0, backwardLag = 0; ///< the largest
  int32_t mismatches = 0; ///< micro-batches whose B reads another version
  int32_t widest = 0;     ///< most versions between F and B
};

struct VersionReport {
  Consistency consistency = Consistency::Exact;
  int32_t delay = 0; ///< the largest lag of a forward
  std::vector<StageVersions> stages;
};

/// Of steps `first` up to `end`, which is `steps` if negative. Takes more steps
/// than the lag to see a lag.
VersionReport reportVersions(const StreamProblem &problem,
                             const VersionReplay &replay, int32_t first = 0,
                             int32_t end = -1);

/// What users allow training to do; each allows what is before it.
struct Semantics {
  enum class Kind : uint8_t {
    Exact,   ///< "exact": the same weights as one step after the other
    Delayed, ///< "delayed=K": the same delay on all stages, at most K
    Bounded, ///< "bounded=K": F and B read one version, at most K updates old
    Any,     ///< "any"
  };
  Kind kind = Kind::Exact;
  int32_t updates = 0; ///< K
};
std::string toText(const Semantics &semantics);
/// Nothing for other words and for K that is no number from 1 to 1000; then
/// `why` says so.
std::optional<Semantics> parseSemantics(std::string_view text,
                                        std::string &why);

/// Why a stream must not run for a user who allows these semantics: the reason
/// of `replayVersions`, or the first action that reads other weights than
/// allowed, and which they are. Nothing if it may run.
std::optional<std::string> refuseStream(const StreamProblem &problem,
                                        const UpdateStream &stream,
                                        WeightPolicy policy,
                                        const Semantics &allowed);

} // namespace takt
