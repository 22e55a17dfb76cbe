//===- LayerWidths.cpp - a number of devices for each layer ---------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// A dynamic program over layers and widths, in whole nanoseconds so that equal
// is equal.
//
//===----------------------------------------------------------------------===//
#include "takt/Partition/Costs/LayerWidths.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <tuple>

namespace takt {

using rt::Nanos;

std::optional<std::string> WidthProblem::check() const {
  if (layers.empty())
    return "there is nothing to assign: there are no layers";
  if (widths.empty() || widths.front() != 1)
    return "widths start at 1";
  for (size_t i = 1; i < widths.size(); ++i)
    if (widths[i] <= widths[i - 1])
      return fmt::format("widths must ascend: {} after {}", widths[i],
                         widths[i - 1]);
  if (widths.back() > 1 << 20)
    return fmt::format("a width of {} is more than can be planned",
                       widths.back());
  double sum = double(link.latency) * 4 * double(layers.size());
  for (const WidthLayer &layer : layers) {
    if (layer.time.size() != widths.size())
      return fmt::format("layer '{}' has {} times for {} widths", layer.name,
                         layer.time.size(), widths.size());
    if (layer.time.front() < 0 || layer.sync < 0 || layer.input < 0)
      return fmt::format("layer '{}' has a negative figure", layer.name);
    sum += double(layer.sync) + double(link.time(layer.input)) * 2 +
           double(*std::max_element(layer.time.begin(), layer.time.end()));
  }
  if (link.latency < 0 || !(link.bytesPerSecond >= 0))
    return "the link has a negative latency or bandwidth";
  if (sum * double(widths.back()) > 1e18)
    return "the times add up to more than can be counted in nanoseconds";
  if (!(limit >= 0))
    return "the limit of device time is negative";
  return std::nullopt;
}

namespace {

/// Step and device time, compared in that order.
using Value = std::tuple<Nanos, Nanos>;

Value operator+(const Value &a, const Value &b) {
  return {std::get<0>(a) + std::get<0>(b), std::get<1>(a) + std::get<1>(b)};
}

/// A layer on a width; nothing if it may not be.
std::optional<Value> layerValue(const WidthProblem &problem, size_t layer,
                                size_t width) {
  const WidthLayer &own = problem.layers[layer];
  const int64_t devices = problem.widths[width];
  if (own.time[width] < 0)
    return std::nullopt;
  const Nanos time = own.time[width] + (devices > 1 ? own.sync : 0);
  const Nanos used = time * devices;
  if (problem.limit > 0 &&
      double(used) > problem.limit * double(own.time.front()))
    return std::nullopt;
  return Value{time, used};
}

/// Moving the input of a layer from one width to another.
Nanos moveTime(const WidthProblem &problem, size_t layer, size_t from,
               size_t to) {
  if (from == to)
    return 0;
  const double narrow = double(problem.widths[std::min(from, to)]);
  const double wide = double(problem.widths[std::max(from, to)]);
  const double bytes =
      double(problem.layers[layer].input) * (1 / narrow - 1 / wide);
  return 2 * problem.link.time(rt::Bytes(std::llround(bytes)));
}

struct Reached {
  std::optional<Value> value;
  size_t from = 0;
};

} // namespace

std::optional<WidthPlan> solveWidths(const WidthProblem &problem) {
  if (problem.check())
    return std::nullopt;
  const size_t layers = problem.layers.size(), widths = problem.widths.size();
  std::vector<std::vector<Reached>> table(layers, std::vector<Reached>(widths));
  for (size_t l = 0; l < layers; ++l)
    for (size_t w = 0; w < widths; ++w) {
      const std::optional<Value> own = layerValue(problem, l, w);
      if (!own)
        continue;
      Reached &cell = table[l][w];
      if (l == 0) {
        cell.value = own;
        continue;
      }
      for (size_t v = 0; v < widths; ++v) {
        if (!table[l - 1][v].value)
          continue;
        const Value value = *table[l - 1][v].value + *own +
                            Value{moveTime(problem, l, v, w), 0};
        if (!cell.value || value < *cell.value)
          cell = {value, v};
      }
    }
  size_t at = widths;
  for (size_t w = 0; w < widths; ++w)
    if (table.back()[w].value &&
        (at == widths || *table.back()[w].value < *table.back()[at].value))
      at = w;
  if (at == widths)
    return std::nullopt;
  WidthPlan plan;
  std::tie(plan.time, plan.deviceTime) = *table.back()[at].value;
  for (size_t l = layers; l-- > 0; at = table[l][at].from)
    plan.widths.push_back(problem.widths[at]);
  std::reverse(plan.widths.begin(), plan.widths.end());
  return plan;
}

namespace {

std::optional<Value> planValue(const WidthProblem &problem,
                               const std::vector<size_t> &chosen) {
  Value sum{0, 0};
  for (size_t l = 0; l < chosen.size(); ++l) {
    const std::optional<Value> own = layerValue(problem, l, chosen[l]);
    if (!own)
      return std::nullopt;
    sum = sum + *own;
    if (l > 0)
      sum = sum + Value{moveTime(problem, l, chosen[l - 1], chosen[l]), 0};
  }
  return sum;
}

} // namespace

std::optional<WidthPlan> bruteForceWidths(const WidthProblem &problem) {
  if (problem.check())
    return std::nullopt;
  std::vector<size_t> chosen(problem.layers.size());
  std::optional<Value> best;
  WidthPlan plan;
  for (;;) {
    const std::optional<Value> value = planValue(problem, chosen);
    if (value && (!best || *value < *best)) {
      best = value;
      plan.widths.clear();
      for (const size_t w : chosen)
        plan.widths.push_back(problem.widths[w]);
    }
    size_t at = 0;
    while (at < chosen.size() && chosen[at] + 1 == problem.widths.size())
      chosen[at++] = 0;
    if (at == chosen.size())
      break;
    ++chosen[at];
  }
  if (!best)
    return std::nullopt;
  std::tie(plan.time, plan.deviceTime) = *best;
  return plan;
}

Nanos idleDeviceTime(const WidthProblem &problem, const WidthPlan &plan) {
  Nanos idle = 0;
  const int64_t widest =
      *std::max_element(plan.widths.begin(), plan.widths.end());
  for (size_t l = 0; l < plan.widths.size(); ++l) {
    const size_t w = size_t(std::find(problem.widths.begin(),
                                      problem.widths.end(), plan.widths[l]) -
                            problem.widths.begin());
    const Nanos time = problem.layers[l].time[w] +
                       (plan.widths[l] > 1 ? problem.layers[l].sync : 0);
    idle += (widest - plan.widths[l]) * time;
  }
  return idle;
}

std::optional<std::string> verify(const WidthProblem &problem,
                                  const WidthPlan &plan) {
  if (auto fault = problem.check())
    return fault;
  if (plan.widths.size() != problem.layers.size())
    return fmt::format("{} widths for {} layers", plan.widths.size(),
                       problem.layers.size());
  std::vector<size_t> chosen;
  for (const int64_t width : plan.widths) {
    const auto at =
        std::find(problem.widths.begin(), problem.widths.end(), width);
    if (at == problem.widths.end())
      return fmt::format("{} is not a width to choose", width);
    chosen.push_back(size_t(at - problem.widths.begin()));
  }
  const std::optional<Value> value = planValue(problem, chosen);
  if (!value)
    return "a layer uses more device time than the limit allows";
  if (*value != Value{plan.time, plan.deviceTime})
    return fmt::format("the plan takes {} ns and {} ns of devices, not {} ns "
                       "and {} ns",
                       std::get<0>(*value), std::get<1>(*value), plan.time,
                       plan.deviceTime);
  return std::nullopt;
}

} // namespace takt
