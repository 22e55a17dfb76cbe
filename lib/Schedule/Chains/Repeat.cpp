//===- Repeat.cpp - a path that follows itself every period ---------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Modulo scheduling of one path: visits are placed in their order, each where
// its rank is free modulo the period, the earliest place first, and taken back
// where the rest no longer fits into the span.
//
//===----------------------------------------------------------------------===//

#include "takt/Schedule/Chains.h"

#include <algorithm>
#include <cmath>

namespace takt {

namespace {

constexpr double kSlack = 1e-9;

class Repeater {
public:
  Repeater(const ChainProblem &problem, const std::vector<ChainVisit> &path,
           const ChainRepeat &repeat)
      : problem(problem), path(path), repeat(repeat), busy(problem.ranks),
        rest(path.size() + 1, 0) {
    for (size_t i = path.size(); i-- > 0;)
      rest[i] = rest[i + 1] + path[i].time + (i > 0 ? hopTo(i) : 0);
  }

  bool run() { return placeFrom(0, 0); }
  std::vector<double> starts;
  int64_t tries = 0;

private:
  struct Interval {
    double start, time;
  };

  double hopTo(size_t i) const {
    return path[i].message * problem.hopBetween(path[i - 1].rank, path[i].rank);
  }

  /// From 0 to the period.
  double wrap(double time) const {
    const double rest = std::fmod(time, repeat.period);
    return rest < 0 ? rest + repeat.period : rest;
  }

  bool isFree(int32_t rank, double start, double time) const {
    for (const Interval &other : busy[rank]) {
      // How long after the other one begins this one does, and the reverse.
      const double after = wrap(start - other.start);
      const bool together = after < kSlack || repeat.period - after < kSlack;
      if (together ? time > 0 && other.time > 0
                   : after < other.time - kSlack ||
                         repeat.period - after < time - kSlack)
        return false;
    }
    return time <= repeat.period + kSlack;
  }

  /// Starts from `earliest` on, less than a period later.
  std::vector<double> candidates(const ChainVisit &visit,
                                 double earliest) const {
    std::vector<double> starts = {earliest};
    for (const Interval &other : busy[visit.rank])
      for (double at : {other.start + other.time, other.start - visit.time})
        starts.push_back(earliest + wrap(at - earliest));
    if (repeat.grid > 0)
      for (double wait = repeat.grid; wait < repeat.period; wait += repeat.grid)
        starts.push_back(earliest + wait);
    std::sort(starts.begin(), starts.end());
    starts.erase(std::unique(starts.begin(), starts.end(),
                             [](double a, double b) { return b - a < kSlack; }),
                 starts.end());
    return starts;
  }

  bool placeFrom(size_t i, double ended) {
    if (i == path.size())
      return true;
    if (++tries >= repeat.mostTries)
      return false;
    const ChainVisit &visit = path[i];
    const double earliest = ended + (i > 0 ? hopTo(i) : 0);
    const double behind = rest[i] - (i > 0 ? hopTo(i) : 0);
    for (double start : candidates(visit, earliest)) {
      if (start + behind > repeat.mostSpan + kSlack ||
          tries >= repeat.mostTries)
        break;
      if (!isFree(visit.rank, start, visit.time))
        continue;
      busy[visit.rank].push_back({start, visit.time});
      starts.push_back(start);
      if (placeFrom(i + 1, start + visit.time))
        return true;
      starts.pop_back();
      busy[visit.rank].pop_back();
    }
    return false;
  }

  const ChainProblem &problem;
  const std::vector<ChainVisit> &path;
  const ChainRepeat &repeat;
  std::vector<std::vector<Interval>> busy; ///< by rank
  std::vector<double> rest; ///< least time from before the hop to visit i
};

} // namespace

std::optional<std::vector<double>>
repeatPath(const ChainProblem &problem, const std::vector<ChainVisit> &path,
           const ChainRepeat &repeat, int64_t *tried) {
  Repeater repeater(problem, path, repeat);
  const bool found = repeat.period > 0 && repeater.run();
  if (tried)
    *tried = repeater.tries;
  if (!found)
    return std::nullopt;
  return std::move(repeater.starts);
}

} // namespace takt
