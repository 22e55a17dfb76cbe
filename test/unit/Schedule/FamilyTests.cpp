//===- FamilyTests.cpp - properties of every family of schedules ----------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Every family, whatever it is, makes lists that do all the work; lists with an
// action left out, doubled or moved are refused exactly when they cannot run.
//
//===----------------------------------------------------------------------===//

#include "FamilyReplay.h"

#include <gtest/gtest.h>

#include <random>
#include <sstream>

using namespace takt;
using namespace takt::test;

namespace {

/// Problems of a family: p <= 8, m <= 24, chunks <= 4.
template <typename Body>
void forEachProblem(const ScheduleFamily &family, Body body) {
  for (int32_t p = 1; p <= 8; ++p)
    for (int32_t chunks = family.leastChunks;
         chunks <= std::min(4, family.mostChunks); ++chunks)
      for (int32_t m = 1; m <= 24; ++m) {
        PipelineProblem problem{p, chunks, m};
        problem.chains = family.chains;
        if (family.refuse && family.refuse(problem))
          continue;
        body(problem);
      }
}

std::string textOf(const PipelineProblem &problem, const Pipeline &pipeline) {
  std::ostringstream out;
  out << pipeline.schedule.name << " p " << problem.ranks << " v "
      << problem.chunks << " m " << problem.microBatches;
  return out.str();
}

/// So that gradients add up the same in every schedule.
void expectBackwardsInOrder(const PipelineProblem &problem,
                            const Pipeline &pipeline) {
  std::vector<int32_t> next(problem.stages(), 0);
  for (const auto &list : pipeline.schedule.roles)
    for (const Action &a : list)
      if (a.kind == ActionKind::B || a.kind == ActionKind::I) {
        EXPECT_EQ(a.microBatch, next[a.stage]++) << textOf(problem, pipeline);
      }
}

TEST(EveryFamily, DoesAllTheWork) {
  for (const ScheduleFamily &family : scheduleFamilies())
    forEachProblem(family, [&](const PipelineProblem &problem) {
      std::string why;
      const auto pipeline = generatePipeline(family.name, problem, why);
      ASSERT_TRUE(pipeline) << family.name << ": " << why;
      EXPECT_EQ(verifyPipeline(problem, *pipeline), std::nullopt);
      EXPECT_TRUE(runsToItsEnd(problem, *pipeline))
          << textOf(problem, *pipeline);
      expectBackwardsInOrder(problem, *pipeline);
    });
}

/// What must stand before an action of the same list.
bool dependsOn(const Action &late, const Action &early) {
  if (late.stage != early.stage || late.microBatch != early.microBatch)
    return false;
  return late.kind == ActionKind::W
             ? early.kind != ActionKind::W
             : late.kind != ActionKind::F && early.kind == ActionKind::F;
}

TEST(EveryFamily, RefusesBrokenLists) {
  std::mt19937 random(11);
  int refused = 0, accepted = 0;
  for (const ScheduleFamily &family : scheduleFamilies())
    forEachProblem(family, [&](PipelineProblem problem) {
      std::string why;
      const auto pipeline = generatePipeline(family.name, problem, why);
      ASSERT_TRUE(pipeline) << why;
      problem.mostHeld = timePipeline(problem, *pipeline)->peakHeld;
      const int32_t rank = random() % problem.ranks;
      const std::vector<Action> &list = pipeline->schedule.roles[rank];
      const size_t at = random() % list.size();
      Pipeline dropped = *pipeline;
      dropped.schedule.roles[rank].erase(dropped.schedule.roles[rank].begin() +
                                         at);
      EXPECT_NE(verifyPipeline(problem, dropped), std::nullopt);
      Pipeline doubled = *pipeline;
      doubled.schedule.roles[rank].insert(doubled.schedule.roles[rank].begin() +
                                              random() % (list.size() + 1),
                                          list[at]);
      EXPECT_NE(verifyPipeline(problem, doubled), std::nullopt);
      for (int round = 0; round < 4; ++round) {
        const size_t from = random() % list.size(), to = random() % list.size();
        Pipeline moved = *pipeline;
        std::vector<Action> &other = moved.schedule.roles[rank];
        const Action action = other[from];
        other.erase(other.begin() + from);
        other.insert(other.begin() + to, action);
        bool early = false;
        for (size_t i = to; i < from; ++i)
          early |= dependsOn(action, list[i]);
        const bool fails = verifyPipeline(problem, moved).has_value();
        EXPECT_EQ(fails, !runsToItsEnd(problem, moved))
            << textOf(problem, moved) << ": " << toText(action) << " of rank "
            << rank << " from " << from << " to " << to;
        EXPECT_TRUE(fails || !early);
        ++(fails ? refused : accepted);
      }
    });
  EXPECT_GT(refused, 1000);
  EXPECT_GT(accepted, 1000);
}

} // namespace
