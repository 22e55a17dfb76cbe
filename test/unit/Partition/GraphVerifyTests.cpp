//===- GraphVerifyTests.cpp - what the check of graph answers refuses -----===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Every figure and rule that an answer could get wrong, changed one at a time
// in an answer that is right.
//
//===----------------------------------------------------------------------===//

#include "RandomGraph.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

using namespace takt;
using namespace takt::test;

namespace {

/// a -> b -> c with a skip a -> c; c's gradient goes back to a.
GraphProblem skip() {
  GraphProblem problem;
  problem.devices = {{"big", 2, 100, true}, {"small", 1, 50, false}};
  for (const char *name : {"a", "b", "c"})
    problem.nodes.push_back({name, {10, 30}, 4, 20, 1});
  problem.nodes[1].time[1] = kCannotRun;
  problem.tensors = {
      {0, {1, 2}, 3, true}, {1, {2}, 2, true}, {2, {0}, 1, false}};
  problem.ties = {{{0, 2}, 5, 1, 2}};
  problem.replicaOptions = {1, 2};
  problem.microBatches = 4;
  return problem;
}

GraphPartition answer(const GraphProblem &problem) {
  GraphPartition partition;
  partition.blocks.resize(2);
  partition.blocks[0].nodes = {0, 1};
  partition.blocks[1].nodes = {2};
  evaluate(problem, partition);
  return partition;
}

TEST(GraphVerify, FiguresAreThoseOfTheDefinitions) {
  const GraphProblem problem = skip();
  const GraphPartition partition = answer(problem);
  ASSERT_EQ(verify(problem, partition).value_or(""), "");
  const GraphBlock &first = partition.blocks[0], &last = partition.blocks[1];
  EXPECT_EQ(first.work, 20);
  EXPECT_EQ(first.out, 5); // a's output once, b's once
  EXPECT_EQ(first.in, 1);
  EXPECT_EQ(first.shared, 1);
  EXPECT_EQ(first.period, 27);
  EXPECT_EQ(first.inFlight, 2);
  EXPECT_EQ(first.memory, 20 + 20 + 5 + 2 * 2);
  EXPECT_EQ(last.in, 5);
  EXPECT_EQ(last.out, 1);
  EXPECT_EQ(last.period, 17);
  EXPECT_EQ(partition.objective, 27);
}

TEST(GraphVerify, ReplicasReduceAndTakeTurns) {
  GraphProblem problem = skip();
  problem.devices[0].memory = 0;
  GraphPartition partition;
  partition.blocks.resize(1);
  partition.blocks[0].nodes = {0, 1, 2};
  partition.blocks[0].replicas = 2;
  evaluate(problem, partition);
  EXPECT_EQ(partition.blocks[0].reduce, 3 * 4 + 2); // 2 (r - 1) / r = 1
  EXPECT_EQ(partition.objective, (30 + 14) / 2);
  EXPECT_EQ(verify(problem, partition).value_or(""), "");
}

TEST(GraphVerify, RelayedTensorsPassThroughEveryCut) {
  GraphProblem problem = skip();
  problem.tensors.pop_back();
  problem.devices[0].count = 3;
  problem.costModel = GraphCostModel::Relayed;
  GraphPartition partition;
  partition.blocks.resize(3);
  for (int32_t v = 0; v < 3; ++v)
    partition.blocks[v].nodes = {v};
  evaluate(problem, partition);
  EXPECT_EQ(verify(problem, partition).value_or(""), "");
  EXPECT_EQ(partition.blocks[0].out, 3);
  EXPECT_EQ(partition.blocks[1].in, 3);
  EXPECT_EQ(partition.blocks[1].out, 5);
  EXPECT_EQ(partition.blocks[2].in, 5);
}

TEST(GraphVerify, RefusesEveryChange) {
  using Change = std::function<void(GraphPartition &)>;
  const std::pair<const char *, Change> changes[] = {
      {"lies in no block", [](auto &p) { p.blocks[0].nodes = {0}; }},
      {"lies in blocks 0 and 1",
       [](auto &p) {
         p.blocks[1].nodes = {1, 2};
       }},
      {"is empty", [](auto &p) { p.blocks.emplace_back(); }},
      {"do not ascend",
       [](auto &p) {
         p.blocks[0].nodes = {1, 0};
       }},
      {"holds node 3 of 3",
       [](auto &p) {
         p.blocks[1].nodes = {2, 3};
       }},
      {"node 'b' of block 0 reads 'a' of block 1",
       [](auto &p) {
         p.blocks[0].nodes = {1, 2};
         p.blocks[1].nodes = {0};
       }},
      {"device kind 2 of 2", [](auto &p) { p.blocks[0].device = 2; }},
      {"cannot run on device 'small'", [](auto &p) { p.blocks[0].device = 1; }},
      {"3 replicas, which is no option",
       [](auto &p) { p.blocks[0].replicas = 3; }},
      {"3 devices 'big' are used", [](auto &p) { p.blocks[0].replicas = 2; }},
      {"states work", [](auto &p) { ++p.blocks[0].work; }},
      {"states in ", [](auto &p) { ++p.blocks[0].in; }},
      {"states out", [](auto &p) { --p.blocks[1].out; }},
      {"states shared", [](auto &p) { p.blocks[1].shared = 0; }},
      {"states reduce", [](auto &p) { p.blocks[1].reduce = 1; }},
      {"states period", [](auto &p) { --p.blocks[0].period; }},
      {"states micro-batches", [](auto &p) { ++p.blocks[0].inFlight; }},
      {"states memory", [](auto &p) { --p.blocks[0].memory; }},
      {"the objective is stated", [](auto &p) { --p.objective; }},
      {"the bound 28 ns lies above", [](auto &p) { p.bound = 28; }},
  };
  const GraphProblem problem = skip();
  for (const auto &[message, change] : changes) {
    SCOPED_TRACE(message);
    GraphPartition partition = answer(problem);
    change(partition);
    const std::string fault = verify(problem, partition).value_or("");
    EXPECT_NE(fault.find(message), std::string::npos) << fault;
  }
}

TEST(GraphVerify, RefusesBrokenLimits) {
  using Change = std::function<void(GraphProblem &)>;
  const std::pair<const char *, Change> changes[] = {
      {"needs 49 bytes a device, 'big' has 48",
       [](auto &p) { p.devices[0].memory = 48; }},
      {"2 blocks where 1 are allowed", [](auto &p) { p.maxBlocks = 1; }},
      {"2 blocks where 3 were asked for",
       [](auto &p) {
         p.maxBlocks = 3;
         p.exactBlocks = true;
       }},
      {"nodes 'b' and 'c' are parted",
       [](auto &p) {
         p.together = {{1, 2}};
       }},
  };
  for (const auto &[message, change] : changes) {
    SCOPED_TRACE(message);
    GraphProblem problem = skip();
    change(problem);
    const GraphPartition partition = answer(problem);
    const std::string fault = verify(problem, partition).value_or("");
    EXPECT_NE(fault.find(message), std::string::npos) << fault;
  }
}

TEST(GraphProblem, FaultsAreNamed) {
  using Change = std::function<void(GraphProblem &)>;
  const std::pair<const char *, Change> changes[] = {
      {"no nodes", [](auto &p) { p.nodes.clear(); }},
      {"0 kinds of device", [](auto &p) { p.devices.clear(); }},
      {"there are no devices",
       [](auto &p) { p.devices[0].count = p.devices[1].count = 0; }},
      {"negative count", [](auto &p) { p.devices[0].count = -1; }},
      {"at most", [](auto &p) { p.devices[0].count = int64_t(1) << 40; }},
      {"more than 16384 ways",
       [](auto &p) { p.devices[0].count = p.devices[1].count = 200; }},
      {"node 'a' has 1 times", [](auto &p) { p.nodes[0].time = {1}; }},
      {"node 'a' has a negative time",
       [](auto &p) { p.nodes[0].time[0] = -7; }},
      {"node 'b' has a negative size", [](auto &p) { p.nodes[1].saved = -1; }},
      {"tensor 0 has producer 9", [](auto &p) { p.tensors[0].producer = 9; }},
      {"tensor 1 do not ascend", [](auto &p) { p.tensors[1].consumers = {1}; }},
      {"tensor 0 do not ascend",
       [](auto &p) {
         p.tensors[0].consumers = {2, 1};
       }},
      {"tensor 2 is not ordered",
       [](auto &p) { p.costModel = GraphCostModel::Relayed; }},
      {"node 'a' depends on a cycle",
       [](auto &p) { p.tensors[2].ordered = true; }},
      {"tie 0 does not name two", [](auto &p) { p.ties[0].nodes = {1}; }},
      {"group 0 does not name nodes", [](auto &p) { p.together = {{4}}; }},
      {"replica options do not ascend",
       [](auto &p) {
         p.replicaOptions = {2, 2};
       }},
      {"number of blocks", [](auto &p) { p.exactBlocks = true; }},
      {"micro-batches", [](auto &p) { p.microBatches = 0; }},
      {"add up to more than 2^60",
       [](auto &p) { p.nodes[0].time[0] = INT64_MAX; }},
  };
  for (const auto &[message, change] : changes) {
    SCOPED_TRACE(message);
    GraphProblem problem = skip();
    ASSERT_EQ(problem.check().value_or(""), "");
    change(problem);
    const std::string fault = problem.check().value_or("");
    EXPECT_NE(fault.find(message), std::string::npos) << fault;
    EXPECT_EQ(solveGraph(problem).infeasible.reason, fault);
  }
}

TEST(GraphProblem, ImpossibleDemandsAreExplained) {
  using Change = std::function<void(GraphProblem &)>;
  const std::pair<const char *, Change> changes[] = {
      {"node 'b' can run on no device",
       [](auto &p) { p.nodes[1].time[0] = kCannotRun; }},
      {"node 'a' needs 201 bytes, no device that can run it has more than 100",
       [](auto &p) { p.nodes[0].memory = 200; }},
      {"the nodes need 273 bytes, all devices together have 250",
       [](auto &p) {
         for (GraphNode &node : p.nodes)
           node.memory = 90;
       }},
      {"4 blocks were asked for, there are 3 nodes",
       [](auto &p) {
         p.maxBlocks = 4;
         p.exactBlocks = true;
         p.devices[0].count = 5;
       }},
      {"no acyclic partition keeps all limits",
       [](auto &p) {
         p.devices[1].count = 0;
         for (GraphNode &node : p.nodes)
           node.memory = 60;
       }},
  };
  for (const auto &[message, change] : changes) {
    SCOPED_TRACE(message);
    GraphProblem problem = skip();
    change(problem);
    const GraphResult result = solveGraph(problem);
    EXPECT_FALSE(result.partition.has_value());
    EXPECT_FALSE(result.outOfWork);
    EXPECT_NE(result.infeasible.reason.find(message), std::string::npos)
        << result.infeasible.reason;
    EXPECT_FALSE(bruteForceGraph(problem).partition.has_value());
  }
}

} // namespace
