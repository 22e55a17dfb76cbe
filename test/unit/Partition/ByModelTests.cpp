//===- ByModelTests.cpp - stages of a chain by a published model ----------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// What the planners answer to a problem of Takt's: whole chains on all devices,
// at the value that their own search over all plans finds.
//
//===----------------------------------------------------------------------===//

#include "RandomProblem.h"

#include "takt/Partition/Costs/ByModel.h"
#include "takt/Partition/Costs/Dapple.h"
#include "takt/Partition/Costs/PipeDream.h"

#include <gtest/gtest.h>

#include <algorithm>

using namespace takt;

namespace {

/// Without what the models do not know.
PartitionProblem plainProblem(uint64_t seed) {
  test::Random random(seed);
  PartitionProblem problem = test::randomProblem(seed);
  problem.segments.resize(
      std::min<size_t>(problem.segments.size(), size_t(random.in(1, 6))));
  for (SegmentCost &segment : problem.segments)
    segment.mayCutAfter = true;
  problem.cuts.reset();
  problem.replicas.reset();
  problem.apart.clear();
  problem.pins.clear();
  problem.rankOfStage.clear();
  problem.heldByStage.clear();
  problem.stages = problem.maxStages = 0;
  problem.useAllDevices = false;
  problem.cluster.devicesPerNode = random.in(1, 2);
  problem.cluster.devices = problem.cluster.devicesPerNode * random.in(1, 2);
  problem.cluster.memory = 0;
  return problem;
}

std::vector<Nanos> thirds(const PartitionProblem &problem) {
  std::vector<Nanos> forward;
  for (const SegmentCost &segment : problem.segments)
    forward.push_back(segment.time.front() / 3);
  return forward;
}

double secondsOf(Nanos time) { return double(time) * 1e-9; }

std::vector<ProfiledNode> layersOf(const PartitionProblem &problem) {
  std::vector<ProfiledNode> layers;
  for (const SegmentCost &segment : problem.segments) {
    ProfiledNode layer;
    layer.forward = secondsOf(segment.time.front() / 3);
    layer.backward = secondsOf(segment.time.front() - segment.time.front() / 3);
    layer.outputBytes = double(segment.outputWhole);
    layer.parameterBytes = double(segment.gradients);
    layers.push_back(layer);
  }
  return layers;
}

double rate(const rt::Link &link) {
  return link.bytesPerSecond > 0 ? link.bytesPerSecond : 1e18;
}

TEST(ByModel, EachAnswersAtItsOwnBest) {
  int answered = 0, refused = 0, pipelines = 0;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    const PartitionProblem problem = plainProblem(seed);
    ASSERT_EQ(problem.check().value_or(""), "");
    const PartitionCluster &cluster = problem.cluster;
    for (const CostModel model : {CostModel::PipeDream, CostModel::Dapple}) {
      SCOPED_TRACE(costModelName(model));
      ModelFault fault;
      const auto found = stagesByModel(problem, model, thirds(problem), fault);
      std::optional<double> best;
      const int64_t machines = cluster.devices / cluster.devicesPerNode;
      if (model == CostModel::PipeDream) {
        PipeDreamProblem own;
        own.states = chainStates(layersOf(problem));
        own.replicaOptions = problem.replicaOptions;
        own.levels = {{cluster.devicesPerNode, rate(cluster.intraNode)}};
        if (machines > 1)
          own.levels.push_back({machines, rate(cluster.network)});
        if (const auto plan = bruteForcePipeDream(own))
          best = plan->seconds * double(problem.microBatches);
      } else {
        DappleProblem own;
        own.layers = layersOf(problem);
        own.microBatches = problem.microBatches;
        own.cluster.machines = machines;
        own.cluster.devicesPerMachine = cluster.devicesPerNode;
        own.cluster.withinRate = rate(cluster.intraNode);
        own.cluster.acrossRate = own.cluster.reduceRate = rate(cluster.network);
        own.cluster.sharedNetwork = false;
        own.placements = {DapplePlacement::Append};
        own.replicaOptions = problem.replicaOptions;
        if (const auto plan = solveDapple(own))
          best = plan->seconds;
      }
      if (!found) {
        EXPECT_NE(fault.text, "");
        ++refused;
        continue;
      }
      ++answered;
      ASSERT_TRUE(best.has_value());
      EXPECT_NEAR(secondsOf(found->step), *best, 1e-8);
      int64_t next = 0, devices = 0;
      for (const StageChoice &stage : found->stages) {
        EXPECT_EQ(stage.begin, next);
        EXPECT_GT(stage.end, stage.begin);
        next = stage.end;
        devices += problem.replicaOptions[stage.option];
      }
      EXPECT_EQ(next, int64_t(problem.segments.size()));
      EXPECT_EQ(devices, cluster.devices);
      pipelines += found->stages.size() > 1;
      Partition partition;
      partition.stages = found->stages;
      evaluate(problem, partition);
      EXPECT_EQ(verify(problem, partition).value_or(""), "");
    }
  }
  EXPECT_GT(answered, 100);
  EXPECT_GT(refused, 5);
  EXPECT_GT(pipelines, 20);
}

TEST(ByModel, WishesThatTheyDoNotKnowAreRefused) {
  auto refusal = [](CostModel model, auto change) {
    PartitionProblem problem = plainProblem(1);
    problem.segments.resize(3, problem.segments.front());
    change(problem);
    ModelFault fault;
    EXPECT_FALSE(stagesByModel(problem, model, thirds(problem), fault));
    EXPECT_FALSE(fault.infeasible);
    return fault.text;
  };
  using P = PartitionProblem;
  for (const CostModel model :
       {CostModel::PipeDream, CostModel::Dapple, CostModel::TwoBw,
        CostModel::DnnPartitioning, CostModel::Piper}) {
    const std::string start = std::string("the cost model '") +
                              costModelName(model) + "' does not know ";
    EXPECT_EQ(refusal(model, [](P &p) { p.cuts = {1}; }), start + "cuts");
    EXPECT_EQ(refusal(model, [](P &p) { p.replicas = 1; }),
              start + "a number of replicas");
    EXPECT_EQ(refusal(model, [](P &p) { p.stages = 2; }),
              start + "an exact number of stages");
    EXPECT_EQ(refusal(model,
                      [](P &p) {
                        p.pins = {{0, 0}};
                      }),
              start + "side constraints");
    EXPECT_EQ(refusal(model, [](P &p) { p.segments[0].mayCutAfter = false; }),
              start + "side constraints");
  }
  for (const CostModel model :
       {CostModel::PipeDream, CostModel::TwoBw, CostModel::Piper})
    EXPECT_EQ(refusal(model, [](P &p) { p.maxStages = 2; }),
              std::string("the cost model '") + costModelName(model) +
                  "' does not know a largest number of stages");
  EXPECT_NE(refusal(CostModel::Takt, [](P &) {}), "");
}

TEST(ByModel, NamesAreReadBack) {
  for (const CostModel model :
       {CostModel::Takt, CostModel::PipeDream, CostModel::Dapple,
        CostModel::TwoBw, CostModel::DnnPartitioning, CostModel::Piper})
    EXPECT_EQ(parseCostModel(costModelName(model)), model);
  EXPECT_FALSE(parseCostModel("gpipe").has_value());
}

} // namespace
