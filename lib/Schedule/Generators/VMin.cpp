//===- VMin.cpp - a third of 1F1B's memory --------------------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// V-Min of Qi et al. 2024, "Pipeline Parallelism with Controllable Memory",
// arXiv 2405.15362: as V-Half, with a pass as short as it can be in the V. Rank
// r of p starts
//
//   F of stage r           r
//   F of stage 2p - 1 - r  2p - 1 - r
//   I of stage 2p - 1 - r  2p + x + r           x = 2 if 3 divides p, else 0
//   I of stage r           4p + x - 1 - r
//
// Two ranks, one micro-batch in slots (f and i are of the second stage):
//
//   rank 0  F  .  .  f  i  .  .  I
//   rank 1  .  F  f  .  .  i  I
//
// Repeated every six slots a rank holds (p + 4) / 3 micro-batches. The bubble
// is about two thirds of 1F1B's where F = I = W; unequal times cost more, for
// every rank then waits in every repetition.
//
//===----------------------------------------------------------------------===//

#include "Families.h"
#include "Slots.h"

namespace takt {

namespace {

/// In slots.
Pattern vMinPattern(const PipelineProblem &problem) {
  const int32_t p = problem.ranks, apart = p % 3 == 0 ? 2 : 0;
  Pattern pattern{std::vector<double>(2 * p), std::vector<double>(2 * p), 6};
  for (int32_t r = 0; r < p; ++r) {
    const int32_t high = 2 * p - 1 - r;
    pattern.forward[r] = r;
    pattern.forward[high] = high;
    pattern.inputGrad[high] = 2 * p + apart + r;
    pattern.inputGrad[r] = 4 * p + apart - 1 - r;
  }
  return pattern;
}

} // namespace

Schedule generateVMin(const PipelineProblem &problem) {
  const std::vector<int32_t> ranks =
      placeStages(Placement::VShape, problem.ranks, problem.chunks);
  BestOrder best(limitedTo((problem.ranks + 4) / 3, problem, ranks), ranks);
  tryPattern(best, vMinPattern(problem));
  best.tryIntervals(fastestPattern(problem, ranks));
  best.improve();
  return {"v-min", best.takeLists()};
}

} // namespace takt
