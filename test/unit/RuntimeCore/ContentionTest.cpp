//===- ContentionTest.cpp - calls and transfers that share ------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Shares worked out by hand, and steps whose length follows from them.
//
//===----------------------------------------------------------------------===//
#include "PlanBuilder.h"

#include "takt-rt/core/clock.h"
#include "takt-rt/core/file.h"
#include "takt-rt/core/text.h"

#include <gtest/gtest.h>

#include <algorithm>

using namespace takt::rt;
using namespace takt::rt::test;

static NodeResources nodesOf(int32_t nodes, int32_t devices) {
  NodeResources resources;
  resources.nodes = nodes;
  resources.devices = devices;
  return resources;
}

static Nanos makespan(const Plan &plan) {
  auto faults = checkStructure(plan);
  EXPECT_TRUE(faults.empty()) << faults.front();
  return simulate(plan).makespan;
}

/// Two stages of one micro-batch, the first with two replicas: two pieces of
/// 384 bytes reach the second rank at once over 1 GB/s, and two go back.
static Plan twoToOne() {
  PipelineShape shape;
  shape.replicas = {2, 1};
  shape.microBatches = 1;
  shape.forward = 100;
  shape.backward = 200;
  shape.link = {"l", 10, 1e9};
  Plan plan = makePipeline(shape);
  plan.groups[0].link = {"l", 0, 0};
  return plan;
}

TEST(Contention, NothingSharedTakesTheSameTime) {
  for (bool oneFOneB : {false, true}) {
    PipelineShape shape;
    shape.stages = 4;
    shape.oneFOneB = oneFOneB;
    shape.forward = 37;
    shape.backward = 91;
    shape.link = {"l", 11, 3e9};
    Plan plan = makePipeline(shape);
    Nanos alone = makespan(plan);
    plan.resources = {nodesOf(2, 2)};
    EXPECT_EQ(makespan(plan), alone);
    // Wide enough for everything that can happen at once.
    plan.resources[0].cores = 2;
    plan.resources[0].copyEngines = 4;
    plan.resources[0].portBytesPerSecond = 6e9;
    plan.resources[0].networkBytesPerSecond = 6e9;
    plan.resources[0].memoryBytesPerSecond = 1e15;
    EXPECT_EQ(makespan(plan), alone);
  }
}

// Into one port of 1 GB/s: 384 ns a piece become 768.
TEST(Contention, PiecesShareTheReceiversPort) {
  Plan plan = twoToOne();
  plan.resources = {nodesOf(1, 3)};
  Nanos free = makespan(plan);
  EXPECT_EQ(free, 2 * (100 + 200 + 10 + 384));
  plan.resources[0].portBytesPerSecond = 1e9;
  EXPECT_EQ(makespan(plan), 2 * (100 + 200 + 10 + 768));
  // The port is for links inside a node.
  plan.resources[0].nodes = 3;
  plan.resources[0].devices = 1;
  EXPECT_EQ(makespan(plan), free);
  plan.resources[0].networkBytesPerSecond = 1e9;
  EXPECT_EQ(makespan(plan), 2 * (100 + 200 + 10 + 768));
}

// Two senders in one node with one network port between them.
TEST(Contention, ANodesPortsAreShared) {
  Plan plan = twoToOne();
  plan.resources = {nodesOf(1, 2), nodesOf(1, 1)};
  for (NodeResources &nodes : plan.resources)
    nodes.networkBytesPerSecond = 2e9;
  Nanos free = makespan(plan);
  EXPECT_EQ(free, 2 * (100 + 200 + 10 + 384));
  for (NodeResources &nodes : plan.resources)
    nodes.networkBytesPerSecond = 1e9;
  plan.resources[1].networkBytesPerSecond = 2e9;
  plan.resources[0].networkPorts = 1;
  EXPECT_EQ(makespan(plan), 2 * (100 + 200 + 10 + 768));
}

TEST(Contention, ATransferKeepsACopyEngineBusy) {
  Plan plan = twoToOne();
  plan.resources = {nodesOf(1, 3)};
  plan.resources[0].copyEngines = 2;
  EXPECT_EQ(makespan(plan), 2 * (100 + 200 + 10 + 384));
  plan.resources[0].copyEngines = 1;
  EXPECT_EQ(makespan(plan), 2 * (100 + 200 + 10 + 768));
}

// Three replicas compute at once on two cores: all at two thirds.
TEST(Contention, RanksShareTheCoresOfANode) {
  PipelineShape shape;
  shape.stages = 1;
  shape.replicas = {3};
  shape.microBatches = 2;
  shape.forward = 100;
  shape.backward = 200;
  Plan plan = makePipeline(shape);
  plan.resources = {nodesOf(1, 3)};
  plan.resources[0].cores = 3;
  EXPECT_EQ(makespan(plan), 600);
  plan.resources[0].cores = 2;
  EXPECT_EQ(makespan(plan), 900);
  plan.resources[0].cores = 1;
  EXPECT_EQ(makespan(plan), 1800);
  Simulation run = simulate(plan);
  EXPECT_EQ(run.busy, (std::vector<Nanos>{1800, 1800, 1800}));
  // On nodes of their own they have enough.
  plan.resources[0].nodes = 3;
  plan.resources[0].devices = 1;
  EXPECT_EQ(makespan(plan), 600);
}

