//===- Orders.cpp - orders of F and I, and the best of several ------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "Orders.h"

#include <algorithm>
#include <tuple>

namespace takt {

namespace {

constexpr WeightRule kWeightRules[] = {
    {false, false}, {false, true}, {true, false}};

} // namespace

Pattern fastestPattern(const PipelineProblem &problem,
                       const std::vector<int32_t> &rankOfStage) {
  const int32_t last = problem.stages() - 1;
  Pattern pattern;
  double time = 0;
  auto hop = [&](int32_t a, int32_t b) {
    return rankOfStage[a] == rankOfStage[b] ? 0 : problem.hop;
  };
  for (int32_t s = 0; s <= last; ++s) {
    time += s > 0 ? hop(s - 1, s) : 0;
    pattern.forward.push_back(time);
    time += problem.at(s).forward;
  }
  pattern.inputGrad.resize(problem.stages());
  for (int32_t s = last; s >= 0; --s) {
    time += s < last ? hop(s, s + 1) : 0;
    pattern.inputGrad[s] = time;
    time += problem.at(s).inputGrad;
  }
  return pattern;
}

Orders ordersOf(const PipelineProblem &problem,
                const std::vector<int32_t> &rankOfStage,
                const Pattern &pattern) {
  // One order of all actions along which every pass goes forward, also where
  // stages take no time.
  using Key = std::tuple<double, int32_t, int32_t>;
  std::vector<std::vector<std::pair<Key, Action>>> keyed(problem.ranks);
  const int32_t last = problem.stages() - 1;
  for (int32_t s = 0; s <= last; ++s)
    for (int32_t m = 0; m < problem.microBatches; ++m) {
      auto &list = keyed[rankOfStage[s]];
      const double begin = m * pattern.interval;
      list.push_back(
          {Key{begin + pattern.forward[s], m, s}, {s, ActionKind::F, m}});
      list.push_back({Key{begin + pattern.inputGrad[s], m, 2 * last + 1 - s},
                      {s, ActionKind::I, m}});
    }
  Orders orders(problem.ranks);
  for (int32_t r = 0; r < problem.ranks; ++r) {
    std::sort(keyed[r].begin(), keyed[r].end(),
              [](const auto &a, const auto &b) { return a.first < b.first; });
    for (const auto &[key, action] : keyed[r])
      orders[r].push_back(action);
  }
  return orders;
}

Orders withoutWeights(const Orders &lists) {
  Orders orders(lists.size());
  for (size_t r = 0; r < lists.size(); ++r)
    for (const Action &a : lists[r])
      if (a.kind != ActionKind::W)
        orders[r].push_back(a);
  return orders;
}

PipelineProblem limitedTo(double microBatches, const PipelineProblem &problem,
                          const std::vector<int32_t> &rankOfStage) {
  PipelineProblem limited = problem;
  if (!problem.mostHeld.empty())
    return limited;
  limited.mostHeld.assign(problem.ranks, 0);
  for (int32_t s = 0; s < problem.stages(); ++s)
    limited.mostHeld[rankOfStage[s]] += microBatches * problem.at(s).held;
  return limited;
}

bool BestOrder::isLarge() const {
  constexpr int64_t kManyPasses = 30000;
  return int64_t(problem.stages()) * problem.microBatches > kManyPasses;
}

bool BestOrder::offer(Board &&board) {
  const std::pair<double, double> its{board.makespan(), board.longestSpan()};
  if (found() && !(its < cost))
    return false;
  cost = its;
  best = board.takeLists();
  return true;
}

void BestOrder::tryOrders(const Orders &orders) {
  for (const WeightRule &its : kWeightRules)
    tryOrders(orders, its);
}

bool BestOrder::tryOrders(const Orders &orders, const WeightRule &its) {
  auto board = layWeights(problem, rankOfStage, orders, its);
  if (!board || !offer(std::move(*board)))
    return false;
  rule = its;
  return true;
}

void BestOrder::tryLists(const Orders &lists) {
  if (auto board = runLists(problem, rankOfStage, lists))
    offer(std::move(*board));
}

void BestOrder::tryIntervals(Pattern pattern) {
  double most = 0;
  std::vector<double> work(problem.ranks, 0);
  for (int32_t s = 0; s < problem.stages(); ++s) {
    const StageTimes t = problem.at(s);
    work[rankOfStage[s]] += t.forward + t.inputGrad + t.weightGrad;
  }
  for (const double rank : work)
    most = std::max(most, rank);
  const double whole = pattern.inputGrad[0] + problem.at(0).inputGrad;
  const double growth = isLarge() ? 1.6 : 1.12;
  for (double interval = most; interval < whole; interval *= growth) {
    pattern.interval = interval;
    tryOrders(ordersOf(problem, rankOfStage, pattern));
    if (interval <= 0)
      break;
  }
  pattern.interval = whole;
  tryOrders(ordersOf(problem, rankOfStage, pattern));
}

void BestOrder::improve() {
  // A plain climb: neighbours in a list change places as long as that helps.
  constexpr size_t kWork = 200000;
  size_t actions = 0;
  for (const std::vector<Action> &list : best)
    actions += list.size();
  size_t left = kWork / std::max<size_t>(actions, 1);
  const double bound = boundPipeline(problem, rankOfStage, true).best();
  Orders orders = withoutWeights(best);
  for (bool helped = true; helped;) {
    helped = false;
    for (std::vector<Action> &list : orders)
      for (size_t i = 0; i + 1 < list.size(); ++i) {
        if (left == 0 || fitsLimit(cost.first, bound))
          return;
        const Action &a = list[i], &b = list[i + 1];
        if ((a.stage == b.stage && a.kind == b.kind) ||
            (a.stage == b.stage && a.microBatch == b.microBatch))
          continue;
        --left;
        std::swap(list[i], list[i + 1]);
        if (tryOrders(orders, rule))
          helped = true;
        else
          std::swap(list[i], list[i + 1]);
      }
  }
}

} // namespace takt
