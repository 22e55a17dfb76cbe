//===- PerReplicaCuts.cpp - a cut of its own for each replica -------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// What a client needs for a time, and the smallest time that all can keep.
//
//===----------------------------------------------------------------------===//
#include "takt/Partition/Costs/PerReplicaCuts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace takt {

std::optional<std::string> SplitProblem::check() const {
  if (layers.empty() || clients.empty())
    return "there are no layers or no clients";
  for (const ProfiledNode &layer : layers)
    for (const double figure : {layer.forward, layer.backward,
                                layer.outputBytes, layer.parameterBytes})
      if (!(figure >= 0) || !std::isfinite(figure))
        return fmt::format("layer '{}' has a negative figure", layer.name);
  for (const SplitClient &client : clients)
    if (!(client.speed > 0) || !std::isfinite(client.speed) ||
        !(client.memoryBytes >= 0))
      return "a client needs a positive speed";
  if (!(bandwidth > 0) || !std::isfinite(bandwidth))
    return "the bandwidth must be positive";
  if (!(serverSpeed >= 0))
    return "the speed of the server is negative";
  return std::nullopt;
}

namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

/// One way to cut one client.
struct Choice {
  int32_t cut = 0;
  double seconds = 0; ///< without the link
  double bytes = 0;   ///< there and back
};

class Choices {
public:
  explicit Choices(const SplitProblem &problem)
      : ofClient(problem.clients.size()) {
    for (size_t i = 0; i < ofClient.size(); ++i) {
      double own = 0, rest = 0, memory = 0;
      for (const ProfiledNode &layer : problem.layers)
        rest += layer.seconds();
      const SplitClient &client = problem.clients[i];
      for (size_t l = 0; l < problem.layers.size(); ++l) {
        const ProfiledNode &layer = problem.layers[l];
        own += layer.seconds();
        rest = std::max(0.0, rest - layer.seconds());
        memory += layer.parameterBytes + layer.outputBytes;
        if (client.memoryBytes > 0 && memory > client.memoryBytes)
          break;
        const double server =
            problem.serverSpeed > 0 ? rest / problem.serverSpeed : 0;
        ofClient[i].push_back({int32_t(l) + 1, own / client.speed + server,
                               2 * layer.outputBytes});
      }
    }
  }

  /// The cut that keeps `time` with the least share of the link.
  static const Choice *cheapest(const std::vector<Choice> &choices, double time,
                                double &share) {
    const Choice *best = nullptr;
    share = kNever;
    for (const Choice &choice : choices) {
      const double needed = shareFor(choice, time);
      if (needed < share) {
        share = needed;
        best = &choice;
      }
    }
    return best;
  }

  static double shareFor(const Choice &choice, double time) {
    if (choice.seconds > time)
      return kNever;
    if (choice.bytes == 0)
      return 0;
    return time > choice.seconds ? choice.bytes / (time - choice.seconds)
                                 : kNever;
  }

  std::vector<std::vector<Choice>> ofClient;
};

/// Least time that all clients can keep, by bisection to the last bit.
SplitPlan bisect(const SplitProblem &problem,
                 const std::vector<std::vector<Choice>> &choices) {
  SplitPlan plan;
  auto keeps = [&](double time) {
    SplitPlan kept{{}, {}, time};
    double sum = 0;
    for (const auto &own : choices) {
      double share = 0;
      const Choice *choice = Choices::cheapest(own, time, share);
      if (!choice)
        return false;
      kept.cuts.push_back(choice->cut);
      kept.shares.push_back(share);
      sum += share;
    }
    if (!(sum <= problem.bandwidth))
      return false;
    plan = std::move(kept);
    return true;
  };
  double low = 0, high = 1e-9;
  while (!keeps(high) && std::isfinite(high)) {
    low = high;
    high *= 2;
  }
  for (;;) {
    const double middle = low + (high - low) / 2;
    if (!(middle > low) || !(middle < high))
      return plan;
    (keeps(middle) ? high : low) = middle;
  }
}

} // namespace