// A message that moves while a call runs takes a quarter of the SMs: both go on
// at 1 / 1.25 until one of them ends.
TEST(Contention, TransfersSlowCallsDown) {
  PipelineShape shape;
  shape.microBatches = 2;
  shape.forward = 1000;
  shape.backward = 2000;
  shape.oneFOneB = false;
  shape.link = {"l", 0, 768e9 / 800}; // 800 ns a message
  Plan plan = makePipeline(shape);
  plan.resources = {nodesOf(1, 2)};
  plan.resources[0].transferShare = 0.25;
  Simulation run = simulate(plan);
  // F1 of the first stage, 1000: beside the message to 2000, then alone.
  size_t lane = laneOf(plan.roles[0], LaneKind::Compute);
  auto second = std::find_if(
      run.records.begin(), run.records.end(), [&](const Record &record) {
        return record.rank == 0 && record.instr == 1 && record.lane == lane;
      });
  ASSERT_NE(second, run.records.end());
  EXPECT_EQ(second->begin, 1000);
  EXPECT_EQ(second->end, 2200);
}

TEST(Contention, ResourcesSurviveBothForms) {
  Plan plan = twoToOne();
  plan.resources = {nodesOf(1, 2), nodesOf(3, 4)};
  plan.resources[1] = {3, 4, 5, 6, 0.125, 7e11, 8.5e10, 9e9, 2, "k", 8};
  Plan text = parsePlanText(toText(plan), "text");
  std::vector<uint8_t> bytes = serialize(plan);
  Plan binary = deserialize(bytes.data(), bytes.size(), "binary");
  EXPECT_EQ(toText(text), toText(plan));
  EXPECT_EQ(toText(binary), toText(plan));
  ASSERT_EQ(binary.resources.size(), 2u);
  EXPECT_EQ(binary.resources[1].networkPorts, 2);
  EXPECT_EQ(binary.resources[1].transferShare, 0.125);
  EXPECT_EQ(binary.resources[1].kind, "k");
  EXPECT_EQ(binary.resources[1].price, 8);
}

TEST(Contention, BadResourcesAreRefused) {
  auto fault = [](auto change) {
    Plan plan = twoToOne();
    plan.resources = {nodesOf(1, 3)};
    change(plan.resources[0]);
    auto faults = checkStructure(plan);
    return faults.empty() ? "" : faults.front();
  };
  EXPECT_EQ(fault([](NodeResources &) {}), "");
  EXPECT_EQ(fault([](NodeResources &n) { n.devices = 2; }),
            "role 'stage1': device 2 is not one of the 2 of the nodes");
  EXPECT_EQ(fault([](NodeResources &n) { n.price = -1; }),
            "nodes 0: a price of -1 millionths an hour");
  EXPECT_EQ(fault([](NodeResources &n) { n.nodes = 0; }),
            "nodes 0: 0 nodes of 3 devices");
  EXPECT_EQ(fault([](NodeResources &n) { n.transferShare = 1.5; }),
            "nodes 0: a share of 1.5 is not between 0 and 1");
  EXPECT_EQ(fault([](NodeResources &n) { n.portBytesPerSecond = -1; }),
            "nodes 0: bad bandwidth");
}

// The network of a published regression: a ring of 8 at 50 GB/s and 500 ns, 1
// MiB, whole and in four parts one after another.
TEST(Contention, RingAllReduce) {
  for (int32_t parts : {1, 4}) {
    PipelineShape shape;
    shape.stages = 1;
    shape.replicas = {8};
    shape.microBatches = 1;
    shape.samples = 8;
    shape.forward = shape.backward = 0;
    Plan plan = makePipeline(shape);
    Role &role = plan.roles[0];
    plan.groups[0].link = {"ring", 500, 50e9};
    Bytes bytes = (1 << 20) / parts;
    role.pools.push_back(
        {PoolKind::Gradients, "buffer", role.arenaBytes, bytes, 1, {}});
    role.arenaBytes += bytes;
    role.groups[0].buffer = {uint16_t(role.pools.size() - 1), 0, bytes};
    Lane &reduce = role.lanes[laneOf(role, LaneKind::Reduce)];
    for (int32_t i = 1; i < parts; ++i)
      reduce.instrs.push_back({InstrKind::AllReduce, 0, -1, 0, 0});
    EXPECT_EQ(makespan(plan), parts == 1 ? 43700 : 64700);
    plan.resources = {nodesOf(1, 8)};
    plan.resources[0].portBytesPerSecond = 50e9;
    EXPECT_EQ(makespan(plan), parts == 1 ? 43700 : 64700);
  }
}
