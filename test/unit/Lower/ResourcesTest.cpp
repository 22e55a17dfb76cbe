//===- ResourcesTest.cpp - lowered plans whose devices share --------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Steps of lowered plans under shared ports and cores, worked out by hand.
//
//===----------------------------------------------------------------------===//
#include "TestModels.h"

#include "takt-rt/core/analysis.h"

#include <gtest/gtest.h>

using namespace takt;
using namespace takt::test;

namespace {

rt::NodeResources node(int32_t devices) {
  rt::NodeResources resources;
  resources.devices = devices;
  return resources;
}

rt::Simulation run(const LoweringProblem &problem, rt::Plan *out = nullptr) {
  EXPECT_EQ(problem.check(), std::nullopt);
  rt::Plan plan = lower(problem);
  std::vector<std::string> faults = rt::checkStructure(plan);
  EXPECT_TRUE(faults.empty()) << faults.front();
  if (out)
    *out = plan;
  return rt::simulate(plan);
}

/// Two stages of one micro-batch, the second with two replicas; all messages
/// and sums over one class of links.
LoweringProblem twoReplicasBehindOne() {
  LoweringProblem problem = makeProblem(makeMlp(2, 64), {1}, 1, {1, 2}, "1f1b");
  for (StageInput &stage : problem.stages)
    for (StageLayerTimes &times : stage.times)
      times = {};
  problem.stages[0].times[0] = {1000, 0, 500, 300};
  problem.stages[1].times[0] = {2000, 4000, 0, 700};
  rt::Link link{"link", 0, 1e9};
  problem.boundaryLinks[0] = problem.roles[1].groupLink = link;
  return problem;
}

} // namespace

TEST(Resources, AllReduceAndMessagesShareAPort) {
  LoweringProblem problem = twoReplicasBehindOne();
  const Bytes message = 4 * 64 * 4; // 1024 ns at 1 GB/s
  const Bytes gradients = bucketBytes(problem.graph, problem.stages[1])[0];
  // A ring of two moves as many bytes as there are: half of them twice.
  const Nanos reduce = gradients;
  ASSERT_GT(reduce, 2 * message);
  // F and the message, F and B, the all-reduce, the update.
  const Nanos alone = 1000 + message + 2000 + 4000 + reduce + 700;
  EXPECT_EQ(run(problem).makespan, alone);

  // Both halves of the message go back while the sum begins. The receiver's
  // port gives half of its rate to each half of the message, the replicas'
  // ports what is left, half, to the sum: for 1024 ns it is half as fast.
  problem.resources = {node(3)};
  problem.resources[0].portBytesPerSecond = 1e9;
  rt::Plan plan;
  rt::Simulation shared = run(problem, &plan);
  EXPECT_EQ(shared.makespan, alone + message / 2);

  // The wait for the sum is data on its way; of it so much for sharing.
  rt::Analysis analysis = rt::analyze(plan, shared);
  const rt::RankTimes &times = analysis.ranks[1];
  EXPECT_EQ(times.slowed, 0);
  EXPECT_EQ(times.busy + times.bubble + times.exposed, shared.makespan);
  bool found = false;
  for (const rt::IdlePart &part : times.parts)
    if (part.cause == rt::IdleCause::AllReduce) {
      found = true;
      EXPECT_EQ(part.moving, reduce + message / 2);
      EXPECT_EQ(part.delayed, message / 2);
    }
  EXPECT_TRUE(found);

  // Apart, on ports to the network, the same. Through ports of twice the link's
  // rate both halves of a message move at once, and nothing is in the way.
  problem.resources = {node(1)};
  problem.resources[0].nodes = 3;
  problem.resources[0].networkBytesPerSecond = 1e9;
  EXPECT_EQ(run(problem).makespan, alone + message / 2);
  problem.resources[0].networkBytesPerSecond = 2e9;
  EXPECT_EQ(run(problem).makespan, alone - message / 2);
}

TEST(Resources, FourRanksOnTwoCoresTakeTwiceAsLong) {
  LoweringProblem problem = makeProblem(makeMlp(2, 64), {}, 3, {4}, "gpipe");
  for (StageLayerTimes &times : problem.stages[0].times)
    times = {100, 200, 300, 50};
  const Nanos layers = Nanos(problem.stages[0].times.size());
  const Nanos step = layers * (3 * 600 + 50);
  EXPECT_EQ(run(problem).makespan, step);
  problem.resources = {node(4)};
  EXPECT_EQ(run(problem).makespan, step); // cores are not stated
  problem.resources[0].cores = 4;
  EXPECT_EQ(run(problem).makespan, step);
  problem.resources[0].cores = 2;
  rt::Plan plan;
  rt::Simulation shared = run(problem, &plan);
  EXPECT_EQ(shared.makespan, 2 * step);
  EXPECT_EQ(rt::analyze(plan, shared).ranks[3].slowed, step);
}

TEST(Resources, DevicesOfAllStagesAreCovered) {
  LoweringProblem problem = twoReplicasBehindOne();
  problem.resources = {node(2)};
  EXPECT_EQ(problem.check(), "device 2 is not one of the 2 of the nodes");
  problem.resources.push_back(node(1));
  EXPECT_EQ(problem.check(), std::nullopt);
}
