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
#include "TestModels.h"

#include "takt/Lower/TimedPlan.h"

#include "takt-rt/core/clock.h"

#include <gtest/gtest.h>

using namespace takt;

static TimedPlanProblem interleavedProblem(int32_t ranks, int32_t m) {
  TimedPlanProblem problem;
  problem.shape = {2 * ranks, m};
  problem.schedule = test::interleaved(ranks, 2, m, /*split=*/true);
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
