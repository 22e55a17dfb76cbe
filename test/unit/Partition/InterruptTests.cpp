//===- InterruptTests.cpp - searches that are told to end -----------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Whenever the interrupt comes, there is an answer wherever there is one at
// all, it keeps all limits, and its bound is one.
//
//===----------------------------------------------------------------------===//

#include "RandomGraph.h"
#include "RandomProblem.h"

#include "takt/Support/Search.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

using namespace takt;

namespace {

class Interrupt : public testing::Test {
protected:
  void SetUp() override { search::clearInterrupt(); }
  void TearDown() override { search::clearInterrupt(); }
};

} // namespace

TEST_F(Interrupt, BeforeAChainIsSearched) {
  int found = 0, open = 0;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    const PartitionProblem problem = test::randomProblem(seed);
    const PartitionResult best = bruteForcePartition(problem);
    search::interrupt();
    const PartitionResult result = solvePartition(problem);
    search::clearInterrupt();
    ASSERT_EQ(result.partition.has_value(), best.partition.has_value());
    EXPECT_FALSE(result.outOfWork);
    if (!best.partition)
      continue;
    EXPECT_EQ(verify(problem, *result.partition).value_or(""), "");
    EXPECT_GE(result.partition->objective, best.partition->objective);
    EXPECT_LE(result.partition->bound, best.partition->objective);
    ++found;
    open += result.partition->method == "heuristic (interrupted)";
  }
  EXPECT_GT(found, 50);
  EXPECT_GT(open, 10);
}

TEST_F(Interrupt, BeforeAGraphIsSearched) {
  int found = 0;
  for (uint64_t seed = 0; seed < 100; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    const GraphProblem problem = test::randomGraph(seed);
    const GraphResult best = bruteForceGraph(problem);
    search::interrupt();
    const GraphResult result = solveGraph(problem);
    search::clearInterrupt();
    if (!result.partition) {
      // No order was found to keep the limits; that is no proof.
      EXPECT_TRUE(result.outOfWork || !best.partition);
      continue;
    }
    ASSERT_TRUE(best.partition);
    EXPECT_EQ(verify(problem, *result.partition).value_or(""), "");
    EXPECT_LE(result.partition->bound, best.partition->objective);
    ++found;
  }
  EXPECT_GT(found, 50);
}

/// From another thread, at whatever moment that one runs.
TEST_F(Interrupt, WhileSearchesRun) {
  std::atomic<uint64_t> begun{0};
  std::thread other([&] {
    for (uint64_t seen = 0; seen < 40;) {
      if (begun == seen)
        continue;
      seen = begun;
      search::interrupt();
    }
  });
  for (uint64_t seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    const PartitionProblem chain = test::randomProblem(seed);
    const GraphProblem graph = test::randomGraph(seed);
    search::clearInterrupt();
    ++begun;
    const PartitionResult one = solvePartition(chain);
    const GraphResult two = solveGraph(graph);
    if (one.partition) {
      EXPECT_EQ(verify(chain, *one.partition).value_or(""), "");
    }
    if (two.partition) {
      EXPECT_EQ(verify(graph, *two.partition).value_or(""), "");
    }
  }
  other.join();
}
