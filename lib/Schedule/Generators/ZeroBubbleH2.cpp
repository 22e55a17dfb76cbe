//===- ZeroBubbleH2.cpp - twice the warm-up, no bubble --------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// ZB-H2 of Qi et al. 2024, "Zero Bubble Pipeline Parallelism", arXiv
// 2401.10241, section 2.
//
// Three ranks, six micro-batches, F = I = W:
//
//   rank 0  F0 F1 F2 F3 F4 I0 W0 F5 I1 W1 I2 W2 I3 W3 I4 W4 I5 W5
//   rank 1  .  F0 F1 F2 I0 F3 I1 F4 I2 W0 F5 I3 W1 I4 W2 I5 W3 W4 W5
//   rank 2  .  .  F0 I0 F1 I1 F2 I2 F3 I3 F4 I4 W0 F5 I5 W1 W2 W3 W4 W5
//
// Rank r runs 2 (p - r) - 1 forwards before its first backward and a weight
// gradient 2r backwards late: at most 2p - 1 micro-batches are held. With m of
// at least 2p - 1 and F = I = W no rank idles between its first action and its
// last; without a barrier between steps that is no bubble.
//
//===----------------------------------------------------------------------===//

#include "Families.h"

#include <algorithm>

namespace takt {

Schedule generateZeroBubbleH2(const PipelineProblem &problem) {
  const int32_t p = problem.ranks, m = problem.microBatches;
  Schedule schedule{"zb-h2", std::vector<std::vector<Action>>(p)};
  for (int32_t r = 0; r < p; ++r) {
    std::vector<Action> &list = schedule.roles[r];
    const int32_t warmUp = std::min(m, 2 * (p - r) - 1);
    for (int32_t i = 0; i < warmUp; ++i)
      list.push_back({r, ActionKind::F, i});
    for (int32_t i = 0; i < m; ++i) {
      list.push_back({r, ActionKind::I, i});
      if (i >= 2 * r)
        list.push_back({r, ActionKind::W, i - 2 * r});
      if (warmUp + i < m)
        list.push_back({r, ActionKind::F, warmUp + i});
    }
    for (int32_t i = std::max(0, m - 2 * r); i < m; ++i)
      list.push_back({r, ActionKind::W, i});
  }
  return schedule;
}

} // namespace takt
