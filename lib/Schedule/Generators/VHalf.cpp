//===- VHalf.cpp - half of 1F1B's memory ----------------------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// V-Half of Qi et al. 2024, "Pipeline Parallelism with Controllable Memory",
// arXiv 2405.15362: ZB-V's placement, and one micro-batch's passes so laid that
// repeated every six slots (F = I = W = 1 slot) they never meet. Rank r of p
// starts
//
//   F of stage r           2r
//   F of stage 2p - 1 - r  3p - 2 - r
//   I of stage 2p - 1 - r  3p + x + 2r - 1      x = 3 if p is even, else 0
//   I of stage r           6p + x - 2 - r
//
// and weight gradients take the slots that are left. Two ranks, one micro-batch
// in slots (f and i are of the second stage):
//
//   rank 0  F  .  .  .  f  .  .  .  i  .  .  .  .  I
//   rank 1  .  .  F  f  .  .  .  .  .  .  i  .  I
//
// What a micro-batch holds on a rank, summed over its life, is the same on all
// ranks: p / 2 + 1 micro-batches. The bubble is about half of 1F1B's.
//
// The pattern gives the order; times are real ones, so warm-up and end close
// up. Orders of the pass at its own pace, at the intervals that the memory
// allows, are tried too.
//
//===----------------------------------------------------------------------===//

#include "Families.h"
#include "Slots.h"

namespace takt {

namespace {

/// In slots.
Pattern vHalfPattern(const PipelineProblem &problem) {
  const int32_t p = problem.ranks, apart = p % 2 == 0 ? 3 : 0;
  Pattern pattern{std::vector<double>(2 * p), std::vector<double>(2 * p), 6};
  for (int32_t r = 0; r < p; ++r) {
    const int32_t high = 2 * p - 1 - r;
    pattern.forward[r] = 2 * r;
    pattern.forward[high] = 3 * p - 2 - r;
    pattern.inputGrad[high] = 3 * p + apart + 2 * r - 1;
    pattern.inputGrad[r] = 6 * p + apart - 2 - r;
  }
  return pattern;
}

} // namespace

Schedule generateVHalf(const PipelineProblem &problem) {
  const std::vector<int32_t> ranks =
      placeStages(Placement::VShape, problem.ranks, problem.chunks);
  BestOrder best(limitedTo(problem.ranks / 2 + 1, problem, ranks), ranks);
  tryPattern(best, vHalfPattern(problem));
  best.tryIntervals(fastestPattern(problem, ranks));
  best.improve();
  return {"v-half", best.takeLists()};
}

} // namespace takt
