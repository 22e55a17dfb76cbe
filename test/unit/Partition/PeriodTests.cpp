//===- PeriodTests.cpp - stages of a continuous flow ----------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// The least period, and of equal ones the least latency, against the
// enumeration of all assignments.
//
//===----------------------------------------------------------------------===//

#include "RandomProblem.h"

#include <gtest/gtest.h>

#include <algorithm>

using namespace takt;
using namespace takt::test;

namespace {

/// A random chain of which only the forward is left.
PartitionProblem flowing(uint64_t seed) {
  PartitionProblem problem = randomProblem(seed);
  problem.continuous = true;
  problem.microBatches = 1;
  for (SegmentCost &segment : problem.segments) {
    segment.outputWhole *= seed % 2 == 0 ? 8 : 1; // links that hold stages up
    std::fill(segment.update.begin(), segment.update.end(), 0);
    segment.gradients = 0;
    segment.gradientCrosses = false;
  }
  return problem;
}

TEST(Period, AgreesWithBruteForce) {
  int infeasible = 0, piped = 0, replicated = 0, byLink = 0;
  for (uint64_t seed = 0; seed < 1000; ++seed) {
    SCOPED_TRACE(seed);
    const PartitionProblem problem = flowing(seed);
    const PartitionResult expected = bruteForcePartition(problem);
    const PartitionResult found = solvePartition(problem);
    ASSERT_EQ(found.partition.has_value(), expected.partition.has_value())
        << found.infeasible.reason;
    if (!found.partition) {
      ++infeasible;
      continue;
    }
    EXPECT_EQ(found.partition->objective, expected.partition->objective);
    EXPECT_EQ(found.partition->bound, found.partition->objective);
    EXPECT_EQ(latency(*found.partition), latency(*expected.partition));
    EXPECT_EQ(verify(problem, *found.partition).value_or(""), "");
    piped += found.partition->stages.size() > 1;
    Nanos slowest = 0;
    for (const StageChoice &stage : found.partition->stages) {
      replicated += problem.replicaOptions[stage.option] > 1;
      slowest = std::max(slowest, stage.time);
      EXPECT_EQ(stage.inFlight, 1);
    }
    byLink += slowest < found.partition->objective;
  }
  EXPECT_GT(infeasible, 50);
  EXPECT_GT(piped, 200);
  EXPECT_GT(replicated, 200);
  EXPECT_GT(byLink, 5);
}

TEST(Period, BoundsHoldUnderAnyWorkLimit) {
  int stopped = 0;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    const PartitionProblem problem = flowing(seed);
    const PartitionResult expected = bruteForcePartition(problem);
    for (int64_t limit = 1; limit < 20000; limit *= 3) {
      SCOPED_TRACE(testing::Message() << seed << " limit " << limit);
      const PartitionResult found = solvePartition(problem, limit);
      if (!found.partition)
        continue;
      ASSERT_TRUE(expected.partition.has_value());
      EXPECT_LE(found.partition->bound, expected.partition->objective);
      EXPECT_GE(found.partition->objective, expected.partition->objective);
      EXPECT_EQ(verify(problem, *found.partition).value_or(""), "");
      stopped += found.partition->method == "heuristic (work limit)";
    }
  }
  EXPECT_GT(stopped, 50);
}

TEST(Period, PinsAreKept) {
  int found = 0;
  for (uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    PartitionProblem problem = flowing(seed);
    const int64_t segment = int64_t(seed) % int64_t(problem.segments.size());
    problem.pins.push_back({segment, int64_t(seed % 3)});
    const PartitionResult expected = bruteForcePartition(problem);
    const PartitionResult own = solvePartition(problem);
    ASSERT_EQ(own.partition.has_value(), expected.partition.has_value());
    if (!own.partition)
      continue;
    ++found;
    EXPECT_EQ(own.partition->objective, expected.partition->objective);
    EXPECT_EQ(latency(*own.partition), latency(*expected.partition));
  }
  EXPECT_GT(found, 50);
}

TEST(Period, IsOfForwardPassesAlone) {
  PartitionProblem problem = flowing(1);
  EXPECT_EQ(problem.check().value_or(""), "");
  problem.microBatches = 2;
  EXPECT_EQ(problem.check().value_or(""),
            "a stage of a continuous flow holds 1 micro-batch, not 2");
  problem = flowing(1);
  problem.segments.front().gradients = 64;
  EXPECT_EQ(problem.check().value_or(""),
            "segment '" + problem.segments.front().name +
                "' is trained, which a continuous flow is not");
}

TEST(Period, IsCheckedApart) {
  uint64_t seed = 0;
  while (!solvePartition(flowing(seed)).partition)
    ++seed;
  const PartitionProblem problem = flowing(seed);
  PartitionResult found = solvePartition(problem);
  found.partition->objective += 1;
  EXPECT_NE(verify(problem, *found.partition).value_or(""), "");
}

} // namespace
