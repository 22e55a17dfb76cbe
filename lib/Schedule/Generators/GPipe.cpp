//===- GPipe.cpp - all forwards, then all backwards -----------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Huang et al. 2019, "GPipe: Efficient Training of Giant Neural Networks using
// Pipeline Parallelism", arXiv 1811.06965.
//
// Three stages, four micro-batches, backward twice as long as forward:
//
//   stage 0  F0 F1 F2 F3 .  .  .  .  .  .  B0 B0 B1 B1 B2 B2 B3 B3
//   stage 1  .  F0 F1 F2 F3 .  .  .  B0 B0 B1 B1 B2 B2 B3 B3 .  .
//   stage 2  .  .  F0 F1 F2 F3 B0 B0 B1 B1 B2 B2 B3 B3 .  .  .  .
//
// Every stage holds all m micro-batches; with equal stages the makespan is
// (m + p - 1) (F + B). The backwards go in micro-batch order, not in reverse:
// the time is the same, and gradients add up in the order of every other
// schedule, so that losses are equal bit for bit.
//
//===----------------------------------------------------------------------===//

#include "takt/Schedule/Schedule.h"

namespace takt {

Schedule generateGPipe(const ScheduleProblem &problem) {
  Schedule schedule;
  schedule.name = "gpipe";
  schedule.roles.resize(problem.stages);
  for (int32_t stage = 0; stage < problem.stages; ++stage) {
    std::vector<Action> &actions = schedule.roles[stage];
    actions.reserve(2 * size_t(problem.microBatches));
    for (const ActionKind kind : {ActionKind::F, ActionKind::B})
      for (int32_t m = 0; m < problem.microBatches; ++m)
        actions.push_back({stage, kind, m});
  }
  return schedule;
}

} // namespace takt
