//===- PipeDreamVerify.cpp - plans of PipeDream's model, one by one -------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// The value of one plan from the inside out, its check, and the search over
// all plans that tests compare with.
//
//===----------------------------------------------------------------------===//
#include "PipeDreamCosts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace takt {

using namespace partition;

namespace {

using Stages = std::vector<PipeDreamStage>;

/// Values stages and finds faults in them.
class Valuation {
public:
  explicit Valuation(const PipeDreamProblem &problem) : problem(problem) {}

  /// The slowest resource where states [begin, end) are divided on a level.
  double value(const Stages &stages, size_t level, int32_t begin, int32_t end) {
    const PipeDreamCosts costs(problem, level);
    double slowest = 0;
    int64_t used = 0;
    int32_t next = begin;
    for (const PipeDreamStage &stage : stages) {
      used += stage.replicas;
      if (stage.begin != next || stage.end <= stage.begin || stage.end > end ||
          stage.replicas < 1)
        return refuse(fmt::format("a stage has states [{}, {}) where {} comes "
                                  "next",
                                  stage.begin, stage.end, next));
      if (!costs.isRange(stage.begin, stage.end - 1))
        return refuse(fmt::format("state {} does not come before {}",
                                  stage.begin - 1, stage.end - 1));
      if (!costs.mayReplicate(stage.replicas))
        return refuse(
            fmt::format("{} replicas are not allowed", stage.replicas));
      if (!costs.fits(stage.begin, stage.end - 1, stage.replicas, used))
        return refuse(fmt::format("states [{}, {}) need more than {} bytes",
                                  stage.begin, stage.end, problem.memoryBytes));
      slowest = std::max(slowest, valueOf(costs, stage, level, next == begin));
      next = stage.end;
    }
    if (next != end || used != problem.levels[level].devices)
      return refuse(fmt::format("the stages end at state {} of {}, on {} of {} "
                                "devices",
                                next, end, used,
                                problem.levels[level].devices));
    return slowest;
  }

  std::string fault;

private:
  double refuse(std::string why) {
    if (fault.empty())
      fault = std::move(why);
    return kNoPlan;
  }

  double valueOf(const PipeDreamCosts &costs, const PipeDreamStage &stage,
                 size_t level, bool isFirst) {
    const int32_t last = stage.end - 1;
    double seconds = RangeTimes(problem).at(stage.begin, last);
    if (level > 0)
      seconds = value(stage.inner, level - 1, stage.begin, stage.end);
    else if (!stage.inner.empty())
      return refuse("a device is divided into stages");
    if (isFirst)
      return costs.alone(stage.begin, last, seconds, stage.replicas);
    return std::max({costs.stage(stage.begin, last, seconds, stage.replicas),
                     costs.crossing(stage.begin - 1, stage.replicas),
                     costs.leaving(last, stage.replicas)});
  }

  const PipeDreamProblem &problem;
};

/// Every way to divide states [begin, end) on `devices` of a level.
std::vector<Stages> allDivisions(const PipeDreamProblem &problem, size_t level,
                                 int32_t begin, int32_t end, int64_t devices) {
  const PipeDreamCosts costs(problem, level);
  std::vector<Stages> all;
  if (begin == end && devices == 0)
    return {{}};
  for (int32_t cut = begin + 1; cut <= end; ++cut) {
    if (!costs.isRange(begin, cut - 1))
      continue;
    std::vector<Stages> within{{}};
    if (level > 0)
      within = allDivisions(problem, level - 1, begin, cut,
                            problem.levels[level - 1].devices);
    for (int64_t replicas = 1; replicas <= devices; ++replicas)
      for (const Stages &rest :
           allDivisions(problem, level, cut, end, devices - replicas))
        for (const Stages &inner : within) {
          Stages stages{{begin, cut, replicas, inner}};
          stages.insert(stages.end(), rest.begin(), rest.end());
          all.push_back(std::move(stages));
        }
  }
  return all;
}

void flattenInto(const PipeDreamStage &stage, int64_t replicas, Stages &flat) {
  replicas *= stage.replicas;
  if (stage.inner.empty())
    flat.push_back({stage.begin, stage.end, replicas, {}});
  for (const PipeDreamStage &part : stage.inner)
    flattenInto(part, replicas, flat);
}

} // namespace

std::optional<PipeDreamPlan>
bruteForcePipeDream(const PipeDreamProblem &problem) {
  if (problem.check())
    return std::nullopt;
  const int32_t states = int32_t(problem.states.size());
  const size_t top = problem.levels.size() - 1;
  PipeDreamPlan best{{}, kNoPlan, 0};
  for (Stages &stages :
       allDivisions(problem, top, 0, states, problem.levels[top].devices)) {
    const double seconds = Valuation(problem).value(stages, top, 0, states);
    if (seconds < best.seconds)
      best = {std::move(stages), seconds, best.work};
    ++best.work;
  }
  if (best.seconds == kNoPlan)
    return std::nullopt;
  return best;
}

double dataParallelSeconds(const PipeDreamProblem &problem) {
  const int32_t last = int32_t(problem.states.size()) - 1;
  double seconds = RangeTimes(problem).at(0, last);
  for (size_t l = 0; l < problem.levels.size(); ++l)
    seconds = PipeDreamCosts(problem, l)
                  .alone(0, last, seconds, problem.levels[l].devices);
  return seconds;
}

std::vector<PipeDreamStage> flatten(const PipeDreamPlan &plan) {
  Stages flat;
  for (const PipeDreamStage &stage : plan.stages)
    flattenInto(stage, 1, flat);
  return flat;
}

std::optional<std::string> verify(const PipeDreamProblem &problem,
                                  const PipeDreamPlan &plan) {
  if (auto fault = problem.check())
    return fault;
  Valuation valuation(problem);
  const double seconds = valuation.value(plan.stages, problem.levels.size() - 1,
                                         0, int32_t(problem.states.size()));
  if (!valuation.fault.empty())
    return valuation.fault;
  if (!(std::abs(seconds - plan.seconds) <= 1e-12 + 1e-9 * seconds))
    return fmt::format("the plan takes {} s, not {} s", seconds, plan.seconds);
  return std::nullopt;
}

} // namespace takt
