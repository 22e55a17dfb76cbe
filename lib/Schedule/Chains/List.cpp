//===- List.cpp - what can start first is next ----------------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "takt/Schedule/Chains.h"

#include <algorithm>
#include <limits>

namespace takt {

namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr double kSlack = 1e-9;

class Lister {
public:
  Lister(const ChainProblem &problem, const ChainOrder &order)
      : problem(problem), order(order), clock(problem.ranks, 0),
        held(problem.ranks, 0), done(problem.paths.size(), 0),
        ended(problem.paths.size(), 0) {
    schedule.ranks.resize(problem.ranks);
  }

  std::optional<ChainSchedule> run() {
    size_t left = 0;
    for (const std::vector<ChainVisit> &path : problem.paths)
      left += path.size();
    for (; left > 0; --left) {
      int32_t best = -1;
      double bestStart = kNever;
      for (size_t m = 0; m < problem.paths.size(); ++m) {
        if (size_t(done[m]) == problem.paths[m].size())
          continue;
        const double start = startOf(int32_t(m));
        if (start < bestStart - kSlack ||
            (start < kNever && start <= bestStart + kSlack &&
             goesFirst(int32_t(m), best))) {
          best = int32_t(m);
          bestStart = start;
        }
      }
      if (best < 0)
        return std::nullopt;
      place(best, bestStart);
    }
    return std::move(schedule);
  }

private:
  double rankOf(int32_t m) const {
    return order.rank.empty() ? 0 : order.rank[m][done[m]];
  }

  bool goesFirst(int32_t m, int32_t other) const {
    if (other < 0 || rankOf(m) != rankOf(other))
      return other < 0 || rankOf(m) < rankOf(other);
    return false; // micro-batches are looked at in their order
  }

  double startOf(int32_t m) const {
    const ChainVisit &visit = problem.paths[m][done[m]];
    if (!problem.mostHeld.empty() && visit.held > 0 &&
        held[visit.rank] + visit.held > problem.mostHeld[visit.rank] + kSlack)
      return kNever;
    double start = clock[visit.rank];
    if (done[m] > 0)
      return std::max(
          start,
          ended[m] + visit.message *
                         problem.hopBetween(problem.paths[m][done[m] - 1].rank,
                                            visit.rank));
    if (order.mostInFlight > 0 && begun >= order.mostInFlight) {
      const size_t over = size_t(begun - order.mostInFlight);
      if (over >= finished.size())
        return kNever;
      start = std::max(start, finished[over]);
    }
    return start;
  }

  void place(int32_t m, double start) {
    const int32_t at = done[m]++;
    const ChainVisit &visit = problem.paths[m][at];
    schedule.ranks[visit.rank].push_back({m, at});
    clock[visit.rank] = ended[m] = start + visit.time;
    held[visit.rank] += visit.held - visit.freed;
    begun += at == 0;
    if (size_t(done[m]) == problem.paths[m].size())
      finished.insert(
          std::upper_bound(finished.begin(), finished.end(), ended[m]),
          ended[m]);
  }

  const ChainProblem &problem;
  const ChainOrder &order;
  std::vector<double> clock, held; ///< by rank
  std::vector<int32_t> done;       ///< visits, by micro-batch
  std::vector<double> ended;       ///< the last of them
  std::vector<double> finished;    ///< ends of paths, sorted
  int32_t begun = 0;
  ChainSchedule schedule;
};

} // namespace

std::optional<ChainSchedule> listChains(const ChainProblem &problem,
                                        const ChainOrder &order) {
  return Lister(problem, order).run();
}

} // namespace takt
