//===- Verify.cpp - can these chains run, and are they whole --------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "takt/Schedule/Chains.h"

#include <fmt/format.h>

#include <algorithm>

namespace takt {

namespace {

using Fault = std::optional<std::string>;

/// Sums of limits that are met exactly must not fail in their last bits.
constexpr double kSlack = 1e-9;

class Verifier {
public:
  Verifier(const ChainProblem &problem, const ChainSchedule &schedule)
      : problem(problem), schedule(schedule) {}

  Fault run() {
    if (schedule.ranks.size() != size_t(problem.ranks))
      return fmt::format("there are {} lists for {} ranks",
                         schedule.ranks.size(), problem.ranks);
    for (const std::vector<ChainVisit> &path : problem.paths)
      places.emplace_back(path.size(), -1);
    for (int32_t rank = 0; rank < problem.ranks; ++rank)
      if (auto fault = checkList(rank))
        return fault;
    for (size_t m = 0; m < places.size(); ++m)
      for (size_t visit = 0; visit < places[m].size(); ++visit)
        if (places[m][visit] < 0)
          return fmt::format("'{}' is missing", name(m, visit));
    return execute();
  }

private:
  std::string name(int32_t m, int32_t visit) const {
    return toText(problem, {m, visit});
  }

  Fault checkList(int32_t rank) {
    const std::vector<ChainAction> &list = schedule.ranks[rank];
    double held = 0;
    for (size_t i = 0; i < list.size(); ++i) {
      const auto [m, v] = list[i];
      if (m < 0 || size_t(m) >= problem.paths.size())
        return fmt::format("place {} of rank {}: there is no micro-batch {}, "
                           "only {} micro-batches",
                           i, rank, m, problem.paths.size());
      if (v < 0 || size_t(v) >= problem.paths[m].size())
        return fmt::format("place {} of rank {}: micro-batch {} has no visit "
                           "{}, only {}",
                           i, rank, m, v, problem.paths[m].size());
      const ChainVisit &visit = problem.paths[m][v];
      if (visit.rank != rank)
        return fmt::format("'{}' is in the list of rank {}, not of rank {}",
                           name(m, v), rank, visit.rank);
      if (places[m][v] >= 0)
        return fmt::format("'{}' stands twice on rank {}, at places {} and {}",
                           name(m, v), rank, places[m][v], i);
      places[m][v] = int32_t(i);
      held += visit.held;
      if (!problem.mostHeld.empty() && held > problem.mostHeld[rank] + kSlack)
        return fmt::format("'{}' makes rank {} hold {:g}, and it may hold {:g}",
                           name(m, v), rank, held, problem.mostHeld[rank]);
      held -= visit.freed;
    }
    return std::nullopt;
  }

  Fault execute() {
    std::vector<size_t> next(problem.ranks, 0);
    std::vector<int32_t> done(problem.paths.size(), 0);
    for (bool moved = true; moved;) {
      moved = false;
      for (int32_t rank = 0; rank < problem.ranks; ++rank)
        while (next[rank] < schedule.ranks[rank].size()) {
          const auto [m, visit] = schedule.ranks[rank][next[rank]];
          if (done[m] != visit)
            break;
          ++done[m];
          ++next[rank];
          moved = true;
        }
    }
    for (int32_t rank = 0; rank < problem.ranks; ++rank)
      if (next[rank] < schedule.ranks[rank].size())
        return describeCircle(next, done, rank);
    return std::nullopt;
  }

  /// Every head waits for an action that stands further down in some list, so
  /// following the waits comes back to a rank.
  std::string describeCircle(const std::vector<size_t> &next,
                             const std::vector<int32_t> &done,
                             int32_t rank) const {
    std::vector<int32_t> seen;
    while (std::find(seen.begin(), seen.end(), rank) == seen.end()) {
      seen.push_back(rank);
      const int32_t m = schedule.ranks[rank][next[rank]].microBatch;
      rank = problem.paths[m][done[m]].rank;
    }
    seen.erase(seen.begin(), std::find(seen.begin(), seen.end(), rank));
    std::string text = "these wait in a circle:";
    for (size_t i = 0; i < seen.size(); ++i) {
      const auto [m, visit] = schedule.ranks[seen[i]][next[seen[i]]];
      text += fmt::format("{} '{}' on rank {} for '{}'", i > 0 ? "," : "",
                          name(m, visit), seen[i], name(m, done[m]));
    }
    return text;
  }

  const ChainProblem &problem;
  const ChainSchedule &schedule;
  std::vector<std::vector<int32_t>> places; ///< by micro-batch and visit
};

} // namespace

std::optional<std::string> verify(const ChainProblem &problem,
                                  const ChainSchedule &schedule) {
  return Verifier(problem, schedule).run();
}

} // namespace takt
