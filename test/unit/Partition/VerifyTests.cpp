//===- VerifyTests.cpp - tampered answers are rejected --------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// The check must notice every single field that does not follow from the
// problem.
//
//===----------------------------------------------------------------------===//

#include "RandomProblem.h"

#include <gtest/gtest.h>

#include <functional>

using namespace takt;

namespace {

/// Two stages of two replicas on four devices in two nodes.
PartitionProblem smallProblem() {
  PartitionProblem problem;
  problem.replicaOptions = {1, 2};
  for (const char *name : {"a", "b", "c", "d"}) {
    SegmentCost segment;
    segment.name = name;
    segment.time = {1000, 500};
    segment.update = {10, 10};
    segment.saved = {100, 50};
    segment.workspace = {30, 15};
    segment.output = {64, 32};
    segment.outputWhole = 64;
    segment.weights = segment.gradients = 200;
    problem.segments.push_back(segment);
  }
  problem.cluster.devices = 4;
  problem.cluster.devicesPerNode = 2;
  problem.cluster.intraNode = {"inside", 1, 1e9};
  problem.cluster.network = {"network", 10, 1e8};
  problem.cluster.memory = 2000;
  problem.microBatches = 8;
  problem.cuts = std::vector<int64_t>{2};
  problem.replicas = 2;
  return problem;
}

TEST(Evaluate, ByHand) {
  const PartitionProblem problem = smallProblem();
  const Partition answer = *solvePartition(problem).partition;
  ASSERT_EQ(answer.stages.size(), 2u);
  EXPECT_EQ(answer.method, "given cuts");
  const StageChoice &first = answer.stages[0], &last = answer.stages[1];
  EXPECT_EQ(first.time, 1000);
  // 32 bytes each way over the network at 0.1 bytes a nanosecond.
  EXPECT_EQ(first.transfer, 2 * (10 + 320));
  EXPECT_EQ(last.transfer, 0);
  // Ring inside the node: 2 steps of 200 bytes and 1 ns, and the updates.
  EXPECT_EQ(first.allReduce, 2 * (1 + 200) + 20);
  EXPECT_EQ(first.inFlight, 2);
  EXPECT_EQ(last.inFlight, 1);
  // State, saved twice, two outputs and two gradient buffers, workspace.
  EXPECT_EQ(first.memory, 800 + 2 * 100 + 4 * 32 + 15);
  // State, saved once, two inputs and two gradient buffers, workspace.
  EXPECT_EQ(last.memory, 800 + 100 + 4 * 32 + 15);
  EXPECT_EQ(last.firstDevice, 2);
  EXPECT_EQ(answer.objective, 2000 + 660 + 7 * 1000 + 422);
  EXPECT_EQ(verify(problem, answer).value_or(""), "");
}

TEST(Verify, RejectsTampering) {
  const PartitionProblem problem = smallProblem();
  const Partition answer = *solvePartition(problem).partition;
  const std::pair<const char *, std::function<void(Partition &)>> changes[] = {
      {"gap", [](Partition &p) { p.stages[1].begin = 3; }},
      {"overlap", [](Partition &p) { p.stages[0].end = 3; }},
      {"empty stage", [](Partition &p) { p.stages[0].end = 0; }},
      {"beyond the end", [](Partition &p) { p.stages[1].end = 5; }},
      {"missing stage", [](Partition &p) { p.stages.pop_back(); }},
      {"no stages", [](Partition &p) { p.stages.clear(); }},
      {"option", [](Partition &p) { p.stages[0].option = 2; }},
      {"other option", [](Partition &p) { p.stages[0].option = 0; }},
      {"shared device", [](Partition &p) { p.stages[1].firstDevice = 1; }},
      {"far device", [](Partition &p) { p.stages[1].firstDevice = 3; }},
      {"hole", [](Partition &p) { p.stages[1].firstDevice = -1; }},
      {"time", [](Partition &p) { --p.stages[0].time; }},
      {"transfer", [](Partition &p) { ++p.stages[0].transfer; }},
      {"all-reduce", [](Partition &p) { p.stages[1].allReduce = 0; }},
      {"memory", [](Partition &p) { --p.stages[1].memory; }},
      {"in flight", [](Partition &p) { p.stages[1].inFlight = 2; }},
      {"objective", [](Partition &p) { --p.objective; }},
      {"bound", [](Partition &p) { p.bound = p.objective + 1; }},
  };
  for (const auto &[what, change] : changes) {
    Partition changed = answer;
    change(changed);
    EXPECT_TRUE(verify(problem, changed).has_value()) << what;
  }
}

// An answer to one problem is none to a stricter one.
TEST(Verify, RejectsBrokenWishes) {
  const PartitionProblem problem = smallProblem();
  const Partition answer = *solvePartition(problem).partition;
  const std::pair<const char *, std::function<void(PartitionProblem &)>>
      wishes[] = {
          {"stages", [](PartitionProblem &p) { p.cuts.reset(), p.stages = 3; }},
          {"most stages", [](PartitionProblem &p) { p.maxStages = 1; }},
          {"cuts", [](PartitionProblem &p) { p.cuts = {{1}}; }},
          {"replicas", [](PartitionProblem &p) { p.replicas = 1; }},
          {"no cut here",
           [](PartitionProblem &p) {
             p.cuts.reset();
             p.segments[1].mayCutAfter = false;
           }},
          {"memory", [](PartitionProblem &p) { p.cluster.memory = 1100; }},
          {"all devices",
           [](PartitionProblem &p) {
             p.cluster.devices = 5;
             p.useAllDevices = true;
           }},
      };
  for (const auto &[what, wish] : wishes) {
    PartitionProblem changed = problem;
    wish(changed);
    ASSERT_EQ(changed.check().value_or(""), "") << what;
    EXPECT_TRUE(verify(changed, answer).has_value()) << what;
  }
}

} // namespace
