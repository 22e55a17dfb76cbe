//===- Janus.cpp - four phases of training on forces ----------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// JanusPipe, arXiv 2605.18404. Energy forward (FE) goes up the stages, forces
// (FF, its derivative) come down, and the loss on forces is differentiated
// through both: BF up, BE down. Two ranks, two micro-batches, one letter a
// unit:
//
//   rank 0  e e . . . f f f f b b b b b b b b . ...
//   rank 1  . e f f e f f ...
//
// A rank keeps what FE and FF saved until BE. With p + 1 micro-batches in
// flight there is a steady state without bubbles for two and three ranks; with
// p, the limit of 1F1B, there is none. The published waves are among the orders
// tried, each listed by the general rule that what can start first is next.
//
//===----------------------------------------------------------------------===//

#include "takt/Schedule/ChainFamilies.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

namespace takt {

namespace {

/// In the order of a path.
constexpr std::array<const char *, 4> kPhases = {"FE", "FF", "BF", "BE"};

constexpr int32_t kMostRanks = 1024;
/// From the work of a rank to twice as much.
constexpr int32_t kMostPeriods = 20;
/// Visits that the timing may look at, which bounds the work of the search.
constexpr int64_t kMostLooks = int64_t(1) << 23;

ChainProblem chainsOf(const JanusProblem &janus) {
  const int32_t p = janus.ranks;
  ChainProblem problem;
  problem.ranks = p;
  problem.hop = equalHops(p, janus.hop);
  const double held = janus.heldByEnergy + janus.heldByForce;
  problem.mostHeld.assign(p, janus.inFlight() * held);
  const std::array<double, 4> times = {
      janus.energy, janus.force, janus.forceBackward, janus.energyBackward};
  for (const char *phase : kPhases)
    for (int32_t s = 0; s < p; ++s)
      problem.steps.push_back({fmt::format("{}{}", phase, s), {s}});
  std::vector<ChainVisit> path;
  for (int32_t phase = 0; phase < 4; ++phase)
    for (int32_t i = 0; i < p; ++i) {
      const bool up = phase % 2 == 0;
      const int32_t stage = up ? i : p - 1 - i;
      ChainVisit visit;
      visit.step = phase * p + stage;
      visit.rank = stage;
      visit.time = times[phase];
      if (phase == 0)
        visit.held = janus.heldByEnergy;
      if (phase == 1)
        visit.held = janus.heldByForce;
      if (phase == 3)
        visit.freed = held;
      // FF reads what FE saved, BF what FF saved, BE what FE saved.
      const int32_t read = phase == 2 ? 1 : 0;
      if (phase > 0)
        visit.with = read * p + (read == 0 ? stage : p - 1 - stage);
      path.push_back(visit);
    }
  problem.paths.assign(janus.microBatches, path);
  return problem;
}

/// Phases in order of preference, micro-batches in waves of k if k > 0.
ChainOrder orderOf(const JanusProblem &janus, const std::array<int, 4> &prefer,
                   int32_t wave) {
  ChainOrder order;
  for (int32_t m = 0; m < janus.microBatches; ++m) {
    std::vector<double> &ranks = order.rank.emplace_back();
    for (int32_t phase = 0; phase < 4; ++phase) {
      // A wave forward, FE and FF, comes before its wave backward.
      const double unit = wave > 0 ? 2 * (m / wave) + phase / 2 : 0;
      ranks.insert(ranks.end(), janus.ranks, 4 * unit + prefer[phase]);
    }
  }
  return order;
}

class JanusSearch {
public:
  explicit JanusSearch(const JanusProblem &janus)
      : janus(janus), problem(chainsOf(janus)),
        visits(int64_t(4) * janus.ranks * janus.microBatches) {}

  ChainPlan run() {
    // The 1F1B order first, so that whatever wins is no longer than that.
    tryList({3, 2, 1, 0}, 0, std::min(janus.ranks, janus.inFlight()));
    for (int32_t cap = std::min(janus.inFlight(), janus.microBatches); cap >= 1;
         --cap)
      if (!tryCap(cap))
        break;
    tryRepeats();
    exchangeNeighbours();
    return {std::move(problem), std::move(best)};
  }

private:
  /// False once the search has looked enough.
  bool tryCap(int32_t cap) {
    for (int32_t wave = 1; wave <= cap; ++wave)
      for (const std::array<int, 4> &prefer :
           {std::array<int, 4>{0, 1, 2, 3}, {1, 0, 3, 2}})
        if (!tryList(prefer, wave, cap))
          return false;
    std::array<int, 4> prefer = {0, 1, 2, 3};
    do
      if (!tryList(prefer, 0, cap))
        return false;
    while (std::next_permutation(prefer.begin(), prefer.end()));
    return true;
  }

  bool tryList(const std::array<int, 4> &prefer, int32_t wave, int32_t cap) {
    // A list looks at every micro-batch for every visit.
    looks += visits * janus.microBatches;
    if (!best.ranks.empty() && looks > kMostLooks)
      return false;
    ChainOrder order = orderOf(janus, prefer, wave);
    order.mostInFlight = cap;
    if (auto schedule = listChains(problem, order))
      keepIfShorter(std::move(*schedule));
    return true;
  }