std::optional<SplitPlan> solveSplit(const SplitProblem &problem) {
  if (problem.check())
    return std::nullopt;
  const Choices choices(problem);
  for (const auto &own : choices.ofClient)
    if (own.empty())
      return std::nullopt;
  return bisect(problem, choices.ofClient);
}

SplitPlan shareBandwidth(const SplitProblem &problem,
                         const std::vector<int32_t> &cuts) {
  const Choices choices(problem);
  std::vector<std::vector<Choice>> one;
  for (size_t i = 0; i < cuts.size(); ++i)
    one.push_back({choices.ofClient[i][size_t(cuts[i]) - 1]});
  return bisect(problem, one);
}

double clientSeconds(const SplitProblem &problem, size_t client, int32_t cut) {
  double seconds = 0;
  for (int32_t l = 0; l < cut; ++l)
    seconds += problem.layers[size_t(l)].seconds();
  return seconds / problem.clients[client].speed;
}

std::optional<SplitPlan> bruteForceSplit(const SplitProblem &problem) {
  if (problem.check())
    return std::nullopt;
  const Choices choices(problem);
  std::vector<int32_t> cuts(problem.clients.size(), 1);
  std::optional<SplitPlan> best;
  for (;;) {
    bool fits = true;
    for (size_t i = 0; i < cuts.size(); ++i)
      fits &= size_t(cuts[i]) <= choices.ofClient[i].size();
    if (fits) {
      SplitPlan plan = shareBandwidth(problem, cuts);
      if (!best || plan.seconds < best->seconds)
        best = std::move(plan);
    }
    size_t at = 0;
    while (at < cuts.size() && cuts[at] == int32_t(problem.layers.size()))
      cuts[at++] = 1;
    if (at == cuts.size())
      return best;
    ++cuts[at];
  }
}

std::optional<std::string> verify(const SplitProblem &problem,
                                  const SplitPlan &plan) {
  if (auto fault = problem.check())
    return fault;
  const size_t clients = problem.clients.size();
  if (plan.cuts.size() != clients || plan.shares.size() != clients)
    return fmt::format("{} cuts and {} shares for {} clients", plan.cuts.size(),
                       plan.shares.size(), clients);
  double sum = 0, slowest = 0;
  for (size_t i = 0; i < clients; ++i) {
    const int32_t cut = plan.cuts[i];
    if (cut < 1 || size_t(cut) > problem.layers.size())
      return fmt::format("client {} runs {} of {} layers", i, cut,
                         problem.layers.size());
    double memory = 0, rest = 0;
    for (int32_t l = 0; l < int32_t(problem.layers.size()); ++l) {
      const ProfiledNode &layer = problem.layers[size_t(l)];
      if (l < cut)
        memory += layer.parameterBytes + layer.outputBytes;
      else
        rest += layer.seconds();
    }
    if (problem.clients[i].memoryBytes > 0 &&
        memory > problem.clients[i].memoryBytes)
      return fmt::format("client {} needs {} bytes of {}", i, memory,
                         problem.clients[i].memoryBytes);
    const double bytes = 2 * problem.layers[size_t(cut) - 1].outputBytes;
    if (!(plan.shares[i] >= 0) || (bytes > 0 && plan.shares[i] == 0))
      return fmt::format("client {} has no share of the link", i);
    sum += plan.shares[i];
    slowest = std::max(
        slowest,
        clientSeconds(problem, i, cut) +
            (bytes > 0 ? bytes / plan.shares[i] : 0) +
            (problem.serverSpeed > 0 ? rest / problem.serverSpeed : 0));
  }
  if (sum > problem.bandwidth * (1 + 1e-9))
    return fmt::format("the shares add up to {} bytes/s of {}", sum,
                       problem.bandwidth);
  if (!(slowest <= plan.seconds * (1 + 1e-9) + 1e-15))
    return fmt::format("the slowest client takes {} s, not {} s", slowest,
                       plan.seconds);
  return std::nullopt;
}

} // namespace takt
