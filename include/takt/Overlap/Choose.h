//===- Choose.h - buckets of gradients for a whole job ------------*- C++
//-*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Where all-reduces of gradient buckets beside the last backward pay: each
// replicated stage is posed as an overlap problem, and the answer is taken only
// if the whole step, run under the virtual clock, becomes shorter.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "takt/Lower/Lower.h"
#include "takt/Overlap/Overlap.h"

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

/// The end of a stage's step from its last gradient-making action on: the
/// pieces of that action, the all-reduces, the update. Sums of tied parameters
/// count as tails of their buckets. Actions: pieces 0 .. n-1, all-reduces n ..
/// 2n-1, update.
OverlapProblem stageTail(const LoweringProblem &problem, int32_t stage,
                         const std::vector<int32_t> &bucketBegins,
                         int32_t lanes);

/// The decision for one stage that reduces gradients.
struct StageOverlap {
  int32_t stage = 0;
  std::vector<int32_t> bucketBegins; ///< of the best found; one: no gain
  OverlapProblem problem;            ///< of these buckets
  OverlapSolution solution;
  Nanos alone = 0;    ///< the same end with one all-reduce after compute
  bool taken = false; ///< the plan has these buckets
};

struct OverlapChoice {
  std::vector<StageOverlap> stages; ///< ascending, those that reduce
  Nanos without = 0; ///< simulated step, communication after compute
  Nanos with = 0;    ///< simulated step with the buckets that were found
  bool pays() const { return with < without; }
};

/// Decides for every stage that reduces and has one bucket, and cuts its lanes
/// where that makes the simulated step shorter. The problem must pass `check()`
/// and does afterwards; its step never becomes longer.
OverlapChoice chooseOverlap(LoweringProblem &problem,
                            const OverlapOptions &options = {});

} // namespace takt
