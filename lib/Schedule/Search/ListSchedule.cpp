//===- ListSchedule.cpp - a good small schedule at once -------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Simulates the pipeline: the action that can start first starts, and where one
// rank could start several at that time, a rule decides among the kinds. All
// six rules are tried, under limits from 1F1B's to what is allowed; a stage whose
// limit is reached puts its forwards off. The generators' orders stand beside
// them, so that the best known is never longer than theirs.
//
//===----------------------------------------------------------------------===//
#include "takt/Schedule/Search.h"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

using namespace takt;

namespace {

/// Kinds in order of preference, as indices 0 F, 1 I or B, 2 W.
using Rule = std::array<int, 3>;
constexpr Rule kRules[] = {{1, 0, 2}, {1, 2, 0}, {0, 1, 2},
                           {2, 1, 0}, {0, 2, 1}, {2, 0, 1}};
constexpr Nanos kNever = std::numeric_limits<int64_t>::max() / 4;

int64_t sumInFlight(const Schedule &schedule) {
  int64_t sum = 0;
  for (const std::vector<Action> &actions : schedule.roles)
    sum += peakInFlight(actions);
  return sum;
}

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

std::vector<Schedule> takt::listSchedules(const SearchProblem &problem) {
  std::vector<Schedule> schedules;
  const auto stages = int32_t(problem.stages.size());
  // 1F1B's limits, a few more, and all that there is.
  for (int32_t more = 0; more <= stages; ++more) {
    SearchProblem limited = problem;
    for (int32_t s = 0; s < stages && more < stages; ++s) {
      int32_t &most = limited.stages[s].mostInFlight;
      most = std::min(most == 0 ? problem.microBatches : most,
                      stages - s + more);
    }
    for (const Rule &rule : kRules) {
      schedules.push_back(Simulation(limited, rule).run());
      schedules.back().name = "list schedule";
    }
  }
  return schedules;
}

std::vector<Schedule>
takt::generatedSchedules(const SearchProblem &problem) {
  std::vector<Schedule> kept;
  const ScheduleProblem sizes{int32_t(problem.stages.size()),
                              problem.microBatches};
  for (const std::string &name : scheduleNames()) {
    Schedule schedule = *generateSchedule(name, sizes);
    bool keeps = schedule.roles.size() == problem.stages.size();
    for (size_t s = 0; s < schedule.roles.size() && keeps; ++s) {
      std::vector<Action> &actions = schedule.roles[s];
      const int32_t most = problem.stages[s].mostInFlight;
      keeps = most == 0 || peakInFlight(actions) <= most;
      if (!problem.split)
        continue;
      std::vector<Action> cut;
      for (const Action &action : actions) {
        cut.push_back(action);
        if (action.kind == ActionKind::B) {
          cut.back().kind = ActionKind::I;
          cut.push_back({action.stage, ActionKind::W, action.microBatch});
        }
      }
      actions = std::move(cut);
    }
    if (keeps)
      kept.push_back(std::move(schedule));
  }
  return kept;
}

Schedule takt::bestKnown(const SearchProblem &problem) {
  std::vector<Schedule> all = listSchedules(problem);
  for (Schedule &schedule : generatedSchedules(problem))
    all.push_back(std::move(schedule));
  Schedule best;
  std::pair<Nanos, int64_t> least{kNever, 0};
  for (Schedule &schedule : all) {
    const std::optional<Nanos> time = makespan(problem, schedule);
    if (!time)
      continue;
    const std::pair<Nanos, int64_t> own{*time, sumInFlight(schedule)};
    if (own >= least)
      continue;
    least = own;
    best = std::move(schedule);
  }
  return best;
}

namespace {

/// The actions of a stage with forwards put off until no more than `most` are in
/// flight. Where a backward would come before its own forward, the order cannot
/// run.
std::vector<Action> putOff(const std::vector<Action> &actions, int32_t most) {
  std::vector<Action> result;
  std::vector<Action> waiting;
  int32_t held = 0;
  size_t next = 0; // of `waiting`
  auto begin = [&] {
    while (next < waiting.size() && held < most) {
      result.push_back(waiting[next++]);
      ++held;
    }
  };
  for (const Action &action : actions) {
    if (action.kind == ActionKind::F) {
      waiting.push_back(action);
      begin();
      continue;
    }
    result.push_back(action);
    held -= action.kind != ActionKind::I;
    begin();
  }
  return result;
}

} // namespace

Schedule takt::withFewerInFlight(const SearchProblem &problem,
                                 Schedule schedule) {
  const std::optional<Nanos> time = makespan(problem, schedule);
  for (std::vector<Action> &actions : schedule.roles) {
    const int32_t peak = peakInFlight(actions);
    for (int32_t most = 1; most < peak; ++most) {
      const std::vector<Action> before = actions;
      actions = putOff(before, most);
      const std::optional<Nanos> shorter = makespan(problem, schedule);
      if (shorter && time && *shorter <= *time)
        break;
      actions = before;
    }
  }
  return schedule;
}
