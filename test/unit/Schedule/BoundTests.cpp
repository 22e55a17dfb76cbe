//===- BoundTests.cpp - no order goes below the bounds
//----------------------===//
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

/// Every list of a rank: each micro-batch of each of its stages keeps its F
/// before its backward.
std::vector<std::vector<Action>> everyList(std::vector<int32_t> stages,
                                           int32_t m, bool splits) {
  using List = std::vector<Action>;
  std::vector<List> chains, result;
  for (const int32_t s : stages)
    for (int32_t i = 0; i < m; ++i) {
      chains.push_back({{s, ActionKind::F, i}});
      if (splits)
        chains.back().insert(chains.back().end(),
                             {{s, ActionKind::I, i}, {s, ActionKind::W, i}});
      else
        chains.back().push_back({s, ActionKind::B, i});
    }
  std::vector<size_t> taken(chains.size(), 0);
  List list;
  auto extend = [&](auto &self) -> void {
    bool complete = true;
    for (size_t c = 0; c < chains.size(); ++c) {
      if (taken[c] == chains[c].size())
        continue;
      complete = false;
      list.push_back(chains[c][taken[c]++]);
      self(self);
      list.pop_back();
      --taken[c];
    }
    if (complete)
      result.push_back(list);
  };
  extend(extend);
  return result;
}

/// Least makespan over all orders, or infinity.
double optimum(const PipelineProblem &problem,
               const std::vector<int32_t> &rankOfStage, bool splits) {
  std::vector<std::vector<std::vector<Action>>> choices;
  for (int32_t rank = 0; rank < problem.ranks; ++rank) {
    std::vector<int32_t> own;
    for (int32_t s = 0; s < problem.stages(); ++s)
      if (rankOfStage[s] == rank)
        own.push_back(s);
    choices.push_back(everyList(own, problem.microBatches, splits));
  }
  double best = std::numeric_limits<double>::infinity();
  std::vector<size_t> pick(choices.size(), 0);
  Pipeline pipeline{{"", {}}, rankOfStage};
  pipeline.schedule.roles.resize(problem.ranks);
  for (;;) {
    for (size_t r = 0; r < pick.size(); ++r)
      pipeline.schedule.roles[r] = choices[r][pick[r]];
    if (const auto timing = timePipeline(problem, pipeline)) {
      bool fits = true;
      for (size_t r = 0; r < problem.mostHeld.size(); ++r)
        fits &= timing->peakHeld[r] <= problem.mostHeld[r];
      if (fits)
        best = std::min(best, timing->makespan);
    }
    size_t r = 0;
    while (r < pick.size() && ++pick[r] == choices[r].size())
      pick[r++] = 0;
    if (r == pick.size())
      return best;
  }
}

struct Size {
  int32_t ranks, chunks, microBatches;
  bool splits;
};

TEST(PipelineBounds, AreNeverAboveTheOptimum) {
  const Size sizes[] = {{1, 1, 2, true},  {1, 1, 3, true},  {2, 1, 1, true},
                        {2, 1, 2, true},  {2, 1, 2, false}, {2, 1, 3, false},
                        {3, 1, 2, false}, {3, 1, 1, true},  {2, 2, 1, true},
                        {2, 2, 1, false}, {1, 2, 2, false}};
  std::mt19937 random(5);
  int met = 0, rows = 0;
  for (const Size &size : sizes)
    for (int round = 0; round < 12; ++round) {
      PipelineProblem problem =
          randomPipeline(random, size.ranks, size.chunks, size.microBatches);
      if (round % 3 == 0)
        for (StageTimes &t : problem.times)
          t.held = 2, t.kept = 1;
      const auto placement =
          round % 2 ? Placement::VShape : Placement::Interleaved;
      const std::vector<int32_t> ranks =
          placeStages(placement, size.ranks, size.chunks);
      if (round >= 4) {
        problem.mostHeld.assign(size.ranks, 0);
        for (int32_t s = 0; s < problem.stages(); ++s)
          problem.mostHeld[ranks[s]] += problem.at(s).held;
        for (double &most : problem.mostHeld)
          most += random() % 5;
      }
      const double best = optimum(problem, ranks, size.splits);
      const PipelineBounds bounds = boundPipeline(problem, ranks, size.splits);
      EXPECT_LE(bounds.headAndWork, best);
      EXPECT_LE(bounds.criticalPath, best);
      EXPECT_LE(bounds.warmUp, best);
      EXPECT_LE(bounds.memoryTime, best + 1e-9);
      EXPECT_LE(bounds.busyAndTail, best);
      ++rows;
      met += bounds.best() == best;
    }
  // They are worth something: most tiny optima are met.
  EXPECT_GE(2 * met, rows);
}

/// Equal stages of 1000 and four ranks, eight micro-batches: the figures of the
/// published comparison's rules.
TEST(PipelineBounds, EqualStages) {
  PipelineProblem problem{4, 1, 8};
  problem.times.assign(4, {1000, 1000, 1000, 1, 0.5});
  problem.mostHeld.assign(4, 4);
  const std::vector<int32_t> ranks = placeStages(Placement::Linear, 4, 1);
  const PipelineBounds bounds = boundPipeline(problem, ranks, true);
  EXPECT_EQ(bounds.headAndWork, 27000);
  EXPECT_EQ(bounds.criticalPath, 9000);
  EXPECT_EQ(bounds.warmUp, 27000);
  EXPECT_EQ(bounds.busyAndTail, 23000);
  EXPECT_EQ(bounds.best(), 27000);
}

} // namespace