  /// Micro-batches a period apart, from the busiest rank's work upwards.
  void tryRepeats() {
    const double work =
        janus.energy + janus.force + janus.forceBackward + janus.energyBackward;
    ChainRepeat repeat;
    for (double time :
         {janus.energy, janus.force, janus.forceBackward, janus.energyBackward})
      if (time > 0 && (repeat.grid == 0 || time < repeat.grid))
        repeat.grid = time;
    const int32_t flight = std::min(janus.inFlight(), janus.microBatches);
    const std::vector<ChainVisit> &path = problem.paths.front();
    for (int32_t i = 0; i <= kMostPeriods; ++i) {
      repeat.period = work * (1 + double(i) / kMostPeriods);
      repeat.mostSpan = flight * repeat.period;
      const auto starts = repeatPath(problem, path, repeat);
      if (!starts)
        continue;
      std::vector<std::vector<std::pair<double, ChainAction>>> order(
          janus.ranks);
      for (int32_t m = 0; m < janus.microBatches; ++m)
        for (int32_t v = 0; v < int32_t(path.size()); ++v)
          order[path[v].rank].push_back(
              {m * repeat.period + (*starts)[v], {m, v}});
      ChainSchedule schedule;
      for (auto &list : order) {
        std::stable_sort(
            list.begin(), list.end(),
            [](const auto &a, const auto &b) { return a.first < b.first; });
        auto &actions = schedule.ranks.emplace_back();
        for (const auto &[start, action] : list)
          actions.push_back(action);
      }
      if (inFlight(schedule.ranks.front()) <= janus.inFlight())
        keepIfShorter(std::move(schedule));
    }
  }

  bool keepIfShorter(ChainSchedule schedule) {
    const auto timing = timeChains(problem, schedule);
    if (!timing || (!best.ranks.empty() && timing->makespan >= makespan))
      return false;
    makespan = timing->makespan;
    best = std::move(schedule);
    return true;
  }

  void exchangeNeighbours() {
    const double bound = boundChains(problem);
    looks = 0;
    for (bool better = true; better && makespan > bound;) {
      better = false;
      for (int32_t rank = 0; rank < janus.ranks; ++rank)
        for (size_t i = 0; i + 1 < best.ranks[rank].size(); ++i) {
          looks += visits;
          if (looks > kMostLooks)
            return;
          ChainSchedule next = best;
          std::vector<ChainAction> &list = next.ranks[rank];
          if (list[i].microBatch == list[i + 1].microBatch)
            continue;
          std::swap(list[i], list[i + 1]);
          // Memory of the other ranks follows from what is in flight at stage
          // 0.
          if (rank == 0 && inFlight(list) > janus.inFlight())
            continue;
          better |= keepIfShorter(std::move(next));
        }
    }
  }

  int32_t inFlight(const std::vector<ChainAction> &list) const {
    int32_t now = 0, most = 0;
    for (const ChainAction &action : list) {
      most = std::max(most, now += action.visit == 0);
      now -= action.visit + 1 == 4 * janus.ranks;
    }
    return most;
  }

  const JanusProblem &janus;
  ChainProblem problem;
  const int64_t visits;
  int64_t looks = 0;
  ChainSchedule best;
  double makespan = 0;
};

} // namespace

std::optional<std::string> JanusProblem::check() const {
  if (ranks < 1 || microBatches < 1)
    return fmt::format("there are {} ranks and {} micro-batches, not at least "
                       "1",
                       ranks, microBatches);
  constexpr int64_t kMost = int64_t(1) << 18;
  if (ranks > kMostRanks)
    return fmt::format("'ranks' is {}, more than {}", ranks, kMostRanks);
  if (int64_t(ranks) * microBatches > kMost)
    return fmt::format("{} ranks times {} micro-batches are more than {}",
                       ranks, microBatches, kMost);
  if (mostInFlight < 0)
    return fmt::format("'mostInFlight' is {}, not at least 0", mostInFlight);
  for (auto [name, value] : {std::pair("energy", energy),
                             {"force", force},
                             {"forceBackward", forceBackward},
                             {"energyBackward", energyBackward},
                             {"hop", hop},
                             {"heldByEnergy", heldByEnergy},
                             {"heldByForce", heldByForce}})
    if (!(value >= 0) || !std::isfinite(value))
      return fmt::format("'{}' is {}", name, value);
  return std::nullopt;
}

ChainPlan generateJanusOneFOneB(const JanusProblem &problem) {
  ChainPlan plan;
  plan.problem = chainsOf(problem);
  ChainOrder order = orderOf(problem, {3, 2, 1, 0}, 0);
  order.mostInFlight = std::min(problem.ranks, problem.inFlight());
  plan.schedule = listChains(plan.problem, order).value();
  return plan;
}

ChainPlan generateJanus(const JanusProblem &problem) {
  return JanusSearch(problem).run();
}

std::vector<int32_t> balanceSizes(const std::vector<double> &sizes,
                                  int32_t bins) {
  std::vector<size_t> order(sizes.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return sizes[a] > sizes[b]; });
  std::vector<double> loads(bins, 0);
  std::vector<int32_t> binOf(sizes.size(), 0);
  for (size_t i : order) {
    const auto least = std::min_element(loads.begin(), loads.end());
    binOf[i] = int32_t(least - loads.begin());
    *least += sizes[i];
  }
  return binOf;
}

} // namespace takt
