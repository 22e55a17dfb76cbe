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

#include "takt/Cost/Cost.h"
#include "takt/Frontend/ImportDapple.h"
#include "takt/Frontend/Read.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <fstream>
#include <sstream>

using namespace takt;

namespace {

const std::string kFolder = std::string(TAKT_TEST_DATA) + "/dapple/";

std::string readFile(const std::string &path) {
  std::ifstream stream(path);
  EXPECT_TRUE(stream.good()) << path;
  std::ostringstream text;
  text << stream.rdbuf();
  return text.str();
}

/// The profile as a chain of one segment a layer; no links, no memory limit.
PartitionProblem chainOf(const std::string &name) {
  PartitionProblem problem;
  Diagnostics diags;
  ImportDappleOptions options;
  if (name.find("pbs") == std::string::npos)
    options.samples = 1;
  const auto yaml = importDapple(readFile(kFolder + name + ".txt"),
                                 name + ".txt", options, diags);
  EXPECT_TRUE(yaml.has_value()) << name;
  if (!yaml)
    return problem;
  const auto spec = readModelText(name + ".yaml", *yaml, diags);
  EXPECT_TRUE(spec.has_value()) << name;
  if (!spec)
    return problem;
  const Graph graph = buildGraph(*spec);
  const CostTable costs =
      rooflineCosts(graph, spec->training, DeviceKindSpec(), {1});
  problem = partitionProblem(graph, chainSegments(graph), spec->training, costs,
                             PartitionCluster());
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
  PartitionProblem problem = chainOf(name);
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

} // namespace
