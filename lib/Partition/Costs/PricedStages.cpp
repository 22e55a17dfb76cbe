//===- PricedStages.cpp - stages by time and price ------------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Labels of fronts of the chain: sum and maximum of times, longest
// scatter-reduce, and price per second. A front that is no better than another
// in any of them cannot become better, so the labels that are left are exact.
//
//===----------------------------------------------------------------------===//
#include "takt/Partition/Costs/PricedStages.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <tuple>

namespace takt {

std::optional<std::string> PricedProblem::check() const {
  if (layers.empty() || classes.empty())
    return "there are no layers or no classes of device";
  for (const ProfiledNode &layer : layers)
    for (const double figure : {layer.forward, layer.backward,
                                layer.outputBytes, layer.parameterBytes})
      if (!(figure >= 0) || !std::isfinite(figure))
        return fmt::format("layer '{}' has a negative figure", layer.name);
  for (const DeviceClass &one : classes)
    if (!(one.speed > 0) || !(one.bytesPerSecond > 0) ||
        !(one.memoryBytes >= 0) || !(one.price >= 0) ||
        !std::isfinite(one.price))
      return fmt::format("class '{}' needs a positive speed and bandwidth",
                         one.name);
  if (microBatches < 1 || maxStages < 0 || !(stateFactor >= 0))
    return "a number is negative";
  if (replicaOptions.empty())
    return "there is no number of replicas to choose";
  for (const int64_t replicas : replicaOptions)
    if (replicas < 1 || microBatches % replicas != 0)
      return fmt::format("{} micro-batches cannot be divided over {} replicas",
                         microBatches, replicas);
  return std::nullopt;
}

double storagePasses(int64_t replicas, bool duplex) {
  if (replicas == 1)
    return 0;
  return duplex ? 2 : 3 - 2 / double(replicas);
}

namespace {

/// What counts of the stages of a front.
struct Front {
  double sum = 0, longest = 0, sync = 0, price = 0;
  int32_t last = -1; ///< class of the last stage
  int64_t stages = 0;
  std::vector<PricedStage> made;
};

class Costs {
public:
  Costs(const PricedProblem &problem, int64_t replicas)
      : problem(problem), replicas(replicas),
        each(problem.microBatches / replicas) {
    for (const ProfiledNode &layer : problem.layers) {
      const ProfiledNode &before = sums.back();
      ProfiledNode sum;
      sum.forward = before.forward + layer.seconds();
      sum.outputBytes = before.outputBytes + layer.outputBytes;
      sum.parameterBytes = before.parameterBytes + layer.parameterBytes;
      sums.push_back(sum);
    }
  }

  /// False if the stage does not fit its device: all micro-batches of the
  /// replica are in flight.
  bool add(Front &front, const PricedStage &stage) const {
    const DeviceClass &own = problem.classes[size_t(stage.deviceClass)];
    const ProfiledNode &a = sums[size_t(stage.begin)];
    const ProfiledNode &b = sums[size_t(stage.end)];
    const double parameters = b.parameterBytes - a.parameterBytes;
    if (problem.stateFactor * parameters +
            double(each) * (b.outputBytes - a.outputBytes) >
        own.memoryBytes)
      return false;
    const double time = (b.forward - a.forward) / own.speed;
    front.sum += time;
    front.longest = std::max(front.longest, time);
    if (front.last >= 0) {
      const double bytes =
          2 * problem.layers[size_t(stage.begin) - 1].outputBytes;
      for (const DeviceClass *end :
           {&problem.classes[size_t(front.last)], &own}) {
        const double moved = bytes / end->bytesPerSecond;
        front.sum += moved;
        front.longest = std::max(front.longest, moved);
      }
    }
    front.sync = std::max(front.sync, storagePasses(replicas, problem.duplex) *
                                          parameters / own.bytesPerSecond);
    front.price += own.price;
    front.last = stage.deviceClass;
    ++front.stages;
    front.made.push_back(stage);
    return true;
  }

