//===- GraphProfileTests.cpp - published profiles, exact answers ----------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// The layer profiles published with PipeDream (Narayanan et al. 2019, arXiv
// 1806.03377) as graphs. Expected are the optima that independent programs
// found: with transfers beside compute as PipeDream counts them, and with each
// tensor added to the time of its blocks as Archer et al. (2023, arXiv
// 2311.03703) do.
//
//===----------------------------------------------------------------------===//

#include "TestData.h"

#include "takt/Frontend/ProfileGraph.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <cmath>

using namespace takt;
using test::readFile;

namespace {

const std::string kFolder = std::string(TAKT_TEST_DATA) + "/pipedream/";

GraphProblem profile(const std::string &model,
                     const ProfileGraphOptions &options) {
  Diagnostics diags;
  const auto problem = readProfileGraph(readFile(kFolder + model + ".txt"),
                                        model + ".txt", options, diags);
  EXPECT_TRUE(problem.has_value()) << model;
  return problem.value_or(GraphProblem());
}

void useDevices(GraphProblem &problem, int64_t count) {
  problem.devices[0].count = count;
  problem.maxBlocks = count;
}

double milliseconds(Nanos time) { return double(time) / 1e6; }

class PipeDreamProfile : public testing::TestWithParam<const char *> {};

/// One table of the expected answers against the solver.
void expectOptima(GraphProblem problem, const nlohmann::json &expected,
                  bool inOrder) {
  for (const auto &[stages, answer] : expected.items()) {
    SCOPED_TRACE(stages);
    useDevices(problem, std::stoll(stages));
    const GraphResult result =
        inOrder ? solveGraphInOrder(problem, smallestFirstOrder(problem))
                : solveGraph(problem);
    ASSERT_TRUE(result.partition.has_value()) << result.infeasible.reason;
    EXPECT_EQ(verify(problem, *result.partition).value_or(""), "");
    EXPECT_NEAR(milliseconds(result.partition->objective),
                answer["bottleneck_ms"].get<double>(), 1e-5);
    if (!inOrder) {
      EXPECT_EQ(result.partition->gap(), 0);
    }
  }
}

TEST_P(PipeDreamProfile, MeetsTheExactAnswers) {
  const std::string model = GetParam();
  const auto expected = nlohmann::json::parse(
      readFile(kFolder + "expected-exact-" + model + ".json"));
  ProfileGraphOptions options;
  const GraphProblem compute = profile(model, options);
  expectOptima(compute, expected["compute_only_chain"], true);
  if (expected.contains("compute_only_dag")) {
    EXPECT_EQ(countDownSets(compute, 100000), expected["downsets"]);
    expectOptima(compute, expected["compute_only_dag"], false);
  }
  for (const auto &[name, bandwidth] :
       {std::pair<const char *, double>("bandwidth_1e+09_bytes_per_s", 1e9),
        {"bandwidth_1e+10_bytes_per_s", 1e10}}) {
    SCOPED_TRACE(name);
    options.bytesPerSecond = bandwidth;
    GraphProblem problem = profile(model, options);
    problem.costModel = GraphCostModel::Relayed;
    ASSERT_TRUE(expected["comm_chain"].contains(name));
    expectOptima(problem, expected["comm_chain"][name], true);
    if (expected.contains("comm_dag")) {
      ASSERT_TRUE(expected["comm_dag"].contains(name));
      expectOptima(problem, expected["comm_dag"][name], false);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Models, PipeDreamProfile,
                         testing::Values("alexnet", "vgg16", "squeezenet1_0",
                                         "resnet50", "densenet121", "gnmt",
                                         "gnmt_large"));

/// Seconds at 10 GB/s for k = 2, 4, 8, and in brackets what the average and the
/// largest node give.
struct Row {
  const char *model;
  bool training;
  int64_t downSets;
  double best[3], average[3];
};

void PrintTo(const Row &row, std::ostream *out) {
  *out << row.model << (row.training ? " in training" : " in inference");
}

class AddedTransfers : public testing::TestWithParam<Row> {};

TEST_P(AddedTransfers, MeetsTheExactAnswers) {
  const Row &row = GetParam();
  ProfileGraphOptions options;
  options.training = row.training;
  options.bytesPerSecond = 1e10;
  options.keepUnusedOutputs = true;
  GraphProblem problem = profile(row.model, options);
  EXPECT_EQ(countDownSets(problem, 100000), row.downSets);
  int64_t work = 0;
  for (int i = 0; i < 3; ++i) {
    SCOPED_TRACE(2 << i);
    useDevices(problem, 2 << i);
    const GraphResult result = solveGraph(problem);
    ASSERT_TRUE(result.partition.has_value()) << result.infeasible.reason;
    EXPECT_EQ(verify(problem, *result.partition).value_or(""), "");
    EXPECT_NEAR(double(result.partition->objective) * 1e-9, row.best[i], 1e-6);
    EXPECT_EQ(result.partition->gap(), 0);
    EXPECT_EQ(result.partition->rung, GraphRung::DownSets);
    EXPECT_NEAR(double(averageBound(problem).value) * 1e-9, row.average[i],
                1e-6);
    work += result.partition->work;
  }
  RecordProperty("work", std::to_string(work));
}

INSTANTIATE_TEST_SUITE_P(Models, AddedTransfers,
                         testing::Values(Row{"vgg16",
                                             false,
                                             41,
                                             {.146056, .122308, .122308},
                                             {.116951, .058475, .046201}},
                                         Row{"vgg16",
                                             true,
                                             41,
                                             {.422167, .317798, .317798},
                                             {.336267, .168134, .159531}},
                                         Row{"alexnet",
                                             false,
                                             23,
                                             {.028663, .028663, .028663},
                                             {.022400, .022316, .022316}},
                                         Row{"alexnet",
                                             true,
                                             23,
                                             {.050331, .041726, .041726},
                                             {.042661, .028721, .028721}},
                                         Row{"squeezenet1_0",
                                             false,
                                             100,
                                             {.068264, .041678, .041678},
                                             {.056623, .028489, .028489}},
                                         Row{"squeezenet1_0",
                                             true,
                                             100,
                                             {.175044, .101317, .084891},
                                             {.142683, .071342, .051094}},
                                         Row{"resnet50",
                                             false,
                                             241,
                                             {.111942, .089043, .089043},
                                             {.091244, .045622, .022811}},
                                         Row{"resnet50",
                                             true,
                                             241,
                                             {.263037, .201632, .194363},
                                             {.221709, .110855, .055427}},
                                         Row{"gnmt",
                                             false,
                                             562,
                                             {.018934, .010976, .006578},
                                             {.016767, .008383, .005609}},
                                         Row{"gnmt",
                                             true,
                                             562,
                                             {.047194, .027379, .021496},
                                             {.044708, .022354, .019032}}),
                         [](const testing::TestParamInfo<Row> &info) {
                           return std::string(info.param.model) +
                                  (info.param.training ? "_training"
                                                       : "_inference");
                         });

/// resnet50 in training on 4 devices: cutting the order of the node numbers
/// misses the best, another order has it.
GraphProblem resnet50() {
  ProfileGraphOptions options;
  options.bytesPerSecond = 1e10;
  GraphProblem problem = profile("resnet50", options);
  useDevices(problem, 4);
  return problem;
}

TEST(GraphProfile, OrderSearchBeatsTheOrderOfNumbers) {
  const GraphProblem problem = resnet50();
  const GraphResult cut =
      solveGraphInOrder(problem, smallestFirstOrder(problem));
  ASSERT_TRUE(cut.partition.has_value());
  EXPECT_NEAR(double(cut.partition->objective) * 1e-9, .202274, 1e-6);
  GraphSettings settings;
  settings.maxDownSets = 200; // the graph has 241
  settings.solver.workLimit = 0;
  const GraphResult found = solveGraph(problem, settings);
  ASSERT_TRUE(found.partition.has_value());
  EXPECT_EQ(found.partition->downSets, 201);
  EXPECT_NEAR(double(found.partition->objective) * 1e-9, .201632, 1e-6);
  EXPECT_EQ(verify(problem, *found.partition).value_or(""), "");
}

TEST(GraphProfile, RelaxationRaisesTheBoundAboveTheCap) {
  if (!solver::available())
    GTEST_SKIP() << "this build has no solver";
  const GraphProblem problem = resnet50();
  GraphSettings settings;
  settings.maxDownSets = 200;
  settings.searchWork = 1;
  const GraphResult found = solveGraph(problem, settings);
  ASSERT_TRUE(found.partition.has_value());
  EXPECT_EQ(found.partition->rung, GraphRung::Bottleneck);
  EXPECT_GT(double(found.partition->bound),
            1.2 * double(averageBound(problem).value));
  EXPECT_LE(double(found.partition->bound) * 1e-9, .201632 + 1e-6);
}

TEST(GraphProfile, FaultsHaveTheirPlace) {
  Diagnostics diags;
  EXPECT_FALSE(readProfileGraph("node1 -- a -- forward_compute_time=1\n",
                                "p.txt", {}, diags));
  EXPECT_GT(diags.errorCount(), 0u);
  Diagnostics empty;
  EXPECT_FALSE(readProfileGraph("", "p.txt", {}, empty));
  EXPECT_EQ(empty.errorCount(), 1u);
}

} // namespace
