//===- GraphPlacementTests.cpp - published placements, exact answers ------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// The inputs published with Tarnawski et al. (2020, arXiv 2006.16423), with an
// accelerator's transfers added to its load, CPUs, and colour classes. Expected
// is what the published program finds, or where it does not end in forty
// minutes, an independent one.
//
//===----------------------------------------------------------------------===//

#include "TestData.h"

#include "takt/Frontend/PlacementGraph.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

using namespace takt;
using test::readFile;

namespace {

const std::string kFolder = std::string(TAKT_TEST_DATA) + "/dnn-partitioning/";

nlohmann::json expected(const std::string &name) {
  return nlohmann::json::parse(readFile(kFolder + "expected.json"))[name];
}

GraphProblem placement(const std::string &name) {
  Diagnostics diags;
  const auto problem =
      readPlacementGraph(readFile(kFolder + name + ".json"), name, diags);
  EXPECT_TRUE(problem.has_value()) << diags.text();
  return problem.value_or(GraphProblem());
}

double milliseconds(Nanos time) { return double(time) / 1e6; }

class Placement : public testing::TestWithParam<const char *> {};

TEST_P(Placement, MeetsTheExactAnswer) {
  const auto answer = expected(GetParam());
  const GraphProblem problem = placement(GetParam());
  const GraphResult result = solveGraph(problem);
  ASSERT_TRUE(result.partition.has_value()) << result.infeasible.reason;
  EXPECT_EQ(verify(problem, *result.partition).value_or(""), "");
  // Times are rounded to nanoseconds node by node.
  EXPECT_NEAR(milliseconds(result.partition->objective),
              answer["max_load"].get<double>(), 1e-4);
  EXPECT_EQ(result.partition->gap(), 0);
  EXPECT_EQ(result.partition->rung, GraphRung::DownSets);
  RecordProperty("work", std::to_string(result.partition->work));
}

/// Forward and backward of a layer have one colour, and one device holds it.
TEST(PlacementColours, EachIsOnOneDevice) {
  const GraphProblem problem = placement("LayerGraphs/bert24_training");
  ASSERT_GT(problem.together.size(), 10u);
  const GraphResult result = solveGraph(problem);
  ASSERT_TRUE(result.partition.has_value());
  std::vector<size_t> blockOf(problem.nodes.size());
  for (size_t b = 0; b < result.partition->blocks.size(); ++b)
    for (const int32_t node : result.partition->blocks[b].nodes)
      blockOf[node] = b;
  for (const std::vector<int32_t> &colour : problem.together) {
    ASSERT_GT(colour.size(), 1u);
    for (const int32_t node : colour)
      EXPECT_EQ(blockOf[node], blockOf[colour.front()]);
  }
  EXPECT_LE(milliseconds(result.partition->objective),
            expected("LayerGraphs/bert24_training")["max_load"].get<double>() +
                1e-4);
}

std::string testName(const testing::TestParamInfo<const char *> &info) {
  std::string name = info.param;
  for (char &c : name)
    if (!isalnum(static_cast<unsigned char>(c)))
      c = '_';
  return name;
}

INSTANTIATE_TEST_SUITE_P(Inputs, Placement,
                         testing::Values("LayerGraphs/bert24_inference",
                                         "LayerGraphs/bert24_training",
                                         "LayerGraphs/gnmt_inference",
                                         "LayerGraphs/gnmt_training",
                                         "LayerGraphs/resnet50_inference",
                                         "LayerGraphs/resnet50_training",
                                         "OperatorGraphs/bert_L-12_training",
                                         "OperatorGraphs/bert_l-12_inference",
                                         "OperatorGraphs/bert_l-3_inference",
                                         "OperatorGraphs/bert_l-3_training",
                                         "OperatorGraphs/resnet50_inference",
                                         "OperatorGraphs/resnet50_training"),
                         testName);

// A quarter of a minute each.
INSTANTIATE_TEST_SUITE_P(Large, Placement,
                         testing::Values("LayerGraphs/inceptionv3_inference",
                                         "LayerGraphs/inceptionv3_training"),
                         testName);

/// The same two with little work: a good answer, and a bound.
TEST(PlacementLadder, LargeGraphsAreAnsweredWithLittleWork) {
  const std::pair<const char *, double> cases[] = {
      {"LayerGraphs/inceptionv3_inference", 51.5519},
      {"LayerGraphs/inceptionv3_training", 123.93}};
  for (const auto &[name, published] : cases) {
    SCOPED_TRACE(name);
    const GraphProblem problem = placement(name);
    EXPECT_EQ(countDownSets(problem, 100000), expected(name)["downsets"]);
    GraphSettings settings;
    settings.maxDownSets = 20000;
    settings.searchWork = 4000000;
    settings.solver.workLimit = 0;
    const GraphResult result = solveGraph(problem, settings);
    ASSERT_TRUE(result.partition.has_value()) << result.infeasible.reason;
    EXPECT_EQ(verify(problem, *result.partition).value_or(""), "");
    // What the published program finds on one order.
    EXPECT_LE(milliseconds(result.partition->objective), published + 1e-3);
    EXPECT_LE(milliseconds(result.partition->bound),
              expected(name)["max_load"].get<double>() + 1e-4);
    EXPECT_GT(result.partition->bound, 0);
  }
}

TEST(PlacementGraph, FaultsAreNamed) {
  const std::string devices =
      R"("maxFPGAs": 2, "maxCPUs": 1, "maxSizePerFPGA": 10, )";
  const std::string node =
      R"({"id": 1, "supportedOnFpga": 1, "cpuLatency": 2, "fpgaLatency": 1, )"
      R"("isBackwardNode": 0, "size": 1})";
  const std::pair<std::string, const char *> cases[] = {
      {"{\n  \"nodes\": [,]}", "2:13: error: the text is not JSON"},
      {"[]", "is not an object"},
      {"{" + devices + R"("nodes": []})", "the file: has no list 'edges'"},
      {"{" + devices + R"("nodes": [], "edges": []})", "no nodes"},
      {"{" + devices + R"("nodes": [{"id": 1}], "edges": []})",
       "nodes[0]: lacks the number 'fpgaLatency'"},
      {"{" + devices + R"("nodes": [)" + node + "," + node +
           R"(], "edges": []})",
       "nodes[1]: 'id' 1 is given twice"},
      {"{" + devices + R"("nodes": [)" + node +
           R"(], "edges": [{"sourceId": 1, "destId": 7, "cost": 0}]})",
       "edges[0]: joins nodes that are not there"},
      {R"({"maxFPGAs": -1, "maxCPUs": 1, "maxSizePerFPGA": 10, "nodes": [], )"
       R"("edges": []})",
       "'maxFPGAs' is out of range"},
      {R"({"maxFPGAs": 1e99, "maxCPUs": 1, "maxSizePerFPGA": "x", )"
       R"("nodes": {}, "edges": []})",
       "lacks the number 'maxSizePerFPGA'"},
  };
  for (const auto &[text, message] : cases) {
    SCOPED_TRACE(text);
    Diagnostics diags;
    EXPECT_FALSE(readPlacementGraph(text, "p.json", diags).has_value());
    EXPECT_NE(diags.text().find(message), std::string::npos) << diags.text();
  }
}

} // namespace
