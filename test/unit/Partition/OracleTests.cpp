//===- OracleTests.cpp - the solver against brute force -------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// The solver must agree with the enumeration of all assignments, in the value
// and in whether there is one at all; its answers must pass the independent
// check, and its bounds must hold when it is stopped early.
//
//===----------------------------------------------------------------------===//

#include "RandomProblem.h"

#include <gtest/gtest.h>

using namespace takt;
using namespace takt::test;

namespace {

constexpr uint64_t kProblems = 1000;

TEST(PartitionOracle, AgreesOnRandomChains) {
  int infeasible = 0, piped = 0, replicated = 0;
  for (uint64_t seed = 0; seed < kProblems; ++seed) {
    SCOPED_TRACE(seed);
    const PartitionProblem problem = randomProblem(seed);
    const PartitionResult expected = bruteForcePartition(problem);
    const PartitionResult found = solvePartition(problem);
    ASSERT_EQ(found.partition.has_value(), expected.partition.has_value())
        << found.infeasible.reason;
    if (!found.partition) {
      EXPECT_FALSE(found.infeasible.reason.empty());
      ++infeasible;
      continue;
    }
    EXPECT_EQ(found.partition->objective, expected.partition->objective);
    EXPECT_EQ(found.partition->bound, found.partition->objective);
    EXPECT_EQ(verify(problem, *found.partition).value_or(""), "");
    EXPECT_EQ(verify(problem, *expected.partition).value_or(""), "");
    piped += found.partition->stages.size() > 1;
    for (const StageChoice &stage : found.partition->stages)
      replicated += problem.replicaOptions[stage.option] > 1;
  }
  // The problems must be of all kinds for the agreement to mean much.
  EXPECT_GT(infeasible, 150);
  EXPECT_LT(infeasible, 550);
  EXPECT_GT(piped, 200);
  EXPECT_GT(replicated, 200);
}

TEST(PartitionOracle, BoundsHoldUnderAnyWorkLimit) {
  int stopped = 0;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    const PartitionProblem problem = randomProblem(seed);
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
  EXPECT_GT(stopped, 100);
}

TEST(PartitionOracle, SameAnswerTwice) {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    const PartitionProblem problem = randomProblem(seed);
    const PartitionResult one = solvePartition(problem);
    const PartitionResult two = solvePartition(problem);
    ASSERT_EQ(one.partition.has_value(), two.partition.has_value());
    EXPECT_EQ(one.infeasible.reason, two.infeasible.reason);
    EXPECT_EQ(one.infeasible.waysOut, two.infeasible.waysOut);
    if (!one.partition)
      continue;
    EXPECT_EQ(one.partition->work, two.partition->work);
    ASSERT_EQ(one.partition->stages.size(), two.partition->stages.size());
    for (size_t s = 0; s < one.partition->stages.size(); ++s) {
      EXPECT_EQ(one.partition->stages[s].end, two.partition->stages[s].end);
      EXPECT_EQ(one.partition->stages[s].option,
                two.partition->stages[s].option);
    }
  }
}

} // namespace
