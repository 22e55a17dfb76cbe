//===- GroupBackward.cpp - n forwards, one backward -----------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// "nF1B" of Dutta et al. 2024, "TiMePReSt: Time and Memory Efficient Pipeline
// Parallel DNN Training with Removed Staleness", arXiv 2410.14312.
//
// Mini-batches of n micro-batches: a stage runs the forwards of the n one by
// one, and their backwards as one. A backward that can run goes before
// forwards; nothing is flushed between mini-batches. Three stages, n = 2, all
// parts of a column each (B0: of micro-batches 0 and 1):
//
//   stage 0  F0 F1 F2 F3 F4 F5 B0 F6 F7 B2 ...
//   stage 1  .  F0 F1 F2 F3 B0 F4 F5 B2 F6 ...
//   stage 2  .  .  F0 F1 B0 F2 F3 B2 F4 F5 ...
//
// The order comes out of running it slot by slot; the backward of a group is n
// actions in a row here. Without a `group` n is p - 1, the least with which no
// update comes between the one a mini-batch waits for and its own.
//
//===----------------------------------------------------------------------===//

#include "Families.h"

namespace takt {

Schedule generateGroupBackward(const PipelineProblem &problem) {
  const int32_t p = problem.ranks, m = problem.microBatches;
  const int32_t n = problem.group > 0 ? problem.group : std::max(1, p - 1);
  const int32_t groups = (m + n - 1) / n;
  Schedule schedule;
  schedule.roles.resize(p);
  std::vector<int32_t> forwards(p, 0), backwards(p, 0);
  auto groupEnd = [&](int32_t group) {
    return int32_t(std::min<int64_t>(m, int64_t(group + 1) * n));
  };
  while (backwards[0] < groups) {
    // What was over when the slot began.
    const std::vector<int32_t> sent = forwards, returned = backwards;
    for (int32_t s = 0; s < p; ++s) {
      std::vector<Action> &list = schedule.roles[s];
      const int32_t group = backwards[s];
      if (group < groups && sent[s] >= groupEnd(group) &&
          (s + 1 == p || returned[s + 1] > group)) {
        for (int32_t i = group * n; i < groupEnd(group); ++i)
          list.push_back({s, ActionKind::B, i});
        ++backwards[s];
      } else if (forwards[s] < m && (s == 0 || sent[s - 1] > forwards[s])) {
        list.push_back({s, ActionKind::F, forwards[s]++});
      }
    }
  }
  return schedule;
}

} // namespace takt
