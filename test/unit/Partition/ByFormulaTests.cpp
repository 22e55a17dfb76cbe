//===- ByFormulaTests.cpp - chains and graphs by published formulas -------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// What the planners of dnn-partitioning, Piper and PipeDream-2BW answer to a
// problem of Takt's: the least value of their formulas, written down here once
// more, over all stages.
//
//===----------------------------------------------------------------------===//

#include "RandomProblem.h"

#include "takt/Partition/Costs/ByModel.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>

using namespace takt;

namespace {

/// Without what the models do not know.
PartitionProblem plainProblem(uint64_t seed) {
  PartitionProblem problem = test::randomProblem(seed);
  if (problem.segments.size() > 6)
    problem.segments.resize(6);
  for (SegmentCost &segment : problem.segments)
    segment.mayCutAfter = true;
  problem.cuts.reset();
  problem.replicas.reset();
  problem.stages = problem.maxStages = 0;
  problem.useAllDevices = false;
  problem.cluster.devicesPerNode = problem.cluster.devices;
  if (problem.replicaOptions.front() != 1) {
    problem.replicaOptions.insert(problem.replicaOptions.begin(), 1);
    for (SegmentCost &segment : problem.segments) {
      for (auto *times : {&segment.time, &segment.update})
        times->insert(times->begin(), times->front() + 5);
      for (auto *sizes : {&segment.saved, &segment.workspace, &segment.output})
        sizes->insert(sizes->begin(), sizes->front());
    }
  }
  return problem;
}

/// Every way to cut the chain and replicate its stages, on at most all devices.
struct Stage {
  size_t begin, end;
  int64_t replicas;
};
void forAllStages(
    const PartitionProblem &problem, const std::vector<int64_t> &options,
    const std::function<void(const std::vector<Stage> &)> &visit) {
  std::vector<Stage> stages;
  std::function<void(size_t, int64_t)> extend = [&](size_t begin,
                                                    int64_t left) {
    if (begin == problem.segments.size())
      return visit(stages);
    for (size_t end = begin + 1; end <= problem.segments.size(); ++end)
      for (const int64_t replicas : options)
        if (replicas <= left) {
          stages.push_back({begin, end, replicas});
          extend(end, left - replicas);
          stages.pop_back();
        }
  };
  extend(0, problem.cluster.devices);
}

double kept(const SegmentCost &segment) {
  return double(segment.weights + segment.gradients + segment.optimizerState);
}

double limitOf(const PartitionProblem &problem) {
  return problem.cluster.memory > 0 ? double(problem.cluster.memory) : INFINITY;
}

double secondsOf(const PartitionProblem &problem, double bytes) {
  const double rate = problem.cluster.intraNode.bytesPerSecond;
  return rate > 0 ? bytes / rate : 0;
}

/// Seconds of all micro-batches; nothing if no stages fit.
std::optional<double> leastOfDnnPartitioning(const PartitionProblem &problem) {
  std::optional<double> best;
  forAllStages(problem, {1}, [&](const std::vector<Stage> &stages) {
    double slowest = 0;
    for (const Stage &stage : stages) {
      double bytes = 0;
      Nanos time = 0;
      for (size_t i = stage.begin; i < stage.end; ++i) {
        bytes += kept(problem.segments[i]) +
                 double(problem.segments[i].saved.front());
        time += problem.segments[i].time.front();
      }
      for (const size_t end : {stage.begin, stage.end})
        if (end > 0 && end < problem.segments.size()) {
          const SegmentCost &before = problem.segments[end - 1];
          time += (before.gradientCrosses ? 2 : 1) *
                  problem.cluster.intraNode.time(before.outputWhole);
        }
      slowest = std::max(slowest, double(time) * 1e-9);
      if (bytes > limitOf(problem))
        return;
    }
    best = std::min(best.value_or(INFINITY), slowest);
  });
  if (best)
    *best *= double(problem.microBatches);
  return best;
}

std::optional<double> leastOfPiper(const PartitionProblem &problem) {
  std::optional<double> best;
  forAllStages(
      problem, problem.replicaOptions, [&](const std::vector<Stage> &stages) {
        double slowest = 0;
        int64_t behind = 0;
        for (size_t s = stages.size(); s-- > 0;) {
          const Stage &stage = stages[s];
          const double d = double(stage.replicas);
          behind += stage.replicas;
          const double held = std::ceil(double(behind) / d);
          double bytes = 0, seconds = 0;
          for (size_t i = stage.begin; i < stage.end; ++i) {
            const SegmentCost &segment = problem.segments[i];
            bytes += kept(segment) + held * double(segment.saved.front());
            seconds +=
                double(segment.time.front()) * 1e-9 / d +
                secondsOf(problem, 4 * (d - 1) / d * double(segment.gradients) /
                                       double(problem.microBatches));
          }
          for (const size_t end : {stage.begin, stage.end})
            if (end > 0 && end < problem.segments.size())
              seconds +=
                  2 *
                  secondsOf(problem,
                            double(problem.segments[end - 1].outputWhole)) /
                  d;
          if (bytes > limitOf(problem))
            return;
          slowest = std::max(slowest, seconds);
        }
        best = std::min(best.value_or(INFINITY), slowest);
      });
  if (best)
    *best *= double(problem.microBatches);
  return best;
}

TEST(ByFormula, GraphPlannersFindTheLeastOnChains) {
  int answered = 0, infeasible = 0, pipelines = 0, replicated = 0;
  for (uint64_t seed = 0; seed < 400; ++seed) {
    SCOPED_TRACE(seed);
    const PartitionProblem problem = plainProblem(seed);
    ASSERT_EQ(problem.check().value_or(""), "");
    for (const CostModel model :
         {CostModel::DnnPartitioning, CostModel::Piper}) {
      SCOPED_TRACE(costModelName(model));
      const std::optional<double> best = model == CostModel::Piper
                                             ? leastOfPiper(problem)
                                             : leastOfDnnPartitioning(problem);
      ModelFault fault;
      const auto found = stagesByModel(problem, model, {}, fault);
      ASSERT_EQ(found.has_value(), best.has_value()) << fault.text;
      if (!found) {
        EXPECT_TRUE(fault.infeasible);
        ++infeasible;
        continue;
      }
      ++answered;
      EXPECT_NEAR(double(found->step) * 1e-9, *best, 1e-8 * *best + 1e-8);
      int64_t next = 0, devices = 0;
      for (const StageChoice &stage : found->stages) {
        EXPECT_EQ(stage.begin, next);
        next = stage.end;
        devices += problem.replicaOptions[stage.option];
        replicated += problem.replicaOptions[stage.option] > 1;
      }
      EXPECT_EQ(next, int64_t(problem.segments.size()));
      EXPECT_LE(devices, problem.cluster.devices);
      EXPECT_TRUE(std::is_sorted(found->order.begin(), found->order.end()));
      pipelines += found->stages.size() > 1;
    }
  }
  EXPECT_GT(answered, 200);
  EXPECT_GT(infeasible, 20);
  EXPECT_GT(pipelines, 50);
  EXPECT_GT(replicated, 20);
}

/// Equal segments between two others: all layouts that the formula knows.
TEST(ByFormula, TwoBwFindsTheLeastOfEqualBlocks) {
  int answered = 0, infeasible = 0, pipelines = 0, replicated = 0, paired = 0;
  for (uint64_t seed = 0; seed < 400; ++seed) {
    SCOPED_TRACE(seed);
    test::Random random(seed + 1000);
    PartitionProblem problem = plainProblem(seed);
    problem.segments.resize(2, problem.segments.front());
    const int64_t length = random.in(1, 2), blocks = random.in(2, 6);
    std::vector<SegmentCost> pattern = problem.segments;
    pattern.resize(length);
    pattern.back().weights += 3; // unlike what stands around
    pattern.back().outputWhole += 1000;
    paired += length == 2;
    SegmentCost end = problem.segments.front();
    end.outputWhole += 5000;
    for (Nanos &time : end.time)
      ++time; // the blocks alone may take none
    problem.segments.assign(1, end);
    for (int64_t b = 0; b < blocks; ++b)
      for (const SegmentCost &segment : pattern)
        problem.segments.push_back(segment);
    problem.segments.push_back(end);
    problem.cluster.devices = random.in(1, 8);
    problem.cluster.devicesPerNode = problem.cluster.devices;
    ASSERT_EQ(problem.check().value_or(""), "");

    std::optional<double> best;
    for (size_t o = 0; o < problem.replicaOptions.size(); ++o)
      for (int64_t depth = 1; depth <= blocks; ++depth) {
        const double w = double(problem.replicaOptions[o]), d = double(depth);
        const double m = double(problem.microBatches);
        if (problem.replicaOptions[o] * depth > problem.cluster.devices ||
            blocks % depth != 0 || problem.microBatches % depth != 0)
          continue;
        double weights = 0, saved = 0, time = 0;
        for (const SegmentCost &segment : problem.segments) {
          weights += double(segment.weights);
          saved += double(segment.saved[o]);
          time += double(segment.time[o]) * 1e-9;
        }
        const double held = problem.inFlight == InFlightPolicy::GPipe ? m : d;
        const double input = double(pattern.back().output[o]);
        if (weights / d + held * (saved / d + input) > limitOf(problem))
          continue;
        const double period =
            std::max(time / d + (depth > 1 ? secondsOf(problem, 2 * input) : 0),
                     secondsOf(problem, 2 * (w - 1) / w * weights / d) / m);
        best = std::min(best.value_or(INFINITY), (m + d - 1) * period);
      }
    ModelFault fault;
    const auto found = stagesByModel(problem, CostModel::TwoBw, {}, fault);
    ASSERT_EQ(found.has_value(), best.has_value()) << fault.text;
    if (!found) {
      EXPECT_TRUE(fault.infeasible);
      ++infeasible;
      continue;
    }
    ++answered;
    EXPECT_NEAR(double(found->step) * 1e-9, *best, 1e-8 * *best + 1e-8);
    const int64_t depth = int64_t(found->stages.size());
    pipelines += depth > 1;
    int64_t next = 0;
    for (const StageChoice &stage : found->stages) {
      EXPECT_EQ(stage.begin, next);
      EXPECT_EQ(stage.option, found->stages.front().option);
      next = stage.end;
      const int64_t ends =
          (stage.begin == 0) + (next == int64_t(problem.segments.size()));
      EXPECT_EQ(stage.end - stage.begin, blocks / depth * length + ends);
    }
    EXPECT_EQ(next, int64_t(problem.segments.size()));
    replicated += problem.replicaOptions[found->stages[0].option] > 1;
  }
  EXPECT_GT(answered, 150);
  EXPECT_GT(infeasible, 20);
  EXPECT_GT(pipelines, 30);
  EXPECT_GT(replicated, 30);
  EXPECT_GT(paired, 100);
}

TEST(ByFormula, TwoBwNeedsBlocks) {
  PartitionProblem problem = plainProblem(3);
  problem.segments.resize(3, problem.segments.front());
  for (size_t i = 0; i < 3; ++i)
    problem.segments[i].weights = Bytes(1 + i);
  ModelFault fault;
  EXPECT_FALSE(stagesByModel(problem, CostModel::TwoBw, {}, fault));
  EXPECT_EQ(fault.text, "the cost model '2bw' cuts equal blocks, and no "
                        "segments of this model repeat");
  EXPECT_FALSE(fault.infeasible);
}

/// a feeds b and c, which feed d; an edge of order puts c before b. Two stages
/// of equal work are a with c, and b with d.
TEST(ByFormula, GraphsAreCutInAnOrder) {
  PartitionProblem problem;
  const Nanos times[] = {1000, 4000, 5000, 2000};
  for (const Nanos time : times) {
    SegmentCost segment;
    segment.name = std::string(1, char('a' + problem.segments.size()));
    segment.time = {time};
    segment.update = {0};
    segment.saved = segment.workspace = segment.output = {1};
    segment.outputWhole = 1;
    problem.segments.push_back(segment);
  }
  problem.cluster.devices = problem.cluster.devicesPerNode = 2;
  problem.microBatches = 10;
  const std::vector<SegmentTensor> tensors = {{0, {1, 2}, 1, true},
                                              {1, {3}, 1, true},
                                              {2, {3}, 1, true},
                                              {2, {1}, 0, false}};
  for (const CostModel model : {CostModel::DnnPartitioning, CostModel::Piper}) {
    SCOPED_TRACE(costModelName(model));
    ModelFault fault;
    const auto found = graphStagesByModel(problem, model, tensors, fault);
    ASSERT_TRUE(found.has_value()) << fault.text;
    EXPECT_EQ(found->order, (std::vector<int32_t>{0, 2, 1, 3}));
    ASSERT_EQ(found->stages.size(), 2u);
    EXPECT_EQ(found->stages[1].begin, 2);
    EXPECT_EQ(found->step, 60000);
  }
  ModelFault fault;
  EXPECT_FALSE(graphStagesByModel(problem, CostModel::Dapple, tensors, fault));
  EXPECT_EQ(fault.text, "the cost model 'dapple' plans chains and not graphs");
  problem.replicaOptions = {2};
  EXPECT_FALSE(graphStagesByModel(problem, CostModel::Piper, tensors, fault));
  EXPECT_EQ(fault.text, "the cost model 'piper' needs times on one device");
}

} // namespace
