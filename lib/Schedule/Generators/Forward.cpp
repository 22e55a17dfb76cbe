//===- Forward.cpp - forward passes alone ---------------------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// The order of inference: micro-batches flow through the stages one behind the
// other.
//
// Three stages, four micro-batches:
//
//   stage 0  F0 F1 F2 F3 .  .
//   stage 1  .  F0 F1 F2 F3 .
//   stage 2  .  .  F0 F1 F2 F3
//
// A stage holds the micro-batch that it works on and no other. The first leaves
// after the sum of all stages and transfers, every further one a period later:
// the time of the slowest stage or transfer.
//
//===----------------------------------------------------------------------===//

#include "takt/Schedule/Schedule.h"

namespace takt {

Schedule generateForward(const ScheduleProblem &problem) {
  Schedule schedule;
  schedule.name = "forward";
  schedule.roles.resize(problem.stages);
  for (int32_t stage = 0; stage < problem.stages; ++stage) {
    std::vector<Action> &actions = schedule.roles[stage];
    actions.reserve(size_t(problem.microBatches));
    for (int32_t m = 0; m < problem.microBatches; ++m)
      actions.push_back({stage, ActionKind::F, m});
  }
  return schedule;
}

} // namespace takt
