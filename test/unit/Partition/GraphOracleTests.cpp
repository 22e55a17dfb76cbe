//===- GraphOracleTests.cpp - the graph solver against brute force --------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// The program over down-sets must agree with the enumeration of all acyclic
// partitions, in the value and in whether there is one; every answer must pass
// the independent check; no bound may lie above the best.
//
//===----------------------------------------------------------------------===//

#include "RandomGraph.h"

#include <gtest/gtest.h>

#include <algorithm>

using namespace takt;
using namespace takt::test;

namespace {

constexpr uint64_t kGraphs = 2000;

std::string faultOf(const GraphProblem &problem, const GraphResult &result) {
  return verify(problem, *result.partition).value_or("");
}

TEST(GraphOracle, AgreesOnTwoThousandGraphs) {
  int infeasible = 0, parted = 0, replicated = 0, mixed = 0, skipping = 0;
  for (uint64_t seed = 0; seed < kGraphs; ++seed) {
    SCOPED_TRACE(seed);
    const GraphProblem problem = randomGraph(seed);
    const GraphResult expected = bruteForceGraph(problem);
    const GraphResult found = solveGraph(problem);
    ASSERT_EQ(found.partition.has_value(), expected.partition.has_value())
        << found.infeasible.reason;
    EXPECT_FALSE(found.outOfWork);
    if (!found.partition) {
      EXPECT_FALSE(found.infeasible.reason.empty());
      ++infeasible;
      continue;
    }
    EXPECT_EQ(found.partition->objective, expected.partition->objective);
    EXPECT_EQ(found.partition->bound, found.partition->objective);
    EXPECT_EQ(found.partition->rung, GraphRung::DownSets);
    EXPECT_EQ(faultOf(problem, found), "");
    EXPECT_EQ(faultOf(problem, expected), "");
    const std::vector<GraphBlock> &blocks = found.partition->blocks;
    parted += blocks.size() > 1;
    skipping += blocks.size() > 2 && blocks[0].out > 0 && blocks[1].out > 0;
    bool two = false, more = false;
    for (const GraphBlock &block : blocks) {
      more |= block.replicas > 1;
      two |= block.device != blocks[0].device;
    }
    replicated += more;
    mixed += two;
  }
  // The problems must be of all kinds for the agreement to mean much.
  EXPECT_GT(infeasible, 200);
  EXPECT_LT(infeasible, 1000);
  EXPECT_GT(parted, 600);
  EXPECT_GT(replicated, 100);
  EXPECT_GT(mixed, 150);
  EXPECT_GT(skipping, 100);
}

TEST(GraphOracle, NoBoundLiesAboveTheBest) {
  int raised = 0, met = 0;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    const GraphProblem problem = randomGraph(seed);
    const GraphResult best = solveGraph(problem);
    if (!best.partition)
      continue;
    const GraphBound average = averageBound(problem);
    EXPECT_LE(average.value, best.partition->objective);
    const GraphBound bound = bottleneckBound(problem, *best.partition, {});
    EXPECT_LE(bound.value, best.partition->objective);
    EXPECT_GE(bound.value, average.value);
    raised += bound.value > average.value;
    met += bound.value == best.partition->objective;
  }
  if (!solver::available())
    GTEST_SKIP() << "this build has no solver, only averages were tested";
  EXPECT_GT(raised, 40);
  EXPECT_GT(met, 50);
}

/// Too many down-sets, or too much work: the answer is still one, and its bound
/// is still below the best.
TEST(GraphOracle, AnswersAndBoundsHoldAboveTheCap) {
  int above = 0, optimal = 0;
  for (uint64_t seed = 0; seed < 100; ++seed) {
    const GraphProblem problem = randomGraph(seed);
    const GraphResult best = solveGraph(problem);
    for (const bool byCap : {true, false}) {
      SCOPED_TRACE(testing::Message() << seed << " by cap " << byCap);
      GraphSettings settings;
      if (byCap)
        settings.maxDownSets = 3;
      else
        settings.workLimit = 3;
      settings.searchWork = 20000;
      const GraphResult found = solveGraph(problem, settings);
      if (!best.partition) {
        EXPECT_FALSE(found.partition.has_value());
        EXPECT_FALSE(found.infeasible.reason.empty());
        continue;
      }
      if (!found.partition) { // no order tried keeps the memory limit
        EXPECT_TRUE(found.outOfWork);
        continue;
      }
      EXPECT_EQ(faultOf(problem, found), "");
      EXPECT_GE(found.partition->objective, best.partition->objective);
      EXPECT_LE(found.partition->bound, best.partition->objective);
      above += found.partition->rung != GraphRung::DownSets;
      optimal += found.partition->objective == best.partition->objective;
    }
  }
  EXPECT_GT(above, 80);
  EXPECT_GT(optimal, 80);
}

TEST(GraphOracle, NoCutOfAnOrderIsBetter) {
  int worse = 0;
  for (uint64_t seed = 0; seed < 500; ++seed) {
    SCOPED_TRACE(seed);
    const GraphProblem problem = randomGraph(seed);
    const GraphResult best = solveGraph(problem);
    const GraphResult cut =
        solveGraphInOrder(problem, smallestFirstOrder(problem));
    if (!cut.partition)
      continue;
    ASSERT_TRUE(best.partition.has_value());
    EXPECT_EQ(faultOf(problem, cut), "");
    EXPECT_LE(best.partition->objective, cut.partition->objective);
    worse += best.partition->objective < cut.partition->objective;
    GraphSettings settings;
    settings.maxDownSets = 1;
    settings.searchWork = 1;
    settings.solver.workLimit = 0;
    const GraphResult searched = solveGraph(problem, settings);
    ASSERT_TRUE(searched.partition.has_value());
    EXPECT_LE(searched.partition->objective, cut.partition->objective);
  }
  EXPECT_GT(worse, 50);
}

TEST(GraphOracle, SameAnswerTwice) {
  for (uint64_t seed = 0; seed < 40; ++seed) {
    const GraphProblem problem = randomGraph(seed);
    GraphSettings settings;
    settings.maxDownSets = seed % 2 ? 100000 : 5;
    settings.searchWork = 50000;
    const GraphResult one = solveGraph(problem, settings);
    const GraphResult two = solveGraph(problem, settings);
    ASSERT_EQ(one.partition.has_value(), two.partition.has_value());
    EXPECT_EQ(one.infeasible.reason, two.infeasible.reason);
    if (!one.partition)
      continue;
    EXPECT_EQ(one.partition->work, two.partition->work);
    EXPECT_EQ(one.partition->bound, two.partition->bound);
    ASSERT_EQ(one.partition->blocks.size(), two.partition->blocks.size());
    for (size_t b = 0; b < one.partition->blocks.size(); ++b)
      EXPECT_EQ(one.partition->blocks[b].nodes, two.partition->blocks[b].nodes);
  }
}

} // namespace
