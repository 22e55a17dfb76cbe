//===- ChainProblemTests.cpp - from costs to a partition problem ----------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Sums of times and bytes of a small model, worked out by hand.
//
//===----------------------------------------------------------------------===//

#include "../Lower/TestModels.h"
#include "takt/Cost/Cost.h"

#include <gtest/gtest.h>

#include <numeric>

using namespace takt;

namespace {

struct Case {
  Graph graph;
  rt::Training training;
  CostTable costs;

  Case(Graph model, int64_t microBatchSize, int32_t microBatches)
      : graph(std::move(model)) {
    training.microBatches = microBatches;
    training.globalBatch = microBatchSize * microBatches;
    training.optimizer = rt::OptimizerKind::AdamW;
    DeviceKindSpec device;
    device.flops = 1e9;
    device.memoryBandwidth = 1e9;
    costs = rooflineCosts(graph, training, device,
                          replicaOptions(microBatchSize, 4));
  }
  PartitionProblem problem() const {
    PartitionCluster cluster;
    cluster.devices = 4;
    cluster.devicesPerNode = 4;
    return partitionProblem(graph, chainSegments(graph), training, costs,
                            cluster);
  }
};

// Segments fc0, act0, fc1, act1, loss; width 32, so 128 bytes a sample.
TEST(ChainProblem, MlpByHand) {
  const Case mlp(test::makeMlp(2, 32), 4, 6);
  const PartitionProblem problem = mlp.problem();
  ASSERT_EQ(problem.check().value_or(""), "");
  ASSERT_EQ(problem.segments.size(), 5u);
  EXPECT_EQ(problem.microBatches, 6);
  EXPECT_EQ(problem.replicaOptions, (std::vector<int64_t>{1, 2, 4}));

  const SegmentCost &linear = problem.segments[2];
  EXPECT_EQ(linear.name, "fc1");
  EXPECT_EQ(linear.weights, 4 * 32 * 32 + 4 * 32);
  EXPECT_EQ(linear.gradients, linear.weights);
  EXPECT_EQ(linear.optimizerState, 2 * linear.weights);
  EXPECT_EQ(linear.output, (std::vector<Bytes>{512, 256, 128}));
  EXPECT_EQ(linear.outputWhole, 512);
  EXPECT_EQ(linear.saved, (std::vector<Bytes>{512, 256, 128})); // its input
  EXPECT_TRUE(linear.gradientCrosses);
  EXPECT_TRUE(linear.mayCutAfter);
  const LayerTimes &times = mlp.costs.layers[2];
  for (size_t o = 0; o < 3; ++o) {
    EXPECT_EQ(linear.time[o],
              times.forward[o] + times.inputGrad[o] + times.weightGrad[o]);
    EXPECT_EQ(linear.update[o], times.update);
  }
  // The first layer's input is loaded, one micro-batch ahead.
  EXPECT_EQ(problem.segments[0].saved, (std::vector<Bytes>{1024, 512, 256}));
  // The loss keeps a value of each micro-batch and hands nothing on.
  EXPECT_EQ(problem.segments[4].weights, 6 * rt::kAlignment);
  EXPECT_EQ(problem.segments[4].output, (std::vector<Bytes>{0, 0, 0}));
}

TEST(ChainProblem, SumsOverTheModel) {
  const Case gpt(test::makeGpt({}), 4, 2);
  const PartitionProblem problem = gpt.problem();
  Nanos time = 0, layers = 0;
  for (const SegmentCost &segment : problem.segments)
    time += segment.time[0];
  for (const LayerTimes &times : gpt.costs.layers)
    layers += times.forward[0] + times.inputGrad[0] + times.weightGrad[0];
  EXPECT_EQ(time, layers);
  EXPECT_EQ(problem.segments[2].name, "h.0.ln1 .. h.0.add1");
}

// A gradient crosses only behind a trained parameter.
TEST(ChainProblem, NoGradientOverAFrozenPrefix) {
  test::GptShape shape;
  shape.frozenPrefix = true;
  const Case gpt(test::makeGpt(shape), 4, 2);
  const PartitionProblem problem = gpt.problem();
  EXPECT_FALSE(problem.segments[0].gradientCrosses); // tok
  EXPECT_FALSE(problem.segments[1].gradientCrosses); // pos
  EXPECT_TRUE(problem.segments[2].gradientCrosses);  // first block
  EXPECT_EQ(problem.segments[0].gradients, 0);
  EXPECT_EQ(problem.segments[0].optimizerState, 0);
  EXPECT_GT(problem.segments[0].weights, 0);
}

// A tied parameter has an accumulator on each of its uses.
TEST(ChainProblem, TiedParametersCountOnBothSides) {
  const Case gpt(test::makeGpt({}), 4, 2);
  const PartitionProblem problem = gpt.problem();
  const Bytes table = 4 * 32 * 16;
  const SegmentCost &tok = problem.segments.front();
  const SegmentCost &head = problem.segments[problem.segments.size() - 2];
  EXPECT_EQ(head.name, "head");
  for (const SegmentCost *segment : {&tok, &head}) {
    EXPECT_EQ(segment->weights, table);
    EXPECT_EQ(segment->gradients, table);
    EXPECT_GE(segment->workspace[0], table);
  }
}

TEST(ChainProblem, AbsurdSizesAreRefusedNotOverflown) {
  Graph graph = test::makeMlp(2, 1 << 20);
  Case huge(std::move(graph), int64_t(1) << 50, 2);
  const PartitionProblem problem = huge.problem();
  EXPECT_TRUE(problem.check().has_value());
  EXPECT_FALSE(solvePartition(problem).partition.has_value());
}

} // namespace
