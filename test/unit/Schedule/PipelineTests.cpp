//===- PipelineTests.cpp - placement, timing and the registry
//---------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "PipelineReplay.h"

#include <gtest/gtest.h>

#include <limits>

using namespace takt;
using namespace takt::test;

namespace {

TEST(Placement, Shapes) {
  using Ranks = std::vector<int32_t>;
  EXPECT_EQ(placeStages(Placement::Linear, 3, 1), (Ranks{0, 1, 2}));
  EXPECT_EQ(placeStages(Placement::Interleaved, 3, 2),
            (Ranks{0, 1, 2, 0, 1, 2}));
  EXPECT_EQ(placeStages(Placement::VShape, 3, 3),
            (Ranks{0, 1, 2, 2, 1, 0, 0, 1, 2}));
}

/// Lists drawn at random: some run, others wait in a circle, and some lack an
/// action or put it before what it needs.
TEST(PipelineTiming, AgreesWithAReplay) {
  std::mt19937 random(3);
  int ran = 0, stuck = 0;
  for (int round = 0; round < 3000; ++round) {
    const int32_t p = 1 + random() % 3, v = 1 + random() % 2,
                  m = 1 + random() % 2;
    PipelineProblem problem = randomPipeline(random, p, v, m);
    const auto shape = round % 2 ? Placement::VShape : Placement::Interleaved;
    Pipeline pipeline{{"", {}}, placeStages(shape, p, v)};
    pipeline.schedule.roles.resize(p);
    for (int32_t s = 0; s < problem.stages(); ++s)
      for (int32_t i = 0; i < m; ++i) {
        auto &list = pipeline.schedule.roles[pipeline.rankOfStage[s]];
        std::vector<ActionKind> kinds = {ActionKind::F, ActionKind::B};
        if (random() % 2)
          kinds = {ActionKind::F, ActionKind::I, ActionKind::W};
        size_t least = 0;
        for (const ActionKind kind : kinds) {
          const size_t at = least + random() % (list.size() - least + 1);
          list.insert(list.begin() + at, {s, kind, i});
          least = at + 1;
        }
      }
    if (random() % 8 == 0) {
      auto &list = pipeline.schedule.roles[random() % p];
      std::swap(list[random() % list.size()], list[random() % list.size()]);
    }
    if (random() % 8 == 0)
      pipeline.schedule.roles[random() % p].pop_back();
    const auto timing = timePipeline(problem, pipeline);
    const auto expected = replay(problem, pipeline);
    ASSERT_EQ(timing.has_value(), expected.has_value()) << "round " << round;
    ++(timing ? ran : stuck);
    if (!timing)
      continue;
    EXPECT_EQ(timing->start, expected->start);
    EXPECT_EQ(timing->makespan, expected->makespan);
    EXPECT_EQ(timing->longestSpan, expected->longestSpan);
    for (int32_t rank = 0; rank < p; ++rank)
      EXPECT_NEAR(timing->peakHeld[rank], expected->peakHeld[rank], 1e-9);
  }
  EXPECT_GT(ran, 500);
  EXPECT_GT(stuck, 500);
}

TEST(PipelineTiming, RefusesListsOfAnotherProblem) {
  const PipelineProblem problem{2, 1, 1};
  std::string why;
  const auto pipeline = generatePipeline("1f1b", problem, why);
  ASSERT_TRUE(pipeline) << why;
  for (const Action &stranger :
       {Action{2, ActionKind::F, 0}, Action{-1, ActionKind::F, 0},
        Action{0, ActionKind::F, 1}, Action{1, ActionKind::F, 0}}) {
    Pipeline wrong = *pipeline;
    wrong.schedule.roles[0].push_back(stranger);
    EXPECT_FALSE(timePipeline(problem, wrong));
  }
  Pipeline wrong = *pipeline;
  wrong.schedule.roles.pop_back();
  EXPECT_FALSE(timePipeline(problem, wrong));
}

TEST(Families, GPipeAndOneFOneB) {
  for (int32_t p = 1; p <= 8; ++p)
    for (int32_t m = 1; m <= 24; ++m)
      for (const char *name : {"gpipe", "1f1b"}) {
        const PipelineProblem problem{p, 1, m};
        std::string why;
        const auto pipeline = generatePipeline(name, problem, why);
        ASSERT_TRUE(pipeline) << why;
        EXPECT_EQ(pipeline->schedule.name, name);
        const auto timing = timePipeline(problem, *pipeline);
        ASSERT_TRUE(timing);
        EXPECT_EQ(timing->makespan, 3.0 * (m + p - 1));
        for (int32_t r = 0; r < p; ++r) {
          const bool all = pipeline->schedule.name == "gpipe";
          EXPECT_EQ(timing->peakHeld[r], all ? m : std::min(m, p - r));
          EXPECT_EQ(timing->busy[r], 3.0 * m);
        }
      }
}

std::string refusal(std::string_view family, const PipelineProblem &problem) {
  std::string why;
  EXPECT_FALSE(generatePipeline(family, problem, why));
  return why;
}

TEST(Families, SayWhyNot) {
  EXPECT_NE(refusal("zb-9", {2, 1, 4}).find("there is no schedule 'zb-9'"),
            std::string::npos);
  EXPECT_EQ(refusal("1f1b", {2, 2, 4}),
            "'1f1b' is made for 1 stage a rank, not 2");
  EXPECT_EQ(refusal("1f1b", {2, 1, 0}),
            "micro-batches must be at least 1, not 0");
  PipelineProblem tight{2, 1, 4, {}, 0, {1, 1}};
  EXPECT_EQ(refusal("1f1b", tight),
            "'1f1b' holds 2 on rank 0, which may hold 1");
  tight.mostHeld = {2, 0.5};
  EXPECT_EQ(refusal("gpipe", tight),
            "no schedule fits: rank 1 may hold 0.5, one micro-batch needs 1");
}

// Both directions at once: rank 0 begins with one chain, rank 1 with the other.
TEST(PipelineTiming, ChainsRunSideBySide) {
  PipelineProblem problem{2, 2, 1};
  problem.chains = 2;
  problem.hop = 0.5;
  Pipeline pipeline{{"both", {}}, placeStages(Placement::VShape, 2, 2)};
  using K = ActionKind;
  pipeline.schedule.roles = {
      {{0, K::F, 0}, {3, K::F, 0}, {3, K::B, 0}, {0, K::B, 0}},
      {{2, K::F, 0}, {1, K::F, 0}, {1, K::B, 0}, {2, K::B, 0}}};
  const auto timing = timePipeline(problem, pipeline);
  ASSERT_TRUE(timing);
  const std::vector<double> start = {0, 1.5, 2.5, 5};
  EXPECT_EQ(timing->start[0], start);
  EXPECT_EQ(timing->start[1], start);
  EXPECT_EQ(verifyPipeline(problem, pipeline), std::nullopt);
  EXPECT_EQ(boundPipeline(problem, pipeline.rankOfStage, false).best(), 6);
  problem.mostHeld = {2, 1};
  EXPECT_EQ(verifyPipeline(problem, pipeline).value_or(""),
            "'both' holds 2 on rank 1, which may hold 1");
}

TEST(PipelineTiming, ReplicasShareAStage) {
  PipelineProblem problem{3, 1, 4};
  problem.replicas = {2, 1};
  Pipeline pipeline{{"", {}}, {0, 2}};
  auto &roles = pipeline.schedule.roles;
  roles.resize(3);
  for (int32_t m = 0; m < 4; ++m)
    for (const ActionKind kind : {ActionKind::F, ActionKind::B}) {
      roles[m % 2].push_back({0, kind, m});
      roles[2].push_back({1, kind, m});
    }
  const auto timing = timePipeline(problem, pipeline);
  ASSERT_TRUE(timing);
  // Stage 1 gets micro-batches 0 and 1 at once, and 2 once 0 is back.
  EXPECT_EQ(timing->start[2], (std::vector<double>{1, 2, 4, 5, 7, 8, 10, 11}));
  EXPECT_EQ(timing->start[0], (std::vector<double>{0, 4, 6, 10}));
  EXPECT_EQ(boundPipeline(problem, {0, 2}, false).best(), 12);
  roles[0].push_back({0, ActionKind::F, 1});
  EXPECT_FALSE(timePipeline(problem, pipeline));
}

TEST(PipelineProblem, ChecksCopies) {
  auto fault = [](PipelineProblem problem) {
    return problem.check().value_or("none");
  };
  PipelineProblem problem{3, 1, 1};
  problem.chains = 2;
  EXPECT_EQ(fault(problem), "3 stages cannot be 2 chains of equal length");
  problem.chains = 1;
  problem.replicas = {2, 2};
  EXPECT_EQ(fault(problem), "3 ranks cannot be 4 replicas");
  problem.replicas = {3, 0};
  EXPECT_EQ(fault(problem), "stage 1 needs at least 1 replica, not 0");
  problem.replicas = {2, 1};
  EXPECT_EQ(fault(problem), "none");
  EXPECT_EQ(refusal("1f1b", problem), "'1f1b' takes no replicas");
  problem.chunks = 2;
  EXPECT_EQ(fault(problem), "ranks with 2 stages each cannot be replicas");
  problem = {2, 1, 1};
  problem.group = -1;
  EXPECT_EQ(fault(problem), "a group cannot have -1 micro-batches");
  problem.group = 2;
  EXPECT_EQ(refusal("1f1b", problem), "'1f1b' takes no group of micro-batches");
  problem.group = 0;
  problem.chains = 2;
  EXPECT_EQ(refusal("gpipe", problem),
            "'gpipe' is made for 1 chain of stages, not 2");
}

TEST(PipelineProblem, Checks) {
  auto fault = [](PipelineProblem problem) {
    return problem.check().value_or("none");
  };
  const double inf = std::numeric_limits<double>::infinity();
  EXPECT_EQ(fault({2, 2, 4}), "none");
  EXPECT_EQ(fault({0, 1, 1}), "ranks must be at least 1, not 0");
  EXPECT_EQ(fault({1, 0, 1}), "stages a rank must be at least 1, not 0");
  EXPECT_NE(fault({1 << 20, 1 << 20, 1 << 20}).find("more than the 16777216"),
            std::string::npos);
  EXPECT_EQ(fault({2, 1, 1, {{}}}), "times of 1 stages, but there are 2");
  EXPECT_EQ(fault({1, 1, 1, {{-1, 1, 1, 1, 0.5}}}),
            "stage 0: forward must be finite and not negative, not -1");
  EXPECT_EQ(fault({1, 1, 1, {{1, 1, 1, 1, 2}}}), "stage 0: keeps 2 of 1 held");
  EXPECT_EQ(fault({1, 1, 1, {}, inf}),
            "hop must be finite and not negative, not inf");
  EXPECT_EQ(fault({2, 1, 1, {}, 0, {1}}),
            "memory limits of 1 ranks, but there are 2");
  EXPECT_EQ(fault({1, 1, 1, {}, 0, {-1}}), "the memory limit of rank 0 must be "
                                           "finite and not negative, not -1");
}

} // namespace
