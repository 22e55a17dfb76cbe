//===- OneFOneB.cpp - one forward, one backward ---------------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// "PipeDream-Flush" of Narayanan et al. 2021, "Memory-Efficient
// Pipeline-Parallel DNN Training", arXiv 2006.09503; commonly called 1F1B.
//
// Three stages, four micro-batches, backward twice as long as forward:
//
//   stage 0  F0 F1 F2 .  .  .  .  B0 B0 F3 B1 B1 .  B2 B2 .  B3 B3
//   stage 1  .  F0 F1 .  .  B0 B0 F2 B1 B1 F3 B2 B2 .  B3 B3 .  .
//   stage 2  .  .  F0 B0 B0 F1 B1 B1 F2 B2 B2 F3 B3 B3 .  .  .  .
//            |warm-up         |  steady state  |     drain       |
//
// Stage s runs min(m, p - s - 1) forwards ahead, then one forward and one
// backward in turn, then the backwards that are left. It holds at most
// min(m, p - s) micro-batches, however many there are; with equal stages the
// makespan is GPipe's, (m + p - 1) (F + B).
//
//===----------------------------------------------------------------------===//

#include "takt/Schedule/Schedule.h"

#include <algorithm>

namespace takt {

Schedule generateOneFOneB(const ScheduleProblem &problem) {
  Schedule schedule;
  schedule.name = "1f1b";
  schedule.roles.resize(problem.stages);
  for (int32_t stage = 0; stage < problem.stages; ++stage) {
    std::vector<Action> &actions = schedule.roles[stage];
    actions.reserve(2 * size_t(problem.microBatches));
    const int32_t warmUp =
        std::min(problem.microBatches, problem.stages - stage - 1);
    for (int32_t m = 0; m < warmUp; ++m)
      actions.push_back({stage, ActionKind::F, m});
    for (int32_t m = warmUp; m < problem.microBatches; ++m) {
      actions.push_back({stage, ActionKind::F, m});
      actions.push_back({stage, ActionKind::B, m - warmUp});
    }
    for (int32_t m = problem.microBatches - warmUp; m < problem.microBatches;
         ++m)
      actions.push_back({stage, ActionKind::B, m});
  }
  return schedule;
}

} // namespace takt
