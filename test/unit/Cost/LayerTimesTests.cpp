//===- LayerTimesTests.cpp - roofline and profile -------------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Times against figures worked out by hand for one linear layer, and the rules
// on frozen parts, shares and missing layers.
//
//===----------------------------------------------------------------------===//

#include "../Lower/TestModels.h"
#include "takt/Cost/Cost.h"

#include <gtest/gtest.h>

using namespace takt;

namespace {

/// 1 FLOP and 1 byte a nanosecond make times equal to the larger count.
DeviceKindSpec plainDevice(Nanos overhead = 0) {
  DeviceKindSpec device;
  device.name = "plain";
  device.flops = 1e9;
  device.memoryBandwidth = 1e9;
  device.kernelOverhead = overhead;
  return device;
}

rt::Training trainingOf(int64_t microBatchSize, int32_t microBatches = 2) {
  rt::Training training;
  training.microBatches = microBatches;
  training.globalBatch = microBatchSize * microBatches;
  return training;
}

int32_t layerNamed(const Graph &graph, const std::string &name) {
  for (size_t i = 0; i < graph.layers.size(); ++i)
    if (graph.layers[i].name == name)
      return int32_t(i);
  ADD_FAILURE() << "no layer " << name;
  return 0;
}

Graph profiledGraph() {
  Graph graph;
  graph.name = "stated";
  for (const char *name : {"a", "b"}) {
    Layer layer;
    layer.kind = LayerKind::Profiled;
    layer.name = name;
    if (!graph.layers.empty())
      layer.inputs = {0};
    layer.output = int32_t(graph.values.size());
    layer.profiled.samples = 8;
    layer.profiled.forward = 800;
    layer.profiled.inputGrad = 1600;
    layer.profiled.weightGrad = 240;
    layer.profiled.parameters = 1000;
    graph.values.push_back(
        {name, {{16}, DType::Float32}, int32_t(graph.layers.size()), -1});
    graph.layers.push_back(layer);
  }
  return graph;
}

TEST(ReplicaOptions, AreDivisorsInReach) {
  using List = std::vector<int64_t>;
  EXPECT_EQ(replicaOptions(12, 100), (List{1, 2, 3, 4, 6, 12}));
  EXPECT_EQ(replicaOptions(12, 4), (List{1, 2, 3, 4}));
  EXPECT_EQ(replicaOptions(1, 8), (List{1}));
  EXPECT_EQ(replicaOptions(7, 6), (List{1}));
}

TEST(OptimizerStates, CountTensors) {
  EXPECT_EQ(optimizerStates(rt::OptimizerKind::Sgd), 0);
  EXPECT_EQ(optimizerStates(rt::OptimizerKind::Momentum), 1);
  EXPECT_EQ(optimizerStates(rt::OptimizerKind::AdamW), 2);
}

// A linear layer of width 100 on n samples: 2 * 100 * 100 n operations a phase;
// 4 bytes of n * 100 inputs, n * 100 outputs and 10,100 parameters.
TEST(Roofline, LinearByHand) {
  const Graph graph = test::makeMlp(2, 100);
  const CostTable table =
      rooflineCosts(graph, trainingOf(8), plainDevice(), {1, 4});
  ASSERT_EQ(table.source, "roofline");
  const LayerTimes &second = table.layers[layerNamed(graph, "fc1")];
  // n = 8: 160,000 operations against 4 (800 + 800 + 10,100) = 46,800 bytes.
  EXPECT_EQ(second.forward[0], 160000);
  EXPECT_EQ(second.inputGrad[0], 160000);
  EXPECT_EQ(second.weightGrad[0], 160000);
  // n = 2: 40,000 operations against 4 (200 + 200 + 10,100) = 42,000 bytes.
  EXPECT_EQ(second.forward[1], 42000);
  // Reads and writes the gradients of 10,100 parameters.
  EXPECT_EQ(second.weightGrad[1], 42000 + 4 * 10100);
}

TEST(Roofline, OverheadOfEachKernel) {
  const Graph graph = test::makeMlp(2, 100);
  const LayerTimes with =
      rooflineCosts(graph, trainingOf(8), plainDevice(5000), {1}).layers[2];
  const LayerTimes without =
      rooflineCosts(graph, trainingOf(8), plainDevice(), {1}).layers[2];
  EXPECT_EQ(with.forward[0], without.forward[0] + 5000);
  EXPECT_EQ(with.update, without.update + 5000);
}

// Updates read and write parameters: the share of samples plays no role, the
// optimizer's state does.
TEST(Roofline, UpdateDependsOnTheOptimizer) {
  const Graph graph = test::makeMlp(1, 100);
  rt::Training training = trainingOf(8);
  const Nanos sgd =
      rooflineCosts(graph, training, plainDevice(), {1, 2, 4}).layers[0].update;
  training.optimizer = rt::OptimizerKind::AdamW;
  const Nanos adam =
      rooflineCosts(graph, training, plainDevice(), {1, 2, 4}).layers[0].update;
  EXPECT_GE(sgd, 4 * 10100);
  EXPECT_GT(adam, sgd);
}

// Nothing in front of the first trained parameter has a backward.
TEST(Roofline, FrozenPartsCostNothing) {
  test::GptShape shape;
  shape.frozenPrefix = true;
  const Graph graph = test::makeGpt(shape);
  const CostTable table =
      rooflineCosts(graph, trainingOf(4), plainDevice(), {1});
  for (const char *name : {"tok", "pos"}) {
    const LayerTimes &times = table.layers[layerNamed(graph, name)];
    EXPECT_GT(times.forward[0], 0) << name;
    EXPECT_EQ(times.inputGrad[0], 0) << name;
    EXPECT_EQ(times.weightGrad[0], 0) << name;
    EXPECT_EQ(times.update, 0) << name;
  }
  // The first trained layer computes weight gradients only.
  const LayerTimes &first = table.layers[layerNamed(graph, "h.0.ln1")];
  EXPECT_EQ(first.inputGrad[0], 0);
  EXPECT_GT(first.weightGrad[0], 0);
  const LayerTimes &second = table.layers[layerNamed(graph, "h.0.attn.qkv")];
  EXPECT_GT(second.inputGrad[0], 0);
}

TEST(Roofline, FrozenLayerBetweenTrainedOnesPassesGradients) {
  Graph graph = test::makeMlp(3, 16);
  const int32_t middle = layerNamed(graph, "fc1");
  for (const int32_t param : graph.layers[middle].params)
    graph.params[param].trainable = false;
  const LayerTimes times =
      rooflineCosts(graph, trainingOf(4), plainDevice(), {1}).layers[middle];
  EXPECT_GT(times.inputGrad[0], 0);
  EXPECT_EQ(times.weightGrad[0], 0);
  EXPECT_EQ(times.update, 0);
}

TEST(Roofline, ProfiledLayersStateTheirTimes) {
  const Graph graph = profiledGraph();
  const CostTable table =
      rooflineCosts(graph, trainingOf(4), plainDevice(), {1, 4});
  for (const LayerTimes &times : table.layers) {
    EXPECT_EQ(times.forward, (std::vector<Nanos>{400, 100}));
    EXPECT_EQ(times.inputGrad, (std::vector<Nanos>{800, 200}));
    EXPECT_EQ(times.weightGrad, (std::vector<Nanos>{120, 30}));
    EXPECT_GT(times.update, 0);
  }
}

TEST(Profile, ScalesSharesButNotUpdates) {
  const Graph graph = test::makeMlp(1, 8);
  ProfileSpec profile;
  profile.file = "host.yaml";
  profile.samples = 4;
  for (const Layer &layer : graph.layers)
    profile.layers[layer.name] = {1000, 2000, 3001, 77};
  std::vector<std::string> missing;
  const CostTable table =
      profileCosts(graph, trainingOf(8), profile, {1, 2, 8}, missing);
  EXPECT_TRUE(missing.empty());
  EXPECT_EQ(table.source, "profile host.yaml");
  const LayerTimes &relu = table.layers[1];
  EXPECT_EQ(relu.forward, (std::vector<Nanos>{2000, 1000, 250}));
  EXPECT_EQ(relu.inputGrad, (std::vector<Nanos>{4000, 2000, 500}));
  EXPECT_EQ(relu.update, 77);
  // The model's input needs no gradient; rounding is to the nearest.
  const LayerTimes &linear = table.layers[0];
  EXPECT_EQ(linear.inputGrad, (std::vector<Nanos>{0, 0, 0}));
  EXPECT_EQ(linear.weightGrad, (std::vector<Nanos>{6002, 3001, 750}));
}

TEST(Profile, NamesMissingLayers) {
  const Graph graph = test::makeMlp(1, 8);
  ProfileSpec profile;
  profile.layers["fc0"] = {1, 1, 1, 1};
  std::vector<std::string> missing;
  profileCosts(graph, trainingOf(2), profile, {1}, missing);
  EXPECT_EQ(missing, (std::vector<std::string>{"act0", "loss"}));
}

// What a layer states holds unless the profile knows better.
TEST(Profile, ProfiledLayersAreNeverMissing) {
  const Graph graph = profiledGraph();
  ProfileSpec profile;
  profile.samples = 1;
  profile.layers["b"] = {7, 8, 9, 10};
  std::vector<std::string> missing;
  const CostTable table =
      profileCosts(graph, trainingOf(8), profile, {8}, missing);
  EXPECT_TRUE(missing.empty());
  EXPECT_EQ(table.layers[0].forward[0], 100);
  EXPECT_EQ(table.layers[1].forward[0], 7);
  EXPECT_EQ(table.layers[1].inputGrad[0], 8);
  EXPECT_EQ(table.layers[1].update, 10);
}

} // namespace
