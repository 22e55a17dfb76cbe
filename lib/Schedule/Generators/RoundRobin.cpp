//===- RoundRobin.cpp - one forward, one backward, over replicas ----------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// "1F1B-RR" of Narayanan et al. 2019, "PipeDream: Generalized Pipeline
// Parallelism for DNN Training", SOSP; Harlap et al. 2018, arXiv 1806.03377.
//
// Stage s of r_s replicas; micro-batch m is with replica m mod r_s, forward and
// backward. A replica runs (R - 1 - r_0 - ... - r_{s-1}) / r_s forwards ahead,
// rounded down, R being all ranks; then one forward and one backward in turn.
// Two replicas of a stage twice as long as the second stage, four micro-batches
// (F 2 and 1, B 2 and 1):
//
//   stage 0, replica 0  F0 F0 F2 F2 B0 B0 .  .  B2 B2 .  .
//   stage 0, replica 1  F1 F1 F3 F3 .  .  B1 B1 .  .  B3 B3
//   stage 1             .  .  F0 B0 F1 B1 F2 B2 F3 B3 .  .
//
// With few micro-batches the same forwards run ahead as far as there are any.
// The warm-up is the least with which the slowest stage never waits.
//
//===----------------------------------------------------------------------===//

#include "Families.h"

namespace takt {

Schedule generateRoundRobin(const PipelineProblem &problem) {
  const std::vector<int32_t> replicas =
      problem.replicas.empty() ? std::vector<int32_t>(problem.ranks, 1)
                               : problem.replicas;
  Schedule schedule;
  int32_t before = 0; // ranks of earlier stages
  for (int32_t stage = 0; stage < int32_t(replicas.size()); ++stage) {
    const int32_t count = replicas[stage];
    const int32_t ahead = (problem.ranks - 1 - before) / count;
    for (int32_t replica = 0; replica < count; ++replica) {
      std::vector<Action> &list = schedule.roles.emplace_back();
      for (int32_t i = 0; i <= ahead; ++i)
        if (replica + i * count < problem.microBatches)
          list.push_back({stage, ActionKind::F, replica + i * count});
      for (int32_t m = replica; m < problem.microBatches; m += count) {
        list.push_back({stage, ActionKind::B, m});
        const int32_t next = m + (ahead + 1) * count;
        if (next < problem.microBatches)
          list.push_back({stage, ActionKind::F, next});
      }
    }
    before += count;
  }
  return schedule;
}

} // namespace takt
