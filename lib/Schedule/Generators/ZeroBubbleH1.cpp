//===- ZeroBubbleH1.cpp - 1F1B with weight gradients put off --------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// ZB-H1 of Qi et al. 2024, "Zero Bubble Pipeline Parallelism", arXiv
// 2401.10241, section 2.
//
// Three ranks, four micro-batches, F = I = W:
//
//   rank 0  F0 F1 F2 .  .  I0 W0 F3 I1 W1 I2 W2 I3 W3
//   rank 1  .  F0 F1 .  I0 F2 I1 W0 F3 I2 W1 I3 W2 W3
//   rank 2  .  .  F0 I0 F1 I1 F2 I2 W0 F3 I3 W1 W2 W3
//
// 1F1B whose rank r runs the weight gradient of a micro-batch r backwards
// later, so that gradients go down the pipeline without waiting for them. All
// ranks hold p micro-batches, r of them only in part: no more than 1F1B's
// first. With F = I = W the makespan is m (F + I + W) + (p - 1) (F + I - W).
//
//===----------------------------------------------------------------------===//

#include "Families.h"

#include <algorithm>

namespace takt {

Schedule generateZeroBubbleH1(const PipelineProblem &problem) {
  const int32_t p = problem.ranks, m = problem.microBatches;
  Schedule schedule{"zb-h1", std::vector<std::vector<Action>>(p)};
  for (int32_t r = 0; r < p; ++r) {
    std::vector<Action> &list = schedule.roles[r];
    const int32_t warmUp = std::min(m, p - r);
    for (int32_t i = 0; i < warmUp; ++i)
      list.push_back({r, ActionKind::F, i});
    for (int32_t i = 0; i < m; ++i) {
      list.push_back({r, ActionKind::I, i});
      if (i >= r)
        list.push_back({r, ActionKind::W, i - r});
      if (warmUp + i < m)
        list.push_back({r, ActionKind::F, warmUp + i});
    }
    for (int32_t i = std::max(0, m - r); i < m; ++i)
      list.push_back({r, ActionKind::W, i});
  }
  return schedule;
}

} // namespace takt