  PricedPlan plan(const Front &front) const {
    PricedPlan plan{front.made, replicas};
    plan.seconds = front.sum + double(each - 1) * front.longest + front.sync;
    plan.price = plan.seconds * double(replicas) * front.price;
    return plan;
  }

private:
  const PricedProblem &problem;
  const int64_t replicas, each;
  std::vector<ProfiledNode> sums{1};
};

/// With a limit on stages fewer of them are better, too.
bool isNoBetter(const Front &a, const Front &b, bool countStages) {
  return a.sum >= b.sum && a.longest >= b.longest && a.sync >= b.sync &&
         a.price >= b.price && (!countStages || a.stages >= b.stages);
}

/// Keeps the fronts of one end and last class that no other one beats.
void keep(std::vector<Front> &fronts, Front next, bool countStages) {
  for (const Front &front : fronts)
    if (isNoBetter(next, front, countStages))
      return;
  fronts.erase(std::remove_if(fronts.begin(), fronts.end(),
                              [&](const Front &front) {
                                return isNoBetter(front, next, countStages);
                              }),
               fronts.end());
  fronts.push_back(std::move(next));
}

/// Seconds ascending, prices strictly falling.
std::vector<PricedPlan> paretoOf(std::vector<PricedPlan> plans) {
  std::stable_sort(
      plans.begin(), plans.end(), [](const PricedPlan &a, const PricedPlan &b) {
        return std::tie(a.seconds, a.price) < std::tie(b.seconds, b.price);
      });
  std::vector<PricedPlan> best;
  for (PricedPlan &plan : plans)
    if (best.empty() || plan.price < best.back().price)
      best.push_back(std::move(plan));
  return best;
}

} // namespace

std::vector<PricedPlan> paretoPlans(const PricedProblem &problem) {
  if (problem.check())
    return {};
  const int32_t layers = int32_t(problem.layers.size());
  const int32_t classes = int32_t(problem.classes.size());
  std::vector<PricedPlan> plans;
  for (const int64_t replicas : problem.replicaOptions) {
    const Costs costs(problem, replicas);
    std::vector<std::vector<std::vector<Front>>> fronts(
        size_t(layers) + 1, std::vector<std::vector<Front>>(size_t(classes)));
    auto extend = [&](const Front &front, int32_t begin) {
      if (problem.maxStages > 0 && front.stages == problem.maxStages)
        return;
      for (int32_t c = 0; c < classes; ++c)
        for (int32_t end = begin + 1; end <= layers; ++end) {
          Front next = front;
          if (!costs.add(next, {begin, end, c}))
            break; // longer stages need more
          keep(fronts[size_t(end)][size_t(c)], std::move(next),
               problem.maxStages > 0);
        }
    };
    extend({}, 0);
    for (int32_t begin = 1; begin < layers; ++begin)
      for (const std::vector<Front> &ofClass : fronts[size_t(begin)])
        for (const Front &front : ofClass)
          extend(front, begin);
    for (const std::vector<Front> &ofClass : fronts.back())
      for (const Front &front : ofClass)
        plans.push_back(costs.plan(front));
  }
  return paretoOf(std::move(plans));
}

std::optional<PricedPlan> choosePriced(const PricedProblem &problem,
                                       double timeWeight, double priceWeight) {
  std::optional<PricedPlan> best;
  for (PricedPlan &plan : paretoPlans(problem))
    if (!best || plan.objective(timeWeight, priceWeight) <
                     best->objective(timeWeight, priceWeight))
      best = std::move(plan);
  return best;
}

std::vector<PricedPlan> bruteForcePriced(const PricedProblem &problem) {
  if (problem.check())
    return {};
  const int32_t layers = int32_t(problem.layers.size());
  const int32_t classes = int32_t(problem.classes.size());
  std::vector<PricedPlan> plans;
  for (const int64_t replicas : problem.replicaOptions) {
    const Costs costs(problem, replicas);
    std::vector<Front> open{{}};
    while (!open.empty()) {
      const Front front = std::move(open.back());
      open.pop_back();
      const int32_t begin = front.made.empty() ? 0 : front.made.back().end;
      if (begin == layers) {
        plans.push_back(costs.plan(front));
        continue;
      }
      if (problem.maxStages > 0 && front.stages == problem.maxStages)
        continue;
      for (int32_t c = 0; c < classes; ++c)
        for (int32_t end = begin + 1; end <= layers; ++end) {
          Front next = front;
          if (costs.add(next, {begin, end, c}))
            open.push_back(std::move(next));
        }
    }
  }
  return paretoOf(std::move(plans));
}

std::optional<std::string> verify(const PricedProblem &problem,
                                  const PricedPlan &plan) {
  if (auto fault = problem.check())
    return fault;
  if (std::find(problem.replicaOptions.begin(), problem.replicaOptions.end(),
                plan.replicas) == problem.replicaOptions.end())
    return fmt::format("{} replicas are not to choose", plan.replicas);
  if (problem.maxStages > 0 && int64_t(plan.stages.size()) > problem.maxStages)
    return fmt::format("{} stages are more than {}", plan.stages.size(),
                       problem.maxStages);
  const Costs costs(problem, plan.replicas);
  Front front;
  int32_t next = 0;
  for (const PricedStage &stage : plan.stages) {
    if (stage.begin != next || stage.end <= stage.begin ||
        stage.end > int32_t(problem.layers.size()))
      return fmt::format("a stage has layers [{}, {}) where {} comes next",
                         stage.begin, stage.end, next);
    if (stage.deviceClass < 0 ||
        stage.deviceClass >= int32_t(problem.classes.size()))
      return fmt::format("there is no class {}", stage.deviceClass);
    if (!costs.add(front, stage))
      return fmt::format("layers [{}, {}) do not fit class '{}'", stage.begin,
                         stage.end,
                         problem.classes[size_t(stage.deviceClass)].name);
    next = stage.end;
  }
  if (next != int32_t(problem.layers.size()))
    return fmt::format("the stages end at layer {} of {}", next,
                       problem.layers.size());
  const PricedPlan again = costs.plan(front);
  auto differs = [](double a, double b) {
    return !(std::abs(a - b) <= 1e-12 + 1e-9 * std::abs(b));
  };
  if (differs(plan.seconds, again.seconds) || differs(plan.price, again.price))
    return fmt::format("the plan takes {} s at a price of {}, not {} s at {}",
                       again.seconds, again.price, plan.seconds, plan.price);
  return std::nullopt;
}

} // namespace takt
