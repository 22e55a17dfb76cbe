//===- TwoBw.cpp - PipeDream-2BW's planner --------------------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Few enough layouts to value every one.
//
//===----------------------------------------------------------------------===//
#include "takt/Partition/Costs/TwoBw.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace takt {

std::optional<std::string> TwoBwProblem::check() const {
  if (blocks < 1 || devices < 1 || devicesPerServer < 1 || batch < 1)
    return "blocks, devices and samples must be positive";
  if (devices > 1 << 20 || blocks > 1 << 20)
    return fmt::format("{} blocks on {} devices are more than can be planned",
                       blocks, devices);
  for (const double figure :
       {parameterBytes, activationBytesPerSample, inputBytesPerSample,
        fixedSeconds, secondsPerSample, memoryBytes})
    if (!(figure >= 0) || !std::isfinite(figure))
      return "a size or a time is negative";
  if (!(fixedSeconds + secondsPerSample > 0))
    return "the blocks take no time";
  if (!(withinRate > 0) || !(acrossRate > 0))
    return "the bandwidth of a link must be positive";
  if (microBatches.empty() || microBatches.front() < 1)
    return "micro-batches hold at least 1 sample";
  for (size_t i = 1; i < microBatches.size(); ++i)
    if (microBatches[i] <= microBatches[i - 1])
      return fmt::format("micro-batches must ascend: {} after {}",
                         microBatches[i], microBatches[i - 1]);
  return std::nullopt;
}

double twoBwMemory(const TwoBwProblem &problem, int64_t depth,
                   int64_t microBatch, bool recompute, int64_t perBatch) {
  const bool twice = problem.schedule == TwoBwSchedule::DoubleBuffered;
  const double d = double(depth), b = double(microBatch);
  const double held =
      problem.schedule == TwoBwSchedule::GPipe ? double(perBatch) : d;
  const double ofStage = problem.activationBytesPerSample * b / d;
  return (twice ? 2 : 1) * problem.parameterBytes / d +
         (recompute ? ofStage : held * ofStage) +
         held * problem.inputBytesPerSample * b;
}

int64_t twoBwVersion(int64_t microBatch, int64_t perBatch) {
  return std::max<int64_t>((microBatch - 1) / perBatch - 1, 0);
}

namespace {

/// Everything of a plan that follows from w, d, b and recomputation; false if
/// it has no whole batch or does not fit.
bool complete(const TwoBwProblem &problem, TwoBwPlan &plan) {
  const int64_t once = plan.microBatch * plan.replicas * plan.depth;
  if (once > problem.batch)
    return false;
  plan.accumulated = problem.batch / once;
  const int64_t perBatch = plan.depth * plan.accumulated;
  plan.bytes = twoBwMemory(problem, plan.depth, plan.microBatch, plan.recompute,
                           perBatch);
  if (plan.bytes > problem.memoryBytes)
    return false;

  const double w = double(plan.replicas), d = double(plan.depth);
  const double b = double(plan.microBatch), m = double(perBatch);
  const double compute = (problem.fixedSeconds + problem.secondsPerSample * b) /
                         d * (plan.recompute ? 4.0 / 3 : 1.0);
  // Replicas of a stage come first on a server; where they leave room, stages
  // are neighbours there, too.
  const double reduceRate = plan.replicas <= problem.devicesPerServer
                                ? problem.withinRate
                                : problem.acrossRate;
  const double stageRate =
      plan.replicas * plan.depth <= problem.devicesPerServer
          ? problem.withinRate
          : problem.acrossRate;
  const double transfers =
      plan.depth > 1 ? 2 * problem.inputBytesPerSample * b / stageRate : 0;
  const double allReduce =
      2 * (w - 1) / w * problem.parameterBytes / d / reduceRate;
  const double period = std::max(compute + transfers, allReduce / m);
  const double fill =
      problem.schedule == TwoBwSchedule::DoubleBuffered ? 0 : d - 1;
  plan.samplesPerSecond = w * b * m / ((m + fill) * period);
  return true;
}

} // namespace

std::optional<TwoBwPlan> valueTwoBw(const TwoBwProblem &problem,
                                    int64_t replicas, int64_t depth,
                                    int64_t microBatch, bool recompute) {
  TwoBwPlan plan{replicas, depth, microBatch, recompute};
  if (!complete(problem, plan))
    return std::nullopt;
  return plan;
}

std::optional<TwoBwPlan> planTwoBw(const TwoBwProblem &problem) {
  if (problem.check())
    return std::nullopt;
  std::optional<TwoBwPlan> best;
  const int64_t deepest = std::min(problem.blocks, problem.devices);
  for (int64_t depth = 1; depth <= deepest; ++depth) {
    if (problem.blocks % depth != 0)
      continue;
    for (int64_t replicas = 1; replicas * depth <= problem.devices; ++replicas)
      for (const bool recompute : {false, true})
        for (const int64_t microBatch : problem.microBatches) {
          const auto plan =
              valueTwoBw(problem, replicas, depth, microBatch, recompute);
          const bool better =
              plan &&
              (!best || plan->samplesPerSecond > best->samplesPerSecond ||
               (plan->samplesPerSecond == best->samplesPerSecond &&
                replicas * depth < best->replicas * best->depth));
          if (better)
            best = plan;
        }
  }
  return best;
}

std::optional<std::string> verify(const TwoBwProblem &problem,
                                  const TwoBwPlan &plan) {
  if (auto fault = problem.check())
    return fault;
  if (plan.replicas < 1 || plan.depth < 1 ||
      plan.replicas * plan.depth > problem.devices ||
      problem.blocks % plan.depth != 0)
    return fmt::format("{} replicas of {} stages do not fit {} devices and {} "
                       "blocks",
                       plan.replicas, plan.depth, problem.devices,
                       problem.blocks);
  if (!std::binary_search(problem.microBatches.begin(),
                          problem.microBatches.end(), plan.microBatch))
    return fmt::format("micro-batches of {} samples are not to choose",
                       plan.microBatch);
  TwoBwPlan again = plan;
  if (!complete(problem, again))
    return "the plan does not fit the memory or the batch";
  if (again.accumulated != plan.accumulated || again.bytes != plan.bytes ||
      again.samplesPerSecond != plan.samplesPerSecond)
    return fmt::format(
        "the plan takes {} bytes for {} samples/s, not {} for {}", again.bytes,
        again.samplesPerSecond, plan.bytes, plan.samplesPerSecond);
  return std::nullopt;
}

} // namespace takt
