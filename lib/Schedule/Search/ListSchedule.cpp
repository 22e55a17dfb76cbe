//===- ListSchedule.cpp - a good small schedule at once -------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Simulates the pipeline: the action that can start first starts, and where one
// rank could start several at that time, a rule decides among the kinds. All
// six rules are tried; a stage whose limit is reached puts its forwards off.
//
//===----------------------------------------------------------------------===//
#include "takt/Schedule/Search.h"

#include <algorithm>
#include <array>
#include <limits>

using namespace takt;

namespace {

/// Kinds in order of preference, as indices 0 F, 1 I or B, 2 W.
using Rule = std::array<int, 3>;
constexpr Rule kRules[] = {{1, 0, 2}, {1, 2, 0}, {0, 1, 2},
                           {2, 1, 0}, {0, 2, 1}, {2, 0, 1}};
constexpr Nanos kNever = std::numeric_limits<int64_t>::max() / 4;

class Simulation {
public:
  Simulation(const SearchProblem &problem, const Rule &rule)
      : problem(problem), rule(rule), ranks(problem.stages.size()) {
    for (Rank &rank : ranks)
      for (std::vector<Nanos> &ends : rank.ends)
        ends.reserve(problem.microBatches);
  }

  Schedule run() {
    Schedule schedule;
    schedule.roles.resize(ranks.size());
    for (int64_t left = problem.numActions(); left > 0; --left) {
      int32_t stage = 0;
      int kind = 0;
      Nanos earliest = kNever;
      for (int32_t s = 0; s < int32_t(ranks.size()); ++s)
        for (const int k : rule)
          if (const Nanos start = startOf(s, k); start < earliest) {
            earliest = start;
            stage = s;
            kind = k;
          }
      Rank &rank = ranks[stage];
      rank.free = earliest + duration(stage, kind);
      schedule.roles[stage].push_back(
          {stage, kindOf(kind), int32_t(rank.ends[kind].size())});
      rank.ends[kind].push_back(rank.free);
    }
    return schedule;
  }

private:
  struct Rank {
    Nanos free = 0;
    std::array<std::vector<Nanos>, 3> ends; ///< by kind, micro-batch
  };

  ActionKind kindOf(int kind) const {
    if (kind == 1)
      return problem.split ? ActionKind::I : ActionKind::B;
    return kind == 0 ? ActionKind::F : ActionKind::W;
  }

  Nanos duration(int32_t s, int kind) const {
    const SearchStage &stage = problem.stages[s];
    if (kind == 1)
      return stage.inputGrad + (problem.split ? 0 : stage.weightGrad);
    return kind == 0 ? stage.forward : stage.weightGrad;
  }

  /// When the next action of a kind could start; kNever: not yet known.
  Nanos startOf(int32_t s, int kind) const {
    const Rank &rank = ranks[s];
    const size_t next = rank.ends[kind].size();
    const SearchStage &stage = problem.stages[s];
    if (next == size_t(problem.microBatches) || (kind == 2 && !problem.split))
      return kNever;
    Nanos start = rank.free;
    auto after = [&](const std::vector<Nanos> &ends, Nanos transfer) {
      start = next < ends.size() && start < kNever
                  ? std::max(start, ends[next] + transfer)
                  : kNever;
    };
    if (kind == 0) {
      const size_t released = rank.ends[problem.split ? 2 : 1].size();
      if (stage.mostInFlight != 0 &&
          next - released >= size_t(stage.mostInFlight))
        return kNever;
      if (s > 0)
        after(ranks[s - 1].ends[0], problem.stages[s - 1].toNext);
    } else {
      after(rank.ends[kind - 1], 0);
      if (kind == 1 && s + 1 < int32_t(ranks.size()))
        after(ranks[s + 1].ends[1], problem.stages[s + 1].toPrevious);
    }
    return start;
  }

  const SearchProblem &problem;
  const Rule &rule;
  std::vector<Rank> ranks;
};

} // namespace

Schedule takt::listSchedule(const SearchProblem &problem) {
  Schedule best;
  Nanos shortest = kNever;
  for (const Rule &rule : kRules) {
    Schedule schedule = Simulation(problem, rule).run();
    const std::optional<Nanos> time = makespan(problem, schedule);
    if (time && *time < shortest) {
      shortest = *time;
      best = std::move(schedule);
    }
  }
  return best;
}
