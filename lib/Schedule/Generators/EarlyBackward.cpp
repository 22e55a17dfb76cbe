//===- EarlyBackward.cpp - few forwards ahead, then backwards first -------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Fan et al. 2021, "DAPPLE: A Pipelined Data Parallel Approach for Training
// Large Models", arXiv 2007.01045.
//
// Stage s issues K_s forwards, then a backward and a forward in turn. Policy A
// has K_s = p - s, enough where messages cost little; policy B 2 (p - s) - 1,
// which hides a message of up to half a forward each way. Either at most what
// the rank may hold, and no more than the stage before, which could not send it
// more. Policy B, three stages, four micro-batches, B as long as F, messages of
// half of it (a column is half of F):
//
//   stage 0  F0 F0 F1 F1 F2 F2 F3 F3 .  .  .  .  .  .  B0 B0 .  .  B1 B1 ...
//   stage 1  .  .  .  F0 F0 F1 F1 F2 F2 .  .  B0 B0 F3 F3 B1 B1 .  .  B2 ...
//   stage 2  .  .  .  .  .  .  F0 F0 B0 B0 F1 F1 B1 B1 F2 F2 B2 B2 F3 F3 ...
//
//===----------------------------------------------------------------------===//

#include "Families.h"

#include <algorithm>
#include <cmath>

namespace takt {

namespace {

/// Micro-batches that fit; the registry has seen to it that one does.
int32_t mostAhead(const PipelineProblem &problem, int32_t stage) {
  const double held = problem.at(stage).held;
  if (problem.mostHeld.empty() || held == 0)
    return problem.microBatches;
  const double fit = problem.mostHeld[stage] / held * (1 + 1e-9);
  return int32_t(std::min(std::floor(fit), double(problem.microBatches)));
}

Schedule generate(const PipelineProblem &problem, bool longWarmUp) {
  const int32_t p = problem.ranks, m = problem.microBatches;
  Schedule schedule;
  int32_t ahead = m;
  for (int32_t stage = 0; stage < p; ++stage) {
    const int32_t wanted = longWarmUp ? 2 * (p - stage) - 1 : p - stage;
    ahead = std::min({ahead, wanted, mostAhead(problem, stage)});
    std::vector<Action> &list = schedule.roles.emplace_back();
    for (int32_t i = 0; i < ahead; ++i)
      list.push_back({stage, ActionKind::F, i});
    for (int32_t i = 0; i < m; ++i) {
      list.push_back({stage, ActionKind::B, i});
      if (i + ahead < m)
        list.push_back({stage, ActionKind::F, i + ahead});
    }
  }
  return schedule;
}

} // namespace

Schedule generateEarlyBackwardA(const PipelineProblem &problem) {
  return generate(problem, false);
}

Schedule generateEarlyBackwardB(const PipelineProblem &problem) {
  return generate(problem, true);
}

} // namespace takt
