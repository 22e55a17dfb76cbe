//===- PlacedTests.cpp - stages whose ranks are given ---------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Answers against all assignments of small problems; bounds and limits of
// larger ones.
//
//===----------------------------------------------------------------------===//
#include "RandomProblem.h"

#include <gtest/gtest.h>

#include <algorithm>

using namespace takt;
using test::Random;

namespace {

/// Stages on ranks at random, counted by their first stages.
void place(Random &random, PartitionProblem &problem, int64_t stages) {
  problem.cuts.reset();
  problem.maxStages = 0;
  problem.stages = stages;
  problem.rankOfStage.clear();
  problem.heldByStage.clear();
  int32_t next = 0;
  for (int64_t s = 0; s < stages; ++s) {
    const int32_t rank = int32_t(random.in(0, std::min<int64_t>(next, 2)));
    next = std::max(next, rank + 1);
    problem.rankOfStage.push_back(rank);
    problem.heldByStage.push_back(random.in(1, problem.microBatches));
  }
  const int64_t segments = problem.segments.size();
  if (random.chance(15))
    problem.pins.push_back(
        {random.in(0, segments - 1), random.in(0, stages - 1)});
  if (random.chance(15)) {
    const int64_t first = random.in(0, segments - 1);
    problem.apart.push_back({first, random.in(first, segments - 1)});
  }
}

PartitionProblem randomPlaced(uint64_t seed) {
  PartitionProblem problem = test::randomProblem(seed);
  Random random(seed + 77);
  place(random, problem, random.in(2, 5));
  return problem;
}

/// A chain of equal blocks with ends of their own, as of a GPT.
PartitionProblem blocks(int64_t count, int64_t ranks, int64_t chunks) {
  PartitionProblem problem;
  for (int64_t i = 0; i < count + 2; ++i) {
    const bool isEnd = i == 0 || i == count + 1;
    SegmentCost segment;
    segment.name = "s" + std::to_string(i);
    segment.time = {isEnd ? 700 : 3000};
    segment.update = {10};
    segment.saved = {1000};
    segment.workspace = {500};
    segment.output = {100};
    segment.outputWhole = 100;
    segment.weights = segment.gradients = 4000;
    problem.segments.push_back(segment);
  }
  problem.cluster.devices = problem.cluster.devicesPerNode = ranks;
  problem.microBatches = 4 * ranks;
  problem.stages = ranks * chunks;
  for (int64_t s = 0; s < problem.stages; ++s) {
    problem.rankOfStage.push_back(int32_t(s % ranks));
    problem.heldByStage.push_back(ranks);
  }
  return problem;
}

} // namespace

TEST(PartitionPlaced, AgreesWithAllAssignments) {
  int infeasible = 0, shared = 0;
  for (uint64_t seed = 0; seed < 1000; ++seed) {
    SCOPED_TRACE(seed);
    const PartitionProblem problem = randomPlaced(seed);
    ASSERT_EQ(problem.check().value_or(""), "");
    const PartitionResult expected = bruteForcePartition(problem);
    const PartitionResult found = solvePartition(problem);
    ASSERT_EQ(found.partition.has_value(), expected.partition.has_value())
        << found.infeasible.reason;
    if (!found.partition) {
      EXPECT_FALSE(found.outOfWork);
      EXPECT_FALSE(found.infeasible.reason.empty());
      ++infeasible;
      continue;
    }
    EXPECT_EQ(found.partition->objective, expected.partition->objective);
    EXPECT_EQ(found.partition->bound, found.partition->objective);
    EXPECT_EQ(verify(problem, *found.partition).value_or(""), "");
    EXPECT_EQ(verify(problem, *expected.partition).value_or(""), "");
    shared += numRanks(problem) < problem.stages;
  }
  EXPECT_GT(infeasible, 150);
  EXPECT_LT(infeasible, 800);
  EXPECT_GT(shared, 150);
}

