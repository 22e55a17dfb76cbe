//===- DappleTests.cpp - published profiles, exact answers ----------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// The layer profiles published with DAPPLE (Fan et al. 2021, arXiv 2007.01045),
// read by the importer and cut into stages without communication and replicas:
// the slowest stage must be the optimum that an independent program found.
//
//===----------------------------------------------------------------------===//

#include "TestData.h"

#include "takt/Cost/Cost.h"
#include "takt/Frontend/ImportDapple.h"
#include "takt/Frontend/Read.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>

using namespace takt;
using test::readFile;

namespace {

const std::string kFolder = std::string(TAKT_TEST_DATA) + "/dapple/";

/// The profile as a chain of one segment a layer, the first `frozen` of them
/// not trained; no links, no memory limit.
PartitionProblem chainOf(const std::string &name, int frozen) {
  PartitionProblem problem;
  Diagnostics diags;
  ImportDappleOptions options;
  if (name.find("pbs") == std::string::npos)
    options.samples = 1;
  auto yaml = importDapple(readFile(kFolder + name + ".txt"), name + ".txt",
                           options, diags);
  EXPECT_TRUE(yaml.has_value()) << name;
  if (!yaml)
    return problem;
  for (size_t at = 0; frozen > 0; --frozen) {
    at = yaml->find("}\n", at);
    yaml->insert(at, ", trainable: false");
    at = yaml->find("\n", at);
  }
  const auto spec = readModelText(name + ".yaml", *yaml, diags);
  EXPECT_TRUE(spec.has_value()) << name;
  if (!spec)
    return problem;
  const Graph graph = buildGraph(*spec);
  const CostTable costs =
      rooflineCosts(graph, spec->training, DeviceKindSpec(), {1});
  return partitionProblem(graph, chainSegments(graph), spec->training, costs,
                          PartitionCluster());
}

/// Times of stages alone count.
PartitionProblem computeOf(PartitionProblem problem) {
  // So many micro-batches that the slowest stage decides: one nanosecond there
  // outweighs everything else.
  problem.microBatches = 1 << 28;
  for (SegmentCost &segment : problem.segments) {
    segment.update = {0};
    segment.output = segment.saved = segment.workspace = {0};
    segment.outputWhole = 0;
    segment.weights = segment.gradients = segment.optimizerState = 0;
  }
  return problem;
}

class Dapple : public testing::TestWithParam<const char *> {};

TEST_P(Dapple, SlowestStageIsTheExactOptimum) {
  const std::string name = GetParam();
  PartitionProblem problem = computeOf(chainOf(name, 0));
  const auto expected = nlohmann::json::parse(readFile(
      kFolder + "expected-exact-" + name + ".json"))["compute_only_chain"];
  for (const int64_t devices : {2, 4, 8}) {
    problem.cluster.devices = problem.cluster.devicesPerNode = devices;
    const PartitionResult result = solvePartition(problem);
    ASSERT_TRUE(result.partition.has_value()) << result.infeasible.reason;
    EXPECT_EQ(result.partition->method, "exact");
    EXPECT_EQ(verify(problem, *result.partition).value_or(""), "");
    Nanos slowest = 0;
    for (const StageChoice &stage : result.partition->stages)
      slowest = std::max(slowest, stage.time);
    const double bottleneck =
        expected[std::to_string(devices)]["bottleneck_ms"];
    EXPECT_NEAR(double(slowest) / 1e6, bottleneck, 1e-6)
        << devices << " stages";
  }
}

INSTANTIATE_TEST_SUITE_P(Profiles, Dapple,
                         testing::Values("amoeba-18-pbs-8",
                                         "amoeba-6-pbs-8-simplified",
                                         "bert-24-pbs-6", "gnmt-16-pbs-64",
                                         "vgg-19-pbs-32", "vgg16",
                                         "xlnet-24-pbs-1"),
                         [](const testing::TestParamInfo<const char *> &info) {
                           std::string name = info.param;
                           for (char &letter : name)
                             letter = letter == '-' ? '_' : letter;
                           return name;
                         });

//===----------------------------------------------------------------------===//
// A frozen prefix (Wu et al. 2024, arXiv 2408.10826)
//===----------------------------------------------------------------------===//

struct TwoStages {
  double total = 0, slowest = 0;
  int64_t cut = 0;
};

TwoStages cutInTwo(const PartitionProblem &chain) {
  PartitionProblem problem = computeOf(chain);
  problem.cluster.devices = problem.cluster.devicesPerNode = 2;
  problem.stages = 2;
  TwoStages found;
  const PartitionResult result = solvePartition(problem);
  EXPECT_TRUE(result.partition.has_value());
  if (!result.partition)
    return found;
  EXPECT_EQ(verify(problem, *result.partition).value_or(""), "");
  found.cut = result.partition->stages[1].begin;
  for (const StageChoice &stage : result.partition->stages) {
    found.total += double(stage.time) / 1e6;
    found.slowest = std::max(found.slowest, double(stage.time) / 1e6);
  }
  return found;
}

TEST(FrozenPrefix, MovesTheCutOfBert24) {
  // Twelve of 24 layers lie behind four nodes of the input.
  const int frozen = 4 + 12;
  const TwoStages trained = cutInTwo(chainOf("bert-24-pbs-6", 0));
  EXPECT_NEAR(trained.total, 515.357, 1e-6);
  EXPECT_EQ(trained.cut, 16);
  const TwoStages half = cutInTwo(chainOf("bert-24-pbs-6", frozen));
  EXPECT_NEAR(half.total, 354.557, 1e-6); // less 12 backwards of 13.4 ms
  EXPECT_EQ(half.cut, 20);
  EXPECT_NEAR(half.slowest, 182.797, 1e-6);
}

TEST(FrozenPrefix, KeepsNeitherActivationsNorGradients) {
  const PartitionProblem whole = chainOf("bert-24-pbs-6", 0);
  const PartitionProblem half = chainOf("bert-24-pbs-6", 16);
  for (size_t i = 0; i < half.segments.size(); ++i) {
    SCOPED_TRACE(half.segments[i].name);
    const SegmentCost &before = whole.segments[i], &after = half.segments[i];
    const bool frozen = i < 16;
    EXPECT_EQ(after.weights, before.weights);
    EXPECT_EQ(after.saved[0], frozen ? 0 : before.saved[0]);
    EXPECT_EQ(after.gradients, frozen ? 0 : before.gradients);
    EXPECT_EQ(after.optimizerState, frozen ? 0 : before.optimizerState);
    EXPECT_EQ(after.gradientCrosses, before.gradientCrosses && !frozen);
  }
}

/// Behind a trained layer a frozen one hands the gradient on.
TEST(FrozenPrefix, LaterFrozenLayersHaveInputGradients) {
  const char *model = R"(schema_version: 1
model:
  name: sandwich
  layers:
    - profiled: {name: a, samples: 1, forward: 1 ms, input_grad: 2 ms,
                 weight_grad: 4 ms, activation: 4 B, parameters: 4 B}
    - profiled: {name: b, samples: 1, forward: 1 ms, input_grad: 2 ms,
                 weight_grad: 4 ms, activation: 4 B, parameters: 4 B,
                 trainable: false}
training: {global_batch: 1, micro_batches: 1}
)";
  Diagnostics diags;
  const auto spec = readModelText("sandwich.yaml", model, diags);
  ASSERT_TRUE(spec.has_value());
  const Graph graph = buildGraph(*spec);
  const CostTable costs =
      rooflineCosts(graph, spec->training, DeviceKindSpec(), {1});
  EXPECT_EQ(costs.layers[0].inputGrad[0] + costs.layers[0].weightGrad[0],
            6000000);
  EXPECT_EQ(costs.layers[1].inputGrad[0], 2000000);
  EXPECT_EQ(costs.layers[1].weightGrad[0], 0);
}

} // namespace
