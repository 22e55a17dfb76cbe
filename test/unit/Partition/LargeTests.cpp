//===- LargeTests.cpp - chains of the size that planning is for -----------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// 96 blocks on 64 and 1,024 devices must be proven optimal within a work budget
// that is a small part of the default one. Work, not time, is limited: the
// outcome is the same on every machine.
//
//===----------------------------------------------------------------------===//

#include "GptChain.h"

#include <gtest/gtest.h>

using namespace takt;
using namespace takt::test;

namespace {

constexpr int64_t kBudget = 300'000'000; // transitions, about a second

void expectExact(const PartitionProblem &problem) {
  const PartitionResult result = solvePartition(problem, kBudget);
  ASSERT_TRUE(result.partition.has_value()) << result.infeasible.reason;
  EXPECT_EQ(result.partition->method, "exact")
      << "gap " << result.partition->gap();
  EXPECT_EQ(result.partition->bound, result.partition->objective);
  EXPECT_EQ(verify(problem, *result.partition).value_or(""), "");
}

TEST(PartitionLarge, FreeOn64Devices) { expectExact(gptChain({})); }

TEST(PartitionLarge, UnevenBlocksOn64Devices) {
  GptChainShape shape;
  shape.uneven = true;
  expectExact(gptChain(shape));
}

// With little more than the least memory the cuts follow the micro-batches in
// flight and not the times.
TEST(PartitionLarge, TightMemory) {
  GptChainShape shape;
  shape.memoryGiB = 50;
  const PartitionProblem problem = gptChain(shape);
  expectExact(problem);
  PartitionProblem free = problem;
  free.cluster.memory = 0;
  EXPECT_LT(solvePartition(free, kBudget).partition->objective,
            solvePartition(problem, kBudget).partition->objective);
}

TEST(PartitionLarge, SixteenStagesOn1024Devices) {
  GptChainShape shape;
  shape.devices = 1024;
  shape.memoryGiB = 24;
  PartitionProblem problem = gptChain(shape);
  problem.stages = 16;
  expectExact(problem);
}

TEST(PartitionLarge, FewerStagesThanWouldBeBest) {
  PartitionProblem problem = gptChain({});
  problem.maxStages = 2;
  problem.cluster.memory = 0;
  expectExact(problem);
}

// A number of stages that fits neither devices nor memory well is the hardest.
TEST(PartitionLarge, ThirteenStagesOn64Devices) {
  PartitionProblem problem = gptChain({});
  problem.stages = 13;
  expectExact(problem);
}

} // namespace