TEST(PartitionPlaced, BoundsHoldUnderAnyWorkLimit) {
  int stopped = 0;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    const PartitionProblem problem = randomPlaced(seed);
    const PartitionResult expected = bruteForcePartition(problem);
    for (int64_t limit = 1; limit < 3000; limit *= 3) {
      SCOPED_TRACE(testing::Message() << seed << " limit " << limit);
      const PartitionResult found = solvePartition(problem, limit);
      if (!found.partition) {
        EXPECT_TRUE(found.outOfWork || !expected.partition);
        continue;
      }
      ASSERT_TRUE(expected.partition.has_value());
      EXPECT_LE(found.partition->bound, expected.partition->objective);
      EXPECT_GE(found.partition->objective, expected.partition->objective);
      EXPECT_EQ(verify(problem, *found.partition).value_or(""), "");
      stopped += found.partition->method == "heuristic (work limit)";
    }
  }
  EXPECT_GT(stopped, 20);
}

TEST(PartitionPlaced, EqualBlocksAreNearTheirBound) {
  for (int64_t ranks : {2, 4, 8, 16})
    for (int64_t chunks : {2, 4}) {
      const PartitionProblem problem =
          blocks(6 * ranks * chunks, ranks, chunks);
      const PartitionResult found = solvePartition(problem);
      ASSERT_TRUE(found.partition);
      EXPECT_EQ(verify(problem, *found.partition).value_or(""), "");
      EXPECT_LE(found.partition->gap(), 0.05)
          << ranks << " ranks, " << chunks << " chunks";
    }
}

TEST(PartitionPlaced, TheBottleneckIsTheRankNotTheStage) {
  // Stages 0 and 2 share a rank: the long block stands between them.
  PartitionProblem problem = blocks(3, 2, 1);
  problem.segments[2].time = {9000};
  problem.stages = 3;
  problem.rankOfStage = {0, 1, 0};
  problem.heldByStage = {2, 2, 2};
  const PartitionResult found = solvePartition(problem);
  ASSERT_TRUE(found.partition);
  EXPECT_EQ(found.partition->stages[1].begin, 2);
  EXPECT_EQ(found.partition->stages[1].end, 3);
  EXPECT_EQ(found.partition->stages[0].firstDevice, 0);
  EXPECT_EQ(found.partition->stages[2].firstDevice, 0);
  EXPECT_EQ(found.partition->stages[1].firstDevice, 1);
}

TEST(PartitionPlaced, WhatNeedsTooMuchSaysHowMuch) {
  PartitionProblem problem = blocks(8, 2, 2);
  problem.cluster.memory = 20000;
  PartitionResult found = solvePartition(problem);
  EXPECT_FALSE(found.partition || found.outOfWork);
  EXPECT_NE(found.infeasible.reason.find("4 stages on 2 ranks need at least"),
            std::string::npos)
      << found.infeasible.reason;
  problem.cluster.memory = 0;
  problem.cluster.devices = 1;
  EXPECT_EQ(solvePartition(problem).infeasible.reason,
            "2 ranks need at least 2 devices, the cluster has 1");
  problem = blocks(1, 2, 2);
  EXPECT_EQ(solvePartition(problem).infeasible.reason,
            "4 stages need as many segments to cut between, the model has 3");
}

TEST(PartitionPlaced, PlacementsThatMakeNoSenseAreRefused) {
  PartitionProblem problem = blocks(8, 2, 2);
  PartitionProblem skipped = problem;
  skipped.rankOfStage = {0, 2, 0, 1};
  EXPECT_EQ(skipped.check(), "stage 1 is on rank 2, expected at most 1: ranks "
                             "count by their first stages");
  PartitionProblem few = problem;
  few.heldByStage.pop_back();
  EXPECT_EQ(few.check(), "4 stages have a rank, 3 say how many micro-batches "
                         "they hold");
  PartitionProblem other = problem;
  other.stages = 5;
  EXPECT_EQ(other.check(), "4 stages have a rank, there are 5");
  PartitionProblem much = problem;
  much.heldByStage[3] = 9;
  EXPECT_EQ(much.check(), "stage 3 holds 9 of 8 micro-batches");
}
