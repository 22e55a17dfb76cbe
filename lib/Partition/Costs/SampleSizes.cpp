//===- SampleSizes.cpp - costs that depend on the sample's size -----------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// For a period, the layers that a set of devices can take from the front is the
// most that any last device of it adds to the rest: a program over sets, within
// a bisection.
//
//===----------------------------------------------------------------------===//
#include "takt/Partition/Costs/SampleSizes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace takt {

std::optional<std::string> SizedProblem::check() const {
  if (layers.empty())
    return "there is nothing to assign: there are no layers";
  for (const SizedLayer &layer : layers)
    if (!(layer.fixed >= 0) || !(layer.perUnit >= 0) ||
        !std::isfinite(layer.fixed) || !std::isfinite(layer.perUnit))
      return "the work of a layer is negative";
  if (sizes.empty() || speeds.empty())
    return "there are no samples or no devices";
  for (const double size : sizes)
    if (!(size >= 0) || !std::isfinite(size))
      return "the size of a sample is negative";
  for (const double speed : speeds)
    if (!(speed > 0) || !std::isfinite(speed))
      return "the speed of a device must be positive";
  if (speeds.size() > 16)
    return fmt::format("{} devices of speeds of their own are more than 16",
                       speeds.size());
  return std::nullopt;
}

namespace {

/// Mean work in front of each layer.
std::vector<double> meanPrefix(const SizedProblem &problem) {
  const double mean =
      std::accumulate(problem.sizes.begin(), problem.sizes.end(), 0.0) /
      double(problem.sizes.size());
  std::vector<double> prefix{0};
  for (const SizedLayer &layer : problem.layers)
    prefix.push_back(prefix.back() + layer.fixed + layer.perUnit * mean);
  return prefix;
}

void value(const SizedProblem &problem, SizedPlan &plan) {
  const std::vector<double> prefix = meanPrefix(problem);
  plan.period = plan.lockstep = 0;
  for (const SizedStage &stage : plan.stages)
    plan.period =
        std::max(plan.period, (prefix[stage.end] - prefix[stage.begin]) /
                                  problem.speeds[stage.device]);
  for (const double size : problem.sizes) {
    double slowest = 0;
    for (const SizedStage &stage : plan.stages) {
      double work = 0;
      for (int32_t l = stage.begin; l < stage.end; ++l)
        work += problem.layers[l].fixed + problem.layers[l].perUnit * size;
      slowest = std::max(slowest, work / problem.speeds[stage.device]);
    }
    plan.lockstep += slowest / double(problem.sizes.size());
  }
  plan.bound = prefix.back() / std::accumulate(problem.speeds.begin(),
                                               problem.speeds.end(), 0.0);
}

class Reach {
public:
  explicit Reach(const SizedProblem &problem)
      : problem(problem), prefix(meanPrefix(problem)),
        devices(int32_t(problem.speeds.size())), reached(size_t(1) << devices),
        last(reached.size()) {}

  bool keeps(double period) {
    const int32_t layers = int32_t(problem.layers.size());
    for (size_t set = 1; set < reached.size(); ++set) {
      reached[set] = -1;
      for (int32_t d = 0; d < devices; ++d) {
        if (!(set >> d & 1))
          continue;
        const size_t rest = set & ~(size_t(1) << d);
        if (!problem.freeOrder && rest + 1 != size_t(1) << d)
          continue; // not all devices in front of it
        const int32_t end =
            reached[rest] < 0
                ? -1
                : extend(reached[rest], period * problem.speeds[d]);
        if (end > reached[set]) {
          reached[set] = end;
          last[set] = d;
        }
      }
    }
    return reached.back() == layers;
  }

  SizedPlan plan() const {
    SizedPlan found;
    for (size_t set = reached.size() - 1; set != 0;) {
      const size_t rest = set & ~(size_t(1) << last[set]);
      found.stages.push_back({reached[rest], reached[set], last[set]});
      set = rest;
    }
    std::reverse(found.stages.begin(), found.stages.end());
    value(problem, found);
    return found;
  }

private:
  int32_t extend(int32_t begin, double work) const {
    return int32_t(std::upper_bound(prefix.begin() + begin, prefix.end(),
                                    prefix[size_t(begin)] + work) -
                   prefix.begin()) -
           1;
  }

