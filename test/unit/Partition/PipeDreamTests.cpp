//===- PipeDreamTests.cpp - PipeDream's planner ---------------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Against all plans on small random problems, and against the answers of the
// published program (Narayanan et al. 2019, arXiv 1806.03377) on its profiles.
//
//===----------------------------------------------------------------------===//

#include "TestData.h"

#include "takt/Frontend/ProfileGraph.h"
#include "takt/Partition/Costs/PipeDream.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <random>
#include <set>

using namespace takt;
using test::readFile;
using test::readProfile;

namespace {

const std::string kFolder = std::string(TAKT_TEST_DATA) + "/pipedream/";

int32_t firstSource(const std::vector<ProfiledNode> &nodes) {
  std::vector<bool> isRead(nodes.size());
  for (const ProfiledNode &node : nodes)
    for (const int32_t reader : node.readers)
      isRead[reader] = true;
  return int32_t(std::find(isRead.begin(), isRead.end(), false) -
                 isRead.begin());
}

std::vector<ProfileState> statesOf(const std::string &model) {
  const std::vector<ProfiledNode> nodes =
      readProfile("pipedream/" + model + ".txt");
  auto states = antichainStates(nodes, firstSource(nodes));
  EXPECT_TRUE(states.has_value()) << model;
  return states.value_or(std::vector<ProfileState>());
}

//===----------------------------------------------------------------------===//
// The published program
//===----------------------------------------------------------------------===//

class PublishedPipeDream : public testing::TestWithParam<const char *> {};

TEST_P(PublishedPipeDream, TakesWhatThePublishedPlannerFound) {
  const std::string model = GetParam();
  PipeDreamProblem problem;
  problem.states = statesOf(model);
  const auto expected = nlohmann::json::parse(
      readFile(kFolder + "expected-optimizer-" + model + ".json"));
  ASSERT_FALSE(expected["answers"].empty());
  for (const auto &answer : expected["answers"]) {
    SCOPED_TRACE(answer["machines"].dump() + " at " +
                 answer["bandwidth_bytes_per_s"].dump());
    EXPECT_EQ(problem.states.size(), answer["n_states"]);
    problem.levels.clear();
    for (size_t l = 0; l < answer["machines"].size(); ++l)
      problem.levels.push_back(
          {answer["machines"][l], answer["bandwidth_bytes_per_s"][l]});
    problem.replicas = !answer["straight_pipeline"];
    problem.countTransfers = answer["activation_comm_counted"];
    const auto plan = solvePipeDream(problem);
    ASSERT_TRUE(plan.has_value());
    EXPECT_EQ(verify(problem, *plan).value_or(""), "");
    EXPECT_NEAR(plan->seconds, answer["time_per_stage_s"].get<double>(), 1e-9);
    const double single = answer["time_single_stage_s"];
    EXPECT_NEAR(single / dataParallelSeconds(problem),
                answer["dp_speedup_vs_single"].get<double>(), 1e-6);
  }
}

INSTANTIATE_TEST_SUITE_P(Models, PublishedPipeDream,
                         testing::Values("alexnet", "densenet121", "gnmt",
                                         "gnmt_large", "resnet50",
                                         "squeezenet1_0", "vgg16"),
                         [](const testing::TestParamInfo<const char *> &info) {
                           return std::string(info.param);
                         });

/// A run of the published program, as published.
struct Published {
  const char *name, *model;
  std::vector<LinkLevel> levels;
  bool replicas, countTransfers;
  double seconds;
  std::vector<int64_t> config; ///< replicas; empty: not unique or not stated
};

void PrintTo(const Published &row, std::ostream *out) { *out << row.name; }

class PublishedTable : public testing::TestWithParam<Published> {};

TEST_P(PublishedTable, TakesTheStatedTime) {
  const Published &row = GetParam();
  PipeDreamProblem problem;
  problem.states = statesOf(row.model);
  problem.levels = row.levels;
  problem.replicas = row.replicas;
  problem.countTransfers = row.countTransfers;
  const auto plan = solvePipeDream(problem);
  ASSERT_TRUE(plan.has_value());
  EXPECT_EQ(verify(problem, *plan).value_or(""), "");
  EXPECT_NEAR(plan->seconds, row.seconds, 5e-7);
  std::vector<int64_t> config;
  for (const PipeDreamStage &stage : plan->stages)
    config.push_back(stage.replicas);
  if (!row.config.empty()) {
    EXPECT_EQ(config, row.config);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Rows, PublishedTable,
    testing::Values(
        Published{
            "vgg16_4", "vgg16", {{4, 1e9}}, true, true, 0.205520896, {3, 1}},
        Published{
            "vgg16_8", "vgg16", {{8, 1e9}}, true, true, 0.1038331703, {7, 1}},
        Published{"vgg16_16",
                  "vgg16",
                  {{16, 1e9}},
                  true,
                  true,
                  0.05652976738,
                  {13, 2, 1}},
        Published{"vgg16_4_fast",
                  "vgg16",
                  {{4, 1e10}},
                  true,
                  true,
                  0.1701790624,
                  {3, 1}},
        Published{"resnet50_4",
                  "resnet50",
                  {{4, 1e9}},
                  true,
                  true,
                  0.162880924,
                  {2, 2}},
        Published{"resnet50_16",
                  "resnet50",
                  {{16, 1e9}},
                  true,
                  true,
                  0.0478013453,
                  {7, 6, 3}},
        Published{"alexnet_4",
                  "alexnet",
                  {{4, 1e9}},
                  true,
                  true,
                  0.034217141,
                  {3, 1}},
        Published{
            "alexnet_16", "alexnet", {{16, 1e9}}, true, true, 0.018874368, {}},
        Published{
            "gnmt_4", "gnmt", {{4, 1e9}}, true, true, 0.025868, {1, 1, 1, 1}},
        Published{"gnmt_8", "gnmt", {{8, 1e9}}, true, true, 0.019285, {}},
        Published{
            "gnmt_large_4", "gnmt_large", {{4, 1e9}}, true, true, 0.137129, {}},
        Published{"densenet121_4",
                  "densenet121",
                  {{4, 1e9}},
                  true,
                  true,
                  0.089976,
                  {3, 1}},
        Published{"vgg16_straight_2",
                  "vgg16",
                  {{2, 1e9}},
                  false,
                  false,
                  0.370931,
                  {1, 1}},
        Published{"vgg16_straight_4",
                  "vgg16",
                  {{4, 1e9}},
                  false,
                  false,
                  0.21645,
                  {1, 1, 1, 1}},
        Published{"vgg16_straight_8",
                  "vgg16",
                  {{8, 1e9}},
                  false,
                  false,
                  0.159531,
                  {}},
        Published{"vgg16_4x4",
                  "vgg16",
                  {{4, 12e9}, {4, 1.25e9}},
                  true,
                  true,
                  0.06688875213,
                  {3, 1}}),
    [](const testing::TestParamInfo<Published> &info) {
      return std::string(info.param.name);
    });

//===----------------------------------------------------------------------===//
// All plans
//===----------------------------------------------------------------------===//

/// A random acyclic graph whose first node is its only source and whose last
/// one is its only sink.
std::vector<ProfiledNode> randomNodes(std::mt19937 &random, int32_t count) {
  auto upTo = [&](int n) { return int(random() % unsigned(n + 1)); };
  std::vector<ProfiledNode> nodes(count);
  for (int32_t i = 0; i < count; ++i) {
    nodes[i].forward = upTo(9) * 0.125;
    nodes[i].outputBytes = upTo(9) * 64.0;
    nodes[i].parameterBytes = upTo(9) * 128.0;
    std::set<int32_t> readers;
    for (int32_t to = i + 1; to < count; ++to)
      if (upTo(2) == 0)
        readers.insert(to);
    if (readers.empty() && i + 1 < count)
      readers.insert(i + 1 + upTo(count - i - 2));
    nodes[i].readers.assign(readers.begin(), readers.end());
  }
  std::vector<bool> isRead(count);
  for (const ProfiledNode &node : nodes)
    for (const int32_t reader : node.readers)
      isRead[reader] = true;
  for (int32_t i = 1; i < count; ++i)
    if (!isRead[i]) {
      nodes[0].readers.push_back(i);
      std::sort(nodes[0].readers.begin(), nodes[0].readers.end());
    }
  return nodes;
}

TEST(PipeDreamOracle, EqualsTheBestOfAllPlans) {
  std::mt19937 random(7);
  int infeasible = 0, graphs = 0, withinMachines = 0;
  for (int round = 0; round < 600; ++round) {
    SCOPED_TRACE(round);
    auto upTo = [&](int n) { return int(random() % unsigned(n + 1)); };
    PipeDreamProblem problem;
    const auto nodes = randomNodes(random, 1 + upTo(4));
    problem.states = chainStates(nodes);
    if (upTo(1) == 0) {
      auto states = antichainStates(nodes, 0);
      ASSERT_TRUE(states.has_value());
      problem.states = *states;
      graphs += problem.states.size() != nodes.size();
    }
    if (problem.states.size() > 6)
      continue;
    problem.levels = {{1 + upTo(3), 256.0 * (1 + upTo(7))}};
    if (upTo(1) == 0) {
      problem.levels[0].devices = 1 + upTo(1);
      problem.levels.push_back({1 + upTo(2), 64.0 * (1 + upTo(7))});
    }
    problem.replicas = upTo(3) != 0;
    problem.countTransfers = upTo(3) != 0;
    if (upTo(3) == 0)
      problem.replicaOptions = {1, 2};
    if (upTo(2) == 0)
      problem.memoryBytes = 512.0 * (1 + upTo(9));
    ASSERT_EQ(problem.check().value_or(""), "");
    const auto best = bruteForcePipeDream(problem);
    const auto plan = solvePipeDream(problem);
    ASSERT_EQ(plan.has_value(), best.has_value());
    if (!plan) {
      ++infeasible;
      continue;
    }
    EXPECT_EQ(verify(problem, *plan).value_or(""), "");
    EXPECT_NEAR(plan->seconds, best->seconds, 1e-9);
    for (const PipeDreamStage &stage : plan->stages)
      withinMachines += stage.inner.size() > 1;
    int64_t devices = 1, used = 0;
    for (const LinkLevel &level : problem.levels)
      devices *= level.devices;
    for (const PipeDreamStage &stage : flatten(*plan))
      used += stage.replicas;
    EXPECT_EQ(used, devices);
  }
  EXPECT_GT(infeasible, 10);
  EXPECT_GT(graphs, 50);
  EXPECT_GT(withinMachines, 10);
}

TEST(PipeDreamOracle, VerifyFindsFaults) {
  PipeDreamProblem problem;
  std::vector<ProfiledNode> nodes(4);
  for (int i = 0; i < 4; ++i) {
    nodes[i].forward = 1 + i;
    nodes[i].outputBytes = 8;
  }
  problem.states = chainStates(nodes);
  problem.levels = {{3, 1.0}};
  const auto plan = solvePipeDream(problem);
  ASSERT_TRUE(plan.has_value());
  auto faultOf = [&](auto change) {
    PipeDreamPlan changed = *plan;
    change(changed);
    return verify(problem, changed).value_or("");
  };
  EXPECT_EQ(faultOf([](PipeDreamPlan &) {}), "");
  EXPECT_NE(faultOf([](PipeDreamPlan &p) { p.seconds *= 0.9; }), "");
  EXPECT_NE(faultOf([](PipeDreamPlan &p) { p.stages.back().end -= 1; }), "");
  EXPECT_NE(faultOf([](PipeDreamPlan &p) { p.stages.front().replicas += 1; }),
            "");
  EXPECT_NE(faultOf([](PipeDreamPlan &p) { p.stages.pop_back(); }), "");
  EXPECT_NE(
      faultOf([](PipeDreamPlan &p) { p.stages[0].inner = {p.stages[0]}; }), "");
}

TEST(PipeDreamOracle, BadProblemsAreRefused) {
  PipeDreamProblem good;
  good.states = chainStates(std::vector<ProfiledNode>(3));
  good.levels = {{2, 1.0}};
  EXPECT_EQ(good.check().value_or(""), "");
  auto faultOf = [&](auto change) {
    PipeDreamProblem problem = good;
    change(problem);
    EXPECT_FALSE(solvePipeDream(problem).has_value());
    return problem.check().value_or("");
  };
  EXPECT_NE(faultOf([](PipeDreamProblem &p) { p.states.clear(); }), "");
  EXPECT_NE(faultOf([](PipeDreamProblem &p) { p.levels.clear(); }), "");
  EXPECT_NE(faultOf([](PipeDreamProblem &p) { p.levels[0].devices = 0; }), "");
  EXPECT_NE(
      faultOf([](PipeDreamProblem &p) { p.levels[0].bytesPerSecond = 0; }), "");
  EXPECT_NE(faultOf([](PipeDreamProblem &p) { p.states[1].seconds = -1; }), "");
  EXPECT_NE(faultOf([](PipeDreamProblem &p) { p.states[2].before = {0}; }), "");
  EXPECT_NE(faultOf([](PipeDreamProblem &p) { p.states[1].before = {2}; }), "");
  EXPECT_NE(faultOf([](PipeDreamProblem &p) {
              p.replicaOptions = {2, 1};
            }),
            "");
}

TEST(Antichains, TooManyStatesAreGivenUp) {
  // Ten layers side by side: about 2^10 down-sets.
  std::vector<ProfiledNode> nodes(12);
  for (int32_t i = 1; i <= 10; ++i) {
    nodes[0].readers.push_back(i);
    nodes[i].readers = {11};
  }
  EXPECT_FALSE(antichainStates(nodes, 0, 100).has_value());
  EXPECT_TRUE(antichainStates(nodes, 0).has_value());
}

TEST(Antichains, DiamondHasEveryDownSet) {
  std::vector<ProfiledNode> nodes(4);
  for (int32_t i = 0; i < 4; ++i) {
    nodes[i].forward = 1 << i;
    nodes[i].outputBytes = 1 << i;
  }
  nodes[0].readers = {1, 2};
  nodes[1].readers = nodes[2].readers = {3};
  const auto states = antichainStates(nodes, 0);
  ASSERT_TRUE(states.has_value());
  std::vector<std::pair<double, double>> found;
  for (const ProfileState &state : *states)
    found.emplace_back(state.seconds, state.outputBytes);
  std::sort(found.begin(), found.end());
  // The source is sent on beside one of its two readers, and, as the published
  // planner counts, beside both.
  const std::vector<std::pair<double, double>> expected = {
      {1, 1}, {3, 3}, {5, 5}, {7, 7}, {15, 8}};
  EXPECT_EQ(found, expected);
}

} // namespace
