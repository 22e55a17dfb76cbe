//===- Problem.cpp - chains of phases and their timing --------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "takt/Schedule/Chains.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace takt {

namespace {

bool isAmount(double value) { return value >= 0 && std::isfinite(value); }

std::optional<std::string> checkVisit(const ChainProblem &problem, size_t m,
                                      size_t place) {
  const std::vector<ChainVisit> &path = problem.paths[m];
  const ChainVisit &visit = path[place];
  auto fault = [&](const std::string &what) {
    return fmt::format("visit {} of micro-batch {} {}", place, m, what);
  };
  if (visit.step < 0 || size_t(visit.step) >= problem.steps.size())
    return fault(fmt::format("is of step {}, and there are {}", visit.step,
                             problem.steps.size()));
  if (visit.rank < 0 || visit.rank >= problem.ranks)
    return fault(fmt::format("is on rank {}, and there are {}", visit.rank,
                             problem.ranks));
  const ChainStep &step = problem.steps[visit.step];
  if (!step.homes.empty() && std::find(step.homes.begin(), step.homes.end(),
                                       visit.rank) == step.homes.end())
    return fault(fmt::format("is on rank {}, which has no parameters of '{}'",
                             visit.rank, step.name));
  for (auto [name, value] : {std::pair("time", visit.time),
                             {"held", visit.held},
                             {"freed", visit.freed},
                             {"message", visit.message}})
    if (!isAmount(value))
      return fault(fmt::format("has {} {}", name, value));
  if (visit.with < -1 || visit.with >= int64_t(place))
    return fault(fmt::format("reads what visit {} saves", visit.with));
  if (visit.with >= 0 && path[visit.with].rank != visit.rank)
    return fault(fmt::format("is on rank {}, and what it reads is saved on "
                             "rank {}",
                             visit.rank, path[visit.with].rank));
  return std::nullopt;
}

} // namespace

std::optional<std::string> ChainProblem::check() const {
  if (ranks < 1)
    return fmt::format("'ranks' is {}, not at least 1", ranks);
  if (!hop.empty()) {
    if (hop.size() != size_t(ranks))
      return fmt::format("'hop' has {} rows for {} ranks", hop.size(), ranks);
    for (const std::vector<double> &row : hop) {
      if (row.size() != size_t(ranks))
        return fmt::format("a row of 'hop' has {} entries for {} ranks",
                           row.size(), ranks);
      for (double value : row)
        if (!isAmount(value))
          return fmt::format("'hop' has an entry {}", value);
    }
  }
  if (!mostHeld.empty() && mostHeld.size() != size_t(ranks))
    return fmt::format("'mostHeld' has {} entries for {} ranks",
                       mostHeld.size(), ranks);
  for (const ChainStep &step : steps)
    for (int32_t home : step.homes)
      if (home < 0 || home >= ranks)
        return fmt::format("'{}' is at home on rank {}, and there are {}",
                           step.name, home, ranks);
  for (size_t m = 0; m < paths.size(); ++m)
    for (size_t place = 0; place < paths[m].size(); ++place)
      if (auto fault = checkVisit(*this, m, place))
        return fault;
  return std::nullopt;
}

std::vector<std::vector<double>> equalHops(int32_t ranks, double hop) {
  std::vector<std::vector<double>> hops(ranks, std::vector<double>(ranks, hop));
  for (int32_t rank = 0; rank < ranks; ++rank)
    hops[rank][rank] = 0;
  return hops;
}

std::string toText(const ChainProblem &problem, const ChainAction &action) {
  const int32_t step = problem.paths[action.microBatch][action.visit].step;
  return fmt::format("{}.{}", problem.steps[step].name, action.microBatch);
}

std::optional<ChainTiming> timeChains(const ChainProblem &problem,
                                      const ChainSchedule &schedule) {
  const size_t ranks = schedule.ranks.size();
  ChainTiming timing;
  timing.start.resize(ranks);
  timing.end.resize(ranks);
  timing.busy.assign(ranks, 0);
  timing.peakHeld.assign(ranks, 0);
  std::vector<double> held(ranks, 0), clock(ranks, 0);
  // Of each path: visits done and the end of the last of them.
  std::vector<int32_t> done(problem.paths.size(), 0);
  std::vector<double> ended(problem.paths.size(), 0);
  size_t left = 0;
  for (const auto &list : schedule.ranks)
    left += list.size();
  for (bool moved = true; moved;) {
    moved = false;
    for (size_t rank = 0; rank < ranks; ++rank)
      while (timing.end[rank].size() < schedule.ranks[rank].size()) {
        const auto [m, place] = schedule.ranks[rank][timing.end[rank].size()];
        if (done[m] != place)
          break;
        const ChainVisit &visit = problem.paths[m][place];
        double start = clock[rank];
        if (place > 0) {
          const int32_t from = problem.paths[m][place - 1].rank;
          const double hop = problem.hopBetween(from, visit.rank);
          start = std::max(start, ended[m] + visit.message * hop);
        }
        clock[rank] = ended[m] = start + visit.time;
        ++done[m];
        timing.start[rank].push_back(start);
        timing.end[rank].push_back(ended[m]);
        timing.makespan = std::max(timing.makespan, ended[m]);
        timing.busy[rank] += visit.time;
        held[rank] += visit.held;
        timing.peakHeld[rank] = std::max(timing.peakHeld[rank], held[rank]);
        held[rank] -= visit.freed;
        --left;
        moved = true;
      }
  }
  if (left > 0)
    return std::nullopt;
  return timing;
}

double boundChains(const ChainProblem &problem) {
  constexpr double kNone = std::numeric_limits<double>::infinity();
  std::vector<double> work(problem.ranks, 0), first(problem.ranks, kNone),
      tail(problem.ranks, kNone);
  double bound = 0;
  for (const std::vector<ChainVisit> &path : problem.paths) {
    std::vector<double> end;
    double clock = 0;
    for (size_t i = 0; i < path.size(); ++i) {
      if (i > 0)
        clock += path[i].message *
                 problem.hopBetween(path[i - 1].rank, path[i].rank);
      first[path[i].rank] = std::min(first[path[i].rank], clock);
      clock += path[i].time;
      end.push_back(clock);
      work[path[i].rank] += path[i].time;
    }
    // The last visit of the rank's list may be any; the least tail of all.
    for (size_t i = 0; i < path.size(); ++i)
      tail[path[i].rank] = std::min(tail[path[i].rank], clock - end[i]);
    bound = std::max(bound, clock);
  }
  for (int32_t rank = 0; rank < problem.ranks; ++rank)
    if (first[rank] != kNone)
      bound = std::max(bound, first[rank] + work[rank] + tail[rank]);
  return bound;
}

} // namespace takt
