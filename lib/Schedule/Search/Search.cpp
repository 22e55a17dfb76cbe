//===- Search.cpp - the shortest schedule by difference logic -------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// A start for every action. Micro-batches in order (Search.h says why nothing
// is lost), so two actions of a rank are in either order only where they are of
// different kinds and the earlier kind has the later micro-batch.
//
//===----------------------------------------------------------------------===//
#include "takt/Schedule/Search.h"

#include <algorithm>
#include <map>
#include <utility>

using namespace takt;
using solver::atLeast;
using solver::kOrigin;

namespace {

class Model {
public:
  explicit Model(const SearchProblem &problem) : problem(problem) {
    end = model.addInteger("end");
    kinds.push_back(ActionKind::F);
    if (problem.split)
      kinds.insert(kinds.end(), {ActionKind::I, ActionKind::W});
    else
      kinds.push_back(ActionKind::B);
    for (int32_t s = 0; s < stages(); ++s)
      for (const ActionKind kind : kinds)
        for (int32_t m = 0; m < problem.microBatches; ++m)
          starts.emplace(std::make_pair(s, kindIndex(kind) * count() + m),
                         model.addInteger(toText({s, kind, m})));
    for (int32_t s = 0; s < stages(); ++s)
      addStage(s);
  }

  const solver::Problem &get() const { return model; }
  solver::Integer objective() const { return end; }

  /// The starts of a schedule that runs as early as it can.
  solver::Values valuesOf(const Schedule &schedule) const {
    solver::Values values;
    values.integers.assign(model.integers.size(), 0);
    bool moved = true; // longest paths: a few passes over a small graph
    while (moved) {
      moved = false;
      for (const std::vector<Action> &actions : schedule.roles) {
        Nanos free = 0;
        for (const Action &action : actions) {
          int64_t &start = values.integers[startOf(action).id];
          const Nanos early = std::max(free, inputsOf(action, values));
          moved |= early > start;
          start = std::max(start, early);
          free = start + duration(action.stage, action.kind);
          int64_t &last = values.integers[end.id];
          last = std::max(last, free + problem.stages[action.stage].tail);
        }
      }
    }
    return values;
  }

  Schedule scheduleOf(const solver::Values &values) const {
    Schedule schedule;
    for (int32_t s = 0; s < stages(); ++s) {
      std::vector<std::pair<int64_t, Action>> timed;
      for (const ActionKind kind : kinds)
        for (int32_t m = 0; m < problem.microBatches; ++m)
          timed.emplace_back(values.integers[startOf({s, kind, m}).id],
                             Action{s, kind, m});
      // Every action takes time and none overlap: no two starts are equal.
      std::sort(timed.begin(), timed.end(),
                [](const auto &a, const auto &b) { return a.first < b.first; });
      std::vector<Action> &actions = schedule.roles.emplace_back();
      for (const auto &entry : timed)
        actions.push_back(entry.second);
    }
    return schedule;
  }

private:
  int32_t stages() const { return int32_t(problem.stages.size()); }
  int32_t count() const { return problem.microBatches; }
  static int32_t kindIndex(ActionKind kind) { return int32_t(kind); }
  ActionKind backwardKind() const { return kinds[1]; }
  ActionKind lastKind() const { return kinds.back(); }

  solver::Integer startOf(const Action &action) const {
    return starts.at({action.stage,
                      kindIndex(action.kind) * count() + action.microBatch});
  }
  Nanos duration(int32_t s, ActionKind kind) const {
    const SearchStage &stage = problem.stages[s];
    switch (kind) {
    case ActionKind::F:
      return stage.forward;
    case ActionKind::I:
      return stage.inputGrad;
    case ActionKind::W:
      return stage.weightGrad;
    case ActionKind::B:
      break;
    }
    return stage.inputGrad + stage.weightGrad;
  }

