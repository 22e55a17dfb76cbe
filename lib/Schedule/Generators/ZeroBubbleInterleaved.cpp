//===- ZeroBubbleInterleaved.cpp - several stages a rank, late weights ----===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Interleaved 1F1B of Narayanan et al. 2021, "Efficient Large-Scale Language
// Model Training on GPU Clusters Using Megatron-LM", arXiv 2104.04473, with the
// split backward and the late weight gradients of Qi et al. 2024, "Zero Bubble
// Pipeline Parallelism", arXiv 2401.10241.
//
// Two ranks of two stages, two micro-batches, F = I = W; f, i and w are of the
// rank's second stage:
//
//   rank 0  F0 F1 f0 f1 .  i0 w0 i1 w1 I0 W0 I1 W1
//   rank 1  .  F0 F1 f0 i0 f1 i1 w0 I0 w1 I1 W0 W1
//
// Micro-batches go through a rank's v stages in groups, of p where there are
// enough. Rank r warms up with (v - 1) p + p - 1 - r forwards, then forwards
// and backwards take turns, and a weight gradient comes r backwards late: all
// hold p micro-batches, where interleaved 1F1B with its longer warm-up holds
// more. With F = I = W and m a multiple of p only the first forward's way down
// is a bubble.
//
//===----------------------------------------------------------------------===//

#include "Families.h"
#include "Orders.h"

#include <algorithm>

namespace takt {

namespace {

/// F or I of all micro-batches in groups: a group passes all stages of a rank
/// before the next one.
std::vector<Action> passesOf(const PipelineProblem &problem, int32_t rank,
                             ActionKind kind, int32_t group) {
  std::vector<Action> passes;
  const int32_t m = problem.microBatches, v = problem.chunks;
  for (int32_t first = 0; first < m; first += group)
    for (int32_t chunk = 0; chunk < v; ++chunk) {
      const int32_t at = kind == ActionKind::F ? chunk : v - 1 - chunk;
      for (int32_t i = first; i < std::min(m, first + group); ++i)
        passes.push_back({at * problem.ranks + rank, kind, i});
    }
  return passes;
}

/// `less`: forwards of the warm-up that are left for later, to hold less.
Orders listsOf(const PipelineProblem &problem, int32_t group, int32_t less) {
  const int32_t p = problem.ranks;
  Orders lists(p);
  for (int32_t r = 0; r < p; ++r) {
    const auto forwards = passesOf(problem, r, ActionKind::F, group);
    const auto backwards = passesOf(problem, r, ActionKind::I, group);
    const int32_t total = int32_t(forwards.size());
    const int32_t warmUp =
        std::min(total, (problem.chunks - 1) * group +
                            std::max(0, p - 1 - r - less) + 1);
    std::vector<Action> &list = lists[r];
    list.assign(forwards.begin(), forwards.begin() + warmUp);
    auto weightsOf = [&](int32_t i) {
      list.push_back(
          {backwards[i].stage, ActionKind::W, backwards[i].microBatch});
    };
    for (int32_t i = 0; i < total; ++i) {
      list.push_back(backwards[i]);
      if (i >= r)
        weightsOf(i - r);
      if (warmUp + i < total)
        list.push_back(forwards[warmUp + i]);
    }
    for (int32_t i = std::max(0, total - r); i < total; ++i)
      weightsOf(i);
  }
  return lists;
}

} // namespace

Schedule generateZeroBubbleInterleaved(const PipelineProblem &problem) {
  const int32_t p = problem.ranks, m = problem.microBatches;
  const std::vector<int32_t> ranks =
      placeStages(Placement::Interleaved, p, problem.chunks);
  BestOrder best(limitedTo(p, problem, ranks), ranks);
  // A rest of m / p is a group of its own, or makes all groups larger or
  // smaller.
  std::vector<int32_t> groups = {p};
  for (const int32_t count : {std::max(1, m / p), (m + p - 1) / p}) {
    const int32_t even = (m + count - 1) / count;
    if (std::find(groups.begin(), groups.end(), even) == groups.end())
      groups.push_back(even);
  }
  for (const int32_t group : groups)
    for (int32_t less = 0; less < p; ++less) {
      const Orders lists = listsOf(problem, group, less);
      best.tryLists(lists);
      best.tryOrders(withoutWeights(lists));
      if (best.found())
        break;
    }
  if (!best.found())
    best.tryIntervals(fastestPattern(problem, ranks));
  best.improve();
  return {"zb-interleaved", best.takeLists()};
}

} // namespace takt
