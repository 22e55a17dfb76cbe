//===- DappleVerify.cpp - plans of DAPPLE's model, one by one -------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// The check of a plan and the search over all plans that tests compare with.
//
//===----------------------------------------------------------------------===//
#include "DapplePlacement.h"

#include <fmt/format.h>

#include <cmath>

namespace takt {

using namespace partition;

std::optional<std::string> verify(const DappleProblem &problem,
                                  const DapplePlan &plan) {
  if (auto fault = problem.check())
    return fault;
  const int64_t devices =
      problem.cluster.machines * problem.cluster.devicesPerMachine;
  std::set<int32_t> used;
  int32_t next = 0;
  for (const DappleStage &stage : plan.stages) {
    if (stage.begin != next || stage.end <= stage.begin ||
        stage.end > int32_t(problem.layers.size()))
      return fmt::format("a stage has layers [{}, {}) where {} comes next",
                         stage.begin, stage.end, next);
    next = stage.end;
    if (stage.devices.empty() ||
        !mayReplicate(problem, int64_t(stage.devices.size())))
      return fmt::format("{} replicas are not allowed", stage.devices.size());
    for (const int32_t device : stage.devices)
      if (device < 0 || device >= devices || !used.insert(device).second)
        return fmt::format("device {} is not there or used twice", device);
  }
  if (next != int32_t(problem.layers.size()) || int64_t(used.size()) != devices)
    return fmt::format("the stages end at layer {} of {}, on {} of {} devices",
                       next, problem.layers.size(), used.size(), devices);
  if (problem.maxStages != 0 && int64_t(plan.stages.size()) > problem.maxStages)
    return fmt::format("{} stages are more than {}", plan.stages.size(),
                       problem.maxStages);
  DapplePlan again{plan.stages};
  if (!evaluate(problem, again))
    return "a stage does not fit its memory";
  auto differs = [](double a, double b) {
    return !(std::abs(a - b) <= 1e-12 + 1e-9 * std::abs(b));
  };
  if (again.pivot != plan.pivot || differs(plan.seconds, again.seconds) ||
      differs(plan.replaySeconds, again.replaySeconds))
    return fmt::format("the plan takes {} s and in replay {} s, not {} s and "
                       "{} s",
                       again.seconds, again.replaySeconds, plan.seconds,
                       plan.replaySeconds);
  for (size_t s = 0; s < plan.stages.size(); ++s)
    if (differs(plan.stages[s].forward, again.stages[s].forward) ||
        differs(plan.stages[s].backward, again.stages[s].backward) ||
        differs(plan.stages[s].transfer, again.stages[s].transfer) ||
        differs(plan.stages[s].allReduce, again.stages[s].allReduce))
      return fmt::format("stage {} states other times than it takes", s);
  return std::nullopt;
}

namespace {

void tryAll(const DappleProblem &problem, std::vector<DappleStage> &stages,
            const Occupancy &used, std::optional<DapplePlan> &best) {
  const int32_t layers = int32_t(problem.layers.size());
  const int32_t begin = stages.empty() ? 0 : stages.back().end;
  const int64_t left =
      problem.cluster.machines * problem.cluster.devicesPerMachine -
      countOf(used);
  if (begin == layers) {
    DapplePlan plan{stages};
    if (left == 0 && evaluate(problem, plan) &&
        (problem.maxStages == 0 ||
         int64_t(stages.size()) <= problem.maxStages) &&
        (!best || rankOf(problem, plan) < rankOf(problem, *best)))
      best = plan;
    return;
  }
  for (int64_t count = 1; count <= left; ++count)
    for (const DapplePlacement placement : problem.placements)
      for (int32_t end = begin + 1; end <= layers; ++end) {
        if (!mayReplicate(problem, count))
          continue;
        Occupancy after = used;
        DappleStage stage;
        stage.begin = begin;
        stage.end = end;
        stage.placement = placement;
        stage.devices = takeDevices(problem.cluster, after, placement, count);
        stages.push_back(std::move(stage));
        tryAll(problem, stages, after, best);
        stages.pop_back();
      }
}

} // namespace

std::optional<DapplePlan> bruteForceDapple(const DappleProblem &problem) {
  std::optional<DapplePlan> best;
  std::vector<DappleStage> stages;
  if (!problem.check())
    tryAll(problem, stages, Occupancy(size_t(problem.cluster.machines)), best);
  return best;
}

} // namespace takt