  /// What an action waits for, with the time between that one's start and its
  /// own.
  std::vector<std::pair<Action, Nanos>> needs(const Action &action) const {
    const int32_t s = action.stage, m = action.microBatch;
    std::vector<std::pair<Action, Nanos>> result;
    auto need = [&](int32_t stage, ActionKind kind, Nanos transfer) {
      result.push_back({{stage, kind, m}, duration(stage, kind) + transfer});
    };
    if (action.kind == ActionKind::F) {
      if (s > 0)
        need(s - 1, ActionKind::F, problem.stages[s - 1].toNext);
    } else if (action.kind == ActionKind::W) {
      need(s, ActionKind::I, 0);
    } else {
      need(s, ActionKind::F, 0);
      if (s + 1 < stages())
        need(s + 1, action.kind, problem.stages[s + 1].toPrevious);
    }
    return result;
  }

  Nanos inputsOf(const Action &action, const solver::Values &values) const {
    Nanos ready = 0;
    for (const auto &[before, gap] : needs(action))
      ready = std::max(ready, values.integers[startOf(before).id] + gap);
    return ready;
  }

  void addStage(int32_t s) {
    const SearchStage &stage = problem.stages[s];
    for (const ActionKind kind : kinds)
      for (int32_t m = 0; m < count(); ++m) {
        const Action action{s, kind, m};
        const solver::Integer start = startOf(action);
        model.require({atLeast(start, kOrigin, 0)});
        if (m > 0)
          model.require(
              {atLeast(start, startOf({s, kind, m - 1}), duration(s, kind))});
        for (const auto &[before, gap] : needs(action))
          model.require({atLeast(start, startOf(before), gap)});
      }
    for (int32_t m = stage.mostInFlight; stage.mostInFlight > 0 && m < count();
         ++m)
      model.require({atLeast(startOf({s, ActionKind::F, m}),
                             startOf({s, lastKind(), m - stage.mostInFlight}),
                             duration(s, lastKind()))});
    model.require({atLeast(end, startOf({s, lastKind(), count() - 1}),
                           duration(s, lastKind()) + stage.tail)});
    for (size_t early = 0; early < kinds.size(); ++early)
      for (size_t late = early + 1; late < kinds.size(); ++late)
        for (int32_t m = 1; m < count(); ++m)
          for (int32_t n = 0; n < m; ++n)
            eitherOrder({s, kinds[early], m}, {s, kinds[late], n});
  }

  void eitherOrder(const Action &a, const Action &b) {
    model.require(
        {atLeast(startOf(a), startOf(b), duration(b.stage, b.kind)),
         atLeast(startOf(b), startOf(a), duration(a.stage, a.kind))});
  }

  const SearchProblem &problem;
  solver::Problem model;
  solver::Integer end;
  std::vector<ActionKind> kinds;
  std::map<std::pair<int32_t, int32_t>, solver::Integer> starts;
};

} // namespace

SearchResult takt::searchSchedule(const SearchProblem &problem,
                                  const solver::Settings &settings,
                                  bool fromList) {
  SearchResult result;
  result.schedule = listSchedule(problem);
  result.makespan = *makespan(problem, result.schedule);
  result.bound = std::min(leastMakespan(problem), result.makespan);
  result.method = "list schedule";
  if (result.bound < result.makespan || !fromList) {
    const Model model(problem);
    std::optional<solver::Values> start;
    if (fromList)
      start = model.valuesOf(result.schedule);
    const solver::Optimum optimum = solver::minimise(
        model.get(), model.objective(), result.bound, start, settings);
    result.work = optimum.work;
    result.bound = std::max(result.bound, optimum.bound);
    const Nanos limit = result.makespan + (fromList ? 0 : 1);
    if (optimum.values && optimum.value < limit) {
      result.schedule = model.scheduleOf(*optimum.values);
      result.makespan = *makespan(problem, result.schedule);
      result.method = "Z3";
    }
    result.bound = std::min(result.bound, result.makespan);
  }
  result.schedule.name = problem.split ? "optimal-split" : "optimal";
  return result;
}
