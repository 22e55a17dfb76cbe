//===- LargeScheduleTest.cpp - 400,000 actions under the clock ------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Interleaved 1F1B of 64 ranks with two chunks each and 1,024 micro-batches,
// the backward in two actions. `scripts/acceptance.sh 2` measures this program.
//
//===----------------------------------------------------------------------===//
#include "takt/Lower/TimedPlan.h"

#include "takt-rt/core/clock.h"

#include <gtest/gtest.h>

#include <algorithm>

using namespace takt;

/// Stage c * ranks + r is chunk c of rank r; micro-batches go through the
/// chunks of a rank in groups of `ranks` (Narayanan et al. 2021, arXiv
/// 2104.04473).
static Schedule interleaved(int32_t ranks, int32_t chunks, int32_t m) {
  Schedule schedule{"interleaved", {}};
  int32_t total = m * chunks, round = ranks * chunks;
  for (int32_t rank = 0; rank < ranks; ++rank) {
    std::vector<Action> actions;
    auto add = [&](int32_t turn, bool forward) {
      int32_t chunk = turn % round / ranks;
      int32_t microBatch = turn / round * ranks + turn % ranks;
      int32_t stage = (forward ? chunk : chunks - 1 - chunk) * ranks + rank;
      if (forward)
        return actions.push_back({stage, ActionKind::F, microBatch});
      actions.push_back({stage, ActionKind::I, microBatch});
      actions.push_back({stage, ActionKind::W, microBatch});
    };
    int32_t ahead = (ranks - rank - 1) * 2 + (chunks - 1) * ranks;
    ahead = std::min(ahead, total);
    for (int32_t turn = 0; turn < ahead; ++turn)
      add(turn, true);
    for (int32_t turn = ahead; turn < total; ++turn) {
      add(turn, true);
      add(turn - ahead, false);
    }
    for (int32_t turn = total - ahead; turn < total; ++turn)
      add(turn, false);
    schedule.roles.push_back(std::move(actions));
  }
  return schedule;
}

static TimedPlanProblem interleavedProblem(int32_t ranks, int32_t m) {
  TimedPlanProblem problem;
  problem.shape = {2 * ranks, m};
  problem.schedule = interleaved(ranks, 2, m);
  problem.times = {{10, 10, 10, -1}};
  return problem;
}

// The last rank works without a pause once the first forward has come down and
// the last input gradient must go up: v m (F + I + W) + (p - 1) (F + I).
TEST(LargeSchedule, SimulatesInterleaved) {
  TimedPlanProblem problem = interleavedProblem(64, 1024);
  size_t actions = 0;
  for (const auto &list : problem.schedule.roles)
    actions += list.size();
  EXPECT_EQ(actions, 393216u);
  ASSERT_FALSE(problem.check());
  rt::SimulateOptions options;
  options.keepRecords = false;
  rt::Simulation run = rt::simulate(timedPlan(problem), options);
  EXPECT_EQ(run.makespan, 2 * 1024 * 30 + 63 * 20);
  for (rt::Nanos busy : run.busy)
    EXPECT_EQ(busy, 2 * 1024 * 30);
}