  const SizedProblem &problem;
  const std::vector<double> prefix;
  const int32_t devices;
  std::vector<int32_t> reached, last; ///< by set of devices
};

} // namespace

std::optional<SizedPlan> solveSized(const SizedProblem &problem) {
  if (problem.check())
    return std::nullopt;
  Reach reach(problem);
  const std::vector<double> prefix = meanPrefix(problem);
  // All work on the fastest device is enough, and a little for the rounding.
  double high =
      prefix.back() /
      *std::max_element(problem.speeds.begin(), problem.speeds.end()) *
      (1 + 1e-12);
  double low = 0;
  if (!reach.keeps(high))
    return std::nullopt;
  SizedPlan best = reach.plan();
  for (;;) {
    const double middle = low + (high - low) / 2;
    if (!(middle > low) || !(middle < high) || high - low < 1e-13 * high)
      return best;
    if (reach.keeps(middle)) {
      best = reach.plan();
      high = middle;
    } else {
      low = middle;
    }
  }
}

std::optional<SizedPlan> bruteForceSized(const SizedProblem &problem) {
  if (problem.check())
    return std::nullopt;
  const int32_t layers = int32_t(problem.layers.size());
  const size_t devices = problem.speeds.size();
  std::vector<int32_t> order(devices);
  std::iota(order.begin(), order.end(), 0);
  std::optional<SizedPlan> best;
  do {
    std::vector<int32_t> cuts(devices - 1); // ascending, not strictly
    for (;;) {
      SizedPlan plan;
      for (size_t d = 0; d < devices; ++d)
        plan.stages.push_back({d == 0 ? 0 : cuts[d - 1],
                               d + 1 == devices ? layers : cuts[d], order[d]});
      value(problem, plan);
      if (!best || plan.period < best->period)
        best = std::move(plan);
      size_t at = cuts.size();
      while (at > 0 && cuts[at - 1] == layers)
        --at;
      if (at == 0)
        break;
      const int32_t next = cuts[at - 1] + 1;
      std::fill(cuts.begin() + int64_t(at) - 1, cuts.end(), next);
    }
  } while (problem.freeOrder &&
           std::next_permutation(order.begin(), order.end()));
  return best;
}

std::optional<std::string> verify(const SizedProblem &problem,
                                  const SizedPlan &plan) {
  if (auto fault = problem.check())
    return fault;
  std::vector<bool> used(problem.speeds.size());
  int32_t next = 0, place = 0;
  for (const SizedStage &stage : plan.stages) {
    if (stage.begin != next || stage.end < stage.begin ||
        stage.end > int32_t(problem.layers.size()))
      return fmt::format("a stage has layers [{}, {}) where {} comes next",
                         stage.begin, stage.end, next);
    if (stage.device < 0 || stage.device >= int32_t(used.size()) ||
        used[size_t(stage.device)] ||
        (!problem.freeOrder && stage.device != place))
      return fmt::format("device {} cannot come here", stage.device);
    used[size_t(stage.device)] = true;
    next = stage.end;
    ++place;
  }
  if (next != int32_t(problem.layers.size()))
    return fmt::format("the stages end at layer {} of {}", next,
                       problem.layers.size());
  SizedPlan again{plan.stages};
  value(problem, again);
  auto differs = [](double a, double b) {
    return !(std::abs(a - b) <= 1e-12 + 1e-9 * std::abs(b));
  };
  if (differs(plan.period, again.period) ||
      differs(plan.lockstep, again.lockstep) ||
      differs(plan.bound, again.bound))
    return fmt::format("the plan takes {} s, not {} s", again.period,
                       plan.period);
  return std::nullopt;
}

} // namespace takt
