//===- Choose.h - buckets of gradients for a whole job ------------*- C++
//-*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Where all-reduces of gradient buckets beside the last backward pay, and in
// what order they and the gradient that leaves the stage at that time take the
// link they share: each replicated stage is posed as an overlap problem, and
// the answer is taken only if the whole step, run under the virtual clock,
// becomes shorter.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "takt/Lower/Lower.h"
#include "takt/Overlap/Overlap.h"

#include "takt-rt/core/clock.h"

namespace takt {

struct OverlapOptions {
  /// A bucket is closed when it has that many bytes; 0: for each stage the
  /// number of buckets with the shortest end of the step.
  Bytes bucketBytes = 0;
  int32_t lanes = 1; ///< lanes that reduce, of each rank: 1 or 2
  OverlapLimits limits;
};

/// First layers of the buckets of a stage, from the last layer on: each is
/// closed as soon as it has `bytes`. Never an empty bucket.
std::vector<int32_t> formBuckets(const Graph &graph, const StageInput &stage,
                                 Bytes bytes);

/// The last gradient that a stage sends, where it goes over the class of links
/// on which the stage's replicas reduce. Times from the start of the stage's
/// last action that makes gradients.
struct TailSend {
  int32_t microBatch = 0;
  bool afterPieces = true; ///< that action makes it: it is ready at its end
  Nanos release = 0;       ///< else it is ready then
  Nanos time = 0;          ///< by itself
  Nanos tail = 0; ///< from its end to that of the stages before this one
};

/// The send of a stage, nothing if it has none that competes. `run` is a step
/// of `plan`, which is `problem` lowered, with records.
std::optional<TailSend> tailSend(const LoweringProblem &problem, int32_t stage,
                                 const rt::Plan &plan,
                                 const rt::Simulation &run);

/// The end of a stage's step from its last gradient-making action on: the
/// pieces of that action, the all-reduces, the send if there is one, the
/// update. Sums of tied parameters count as tails of their buckets. Actions:
/// pieces 0 .. n-1, all-reduces n .. 2n-1, the send, the update.
OverlapProblem stageTail(const LoweringProblem &problem, int32_t stage,
                         const std::vector<int32_t> &bucketBegins,
                         int32_t lanes, const TailSend *send = nullptr);

/// Where the send goes among buckets whose order is known: each place of each
/// lane, and of equal ends that with the earlier update. Z3 is asked only where
/// none of them reaches the bound.
OverlapSolution placeSend(const OverlapProblem &problem,
                          const std::vector<std::vector<int32_t>> &buckets,
                          const OverlapLimits &limits);

/// The decision for one stage that reduces gradients.
struct StageOverlap {
  int32_t stage = 0;
  std::vector<int32_t> bucketBegins; ///< of the best found; one: no gain
  OverlapProblem problem;            ///< of these buckets
  OverlapSolution solution;
  Nanos alone = 0;    ///< the same end with one all-reduce after compute
  bool taken = false; ///< the plan has these buckets

  std::optional<TailSend> send; ///< competes with them for the link
  OverlapProblem sendProblem;   ///< buckets and send
  OverlapSolution sendSolution;
  bool ordered = false; ///< the plan keeps to the order of `sendSolution`
};

struct OverlapChoice {
  std::vector<StageOverlap> stages; ///< ascending, those that reduce
  Nanos without = 0; ///< simulated step, communication after compute
  Nanos with = 0;    ///< simulated step with what was found and taken
  bool pays() const { return with < without; }
};

/// Decides for every stage that has one bucket and reduces it when its role has
/// no calls left (others of the role reduce behind those), and cuts and orders
/// its lanes where that makes the simulated step shorter. The problem must pass
/// `check()` and does afterwards; its step never becomes longer.
OverlapChoice chooseOverlap(LoweringProblem &problem,
                            const OverlapOptions &options = {});

} // namespace takt
