//===- SkipTests.cpp - paths through some of the stages -------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "ChainMakespan.h"

#include <algorithm>
#include <random>

using namespace takt;

namespace {

/// Three stages of two nodes.
SkipProblem toy(int32_t microBatches) {
  SkipProblem problem;
  problem.stages = 3;
  problem.stageOfNode = {0, 0, 1, 1, 2, 2};
  problem.hop = equalHops(6, 0.25);
  problem.microBatches = microBatches;
  problem.visits = 3;
  return problem;
}

/// Shortest makespan over all choices of nodes, by recursion over micro-batches
/// and positions, with a queue at every node.
double shortestToy(const SkipProblem &problem,
                   std::vector<std::vector<int32_t>> &paths) {
  if (paths.size() == size_t(problem.microBatches)) {
    ChainProblem chains;
    chains.ranks = problem.nodes();
    chains.hop = problem.hop;
    chains.mostHeld.assign(chains.ranks, problem.mostInFlight);
    chains.steps = {{"F0"}, {"F1"}, {"F2"}, {"B0"}, {"B1"}, {"B2"}};
    for (const std::vector<int32_t> &nodes : paths) {
      auto &path = chains.paths.emplace_back();
      for (int32_t i = 0; i < 3; ++i)
        path.push_back({i, nodes[i], problem.forward, 1, 0});
      for (int32_t i = 2; i >= 0; --i)
        path.push_back({3 + i, nodes[i], problem.backward, 0, 1, 1, i});
    }
    return timeChains(chains, listChains(chains).value())->makespan;
  }
  double best = 1e300;
  for (int32_t choice = 0; choice < 8; ++choice) {
    paths.push_back({choice & 1, 2 + (choice >> 1 & 1), 4 + (choice >> 2)});
    best = std::min(best, shortestToy(problem, paths));
    paths.pop_back();
  }
  return best;
}

TEST(Skip, RoutesAroundASlowLink) {
  for (int32_t m : {2, 3, 4}) {
    SkipProblem problem = toy(m);
    problem.hop[0][2] = problem.hop[2][0] = 40;
    ASSERT_EQ(problem.check(), std::nullopt);
    const auto plan = planSkip(problem);
    ASSERT_TRUE(plan);
    EXPECT_TRUE(plan->allTried);
    EXPECT_EQ(makespan(plan->plan), plan->makespan);
    std::vector<std::vector<int32_t>> paths;
    EXPECT_EQ(plan->makespan, shortestToy(problem, paths));
    for (const std::vector<int32_t> &nodes : plan->nodes)
      EXPECT_FALSE(nodes[0] == 0 && nodes[1] == 2);
  }
}

/// Twenty nodes in five places far from each other, three or four to a stage.
SkipProblem spread(int32_t microBatches, int32_t visits) {
  SkipProblem problem;
  problem.stages = 6;
  problem.microBatches = microBatches;
  problem.visits = visits;
  std::mt19937 random(41);
  problem.hop = equalHops(20, 0);
  for (int32_t a = 0; a < 20; ++a) {
    problem.stageOfNode.push_back(a % 6);
    for (int32_t b = 0; b < a; ++b)
      problem.hop[a][b] = problem.hop[b][a] =
          a / 4 == b / 4 ? 0.1 : 1 + 0.25 * double(random() % 12);
  }
  return problem;
}

TEST(Skip, VisitingFewerStagesIsFasterAndBalanced) {
  std::vector<double> makespans;
  for (const SkipProblem &problem : {spread(8, 6), spread(8, 4)}) {
    ASSERT_EQ(problem.check(), std::nullopt);
    const auto plan = planSkip(problem);
    ASSERT_TRUE(plan);
    EXPECT_FALSE(plan->allTried);
    EXPECT_EQ(makespan(plan->plan), plan->makespan);
    makespans.push_back(plan->makespan);
    std::vector<int32_t> counts(6, 0);
    for (const std::vector<int32_t> &nodes : plan->nodes) {
      EXPECT_EQ(nodes.size(), size_t(problem.visits));
      EXPECT_TRUE(
          std::is_sorted(nodes.begin(), nodes.end(), [&](int32_t a, int32_t b) {
            return problem.stageOfNode[a] < problem.stageOfNode[b];
          }));
      for (int32_t node : nodes)
        ++counts[problem.stageOfNode[node]];
    }
    const auto [least, most] =
        std::minmax_element(counts.begin() + 1, counts.end() - 1);
    EXPECT_LE(*most - *least, 1);
    // A node never runs two at a time, by the times themselves.
    const auto timing = timeChains(plan->plan.problem, plan->plan.schedule);
    for (size_t node = 0; node < timing->start.size(); ++node)
      for (size_t i = 1; i < timing->start[node].size(); ++i)
        EXPECT_GE(timing->start[node][i], timing->end[node][i - 1]);
  }
  EXPECT_LT(makespans[1], makespans[0]);
}

TEST(Skip, LocalSearchComesNearAllCombinations) {
  SkipProblem problem = toy(5);
  problem.hop[0][2] = problem.hop[2][0] = 40;
  const auto plan = planSkip(problem);
  ASSERT_TRUE(plan);
  EXPECT_FALSE(plan->allTried);
  std::vector<std::vector<int32_t>> paths;
  EXPECT_LE(plan->makespan, 1.1 * shortestToy(problem, paths));
}

TEST(Skip, ReorderedPathsMayBeShorter) {
  // One node a stage; the middle ones are near the ends the wrong way round.
  SkipProblem problem;
  problem.stages = 4;
  problem.stageOfNode = {0, 1, 2, 3};
  problem.hop = equalHops(4, 1);
  problem.visits = 4;
  problem.hop[0][1] = problem.hop[1][0] = 9;
  problem.hop[2][3] = problem.hop[3][2] = 9;
  const double inOrder = planSkip(problem)->makespan;
  EXPECT_EQ(inOrder, 4 * 3 + 2 * (9 + 1 + 9));
  problem.reorder = true;
  const auto plan = planSkip(problem);
  EXPECT_EQ(plan->nodes[0], (std::vector<int32_t>{0, 2, 1, 3}));
  EXPECT_EQ(plan->makespan, 4 * 3 + 2 * 3);
}

TEST(Skip, ExclusiveLinksCarryOneMessageAtATime) {
  // One node a stage. F0 ends at 1 and 2, both messages take 5.
  SkipProblem problem;
  problem.stages = problem.visits = problem.microBatches = 2;
  problem.stageOfNode = {0, 1};
  problem.hop = equalHops(2, 5);
  // 6 F1.0, 7 B1.0, 9 F1.1, 10 B1.1; B0.1 ends at 12 + 5 + 2.
  EXPECT_EQ(planSkip(problem)->makespan, 19);
  problem.exclusiveLinks = true;
  // F1.1 at 11, B1.1 at 12; B0.1 ends at 14 + 5 + 2.
  const auto plan = planSkip(problem);
  ASSERT_TRUE(plan);
  EXPECT_EQ(makespan(plan->plan), 21);
  EXPECT_EQ(plan->makespan, 21);
  EXPECT_EQ(plan->plan.schedule.ranks[2 + 1].size(), 2u); // from 0 to 1
  EXPECT_EQ(plan->plan.schedule.ranks[2 + 2].size(), 2u); // from 1 to 0

  SkipProblem wide = toy(3);
  wide.exclusiveLinks = true;
  wide.hop[0][2] = wide.hop[2][0] = 40;
  ASSERT_EQ(wide.check(), std::nullopt);
  const auto detour = planSkip(wide);
  ASSERT_TRUE(detour);
  EXPECT_EQ(makespan(detour->plan), detour->makespan);
  wide.exclusiveLinks = false;
  EXPECT_GE(detour->makespan, planSkip(wide)->makespan);
  for (const std::vector<int32_t> &nodes : detour->nodes)
    EXPECT_FALSE(nodes[0] == 0 && nodes[1] == 2);
}

TEST(Skip, NamesWhatItCannotDo) {
  auto why = [](auto change) {
    SkipProblem problem = toy(2);
    change(problem);
    return problem.check().value_or("");
  };
  using P = SkipProblem;
  EXPECT_EQ(why([](P &) {}), "");
  EXPECT_EQ(why([](P &p) { p.visits = 1; }), "'visits' is 1, not from 2 to 3");
  EXPECT_EQ(why([](P &p) { p.stageOfNode[2] = p.stageOfNode[3] = 0; }),
            "no node is of stage 1");
  EXPECT_EQ(why([](P &p) { p.stageOfNode[2] = 3; }),
            "a node is of stage 3, and there are 3");
  EXPECT_EQ(why([](P &p) { p.mostInFlight = 0; }),
            "'mostInFlight' is 0, not at least 1");
  EXPECT_EQ(why([](P &p) { p.hop.pop_back(); }),
            "'hop' has 5 rows for 6 ranks");
  EXPECT_EQ(why([](P &p) {
              p.stages = 64;
              p.visits = 32;
              p.hop.clear();
              p.stageOfNode.clear();
              for (int32_t s = 0; s < 64; ++s)
                p.stageOfNode.push_back(s);
            }),
            "a micro-batch has more than 16384 paths to choose from");
  EXPECT_EQ(why([](P &p) { p.stageOfNode.resize(513, 0); }),
            "there are 513 nodes, more than 512");
  SkipProblem one;
  one.stageOfNode = {0};
  one.microBatches = 3;
  EXPECT_EQ(one.check(), std::nullopt);
  EXPECT_EQ(planSkip(one)->makespan, 9);
}

} // namespace
