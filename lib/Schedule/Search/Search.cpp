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

  /// An action that has to be over some time before another.
  struct Need {
    Action before;
    Nanos gap = 0; ///< between the two starts
  };

  /// What an action waits for.
  std::vector<Need> needs(const Action &action) const {
    const int32_t s = action.stage;
    std::vector<Need> result;
    auto own = [&](ActionKind kind) {
      result.push_back({{s, kind, action.microBatch}, duration(s, kind)});
    };
    if (action.kind == ActionKind::F) {
      if (s > 0)
        addArrival(result, false, s - 1, action.microBatch);
      if (s + 1 < stages())
        addSent(result, false, s, action.microBatch);
    } else if (action.kind == ActionKind::W) {
      own(ActionKind::I);
    } else {
      own(ActionKind::F);
      if (s + 1 < stages())
        addArrival(result, true, s + 1, action.microBatch);
      if (s > 0)
        addSent(result, true, s, action.microBatch);
    }
    return result;
  }

  /// The transfer of a micro-batch from stage `from` has ended. It began after
  /// the action that made the data, after the transfer before it, and after the
  /// receiver gave a buffer back; following the transfers before it to what they
  /// began after leaves actions alone.
  void addArrival(std::vector<Need> &result, bool backward, int32_t from,
                  int32_t m) const {
    const SearchStage &source = problem.stages[from];
    const int32_t to = backward ? from - 1 : from + 1;
    const Nanos time = backward ? source.toPrevious : source.toNext;
    const ActionKind maker = backward ? backwardKind() : ActionKind::F;
    const SearchStage &target = problem.stages[to];
    const ActionKind giver = kindAt(backward ? target.outputGradHeld : target.inputHeld);
    const int32_t buffers = mostBuffers(
        to, backward ? HeldUntil::InputGrad : HeldUntil::Forward,
        backward ? target.outputGradHeld : target.inputHeld);
    const Nanos made = duration(from, maker), given = duration(to, giver);
    for (int32_t back = 0; back <= m; ++back) {
      const Nanos all = (back + 1) * time;
      // Makers follow each other: earlier ones matter only to slow transfers.
      if (back == 0 || (problem.limitedBuffers && time > made))
        result.push_back({{from, maker, m - back}, made + all});
      const int32_t earlier = m - back - buffers;
      if (problem.limitedBuffers && earlier >= 0 && (back == 0 || time > given))
        result.push_back({{to, giver, earlier}, given + all});
    }
  }

  /// The message that had this micro-batch's buffer at its source has left.
  void addSent(std::vector<Need> &result, bool backward, int32_t s,
               int32_t m) const {
    const SearchStage &stage = problem.stages[s];
    const int32_t earlier =
        m - mostBuffers(s, backward ? HeldUntil::InputGrad : HeldUntil::Forward,
                        backward ? stage.inputGradHeld : stage.outputHeld);
    if (problem.limitedBuffers && earlier >= 0)
      addArrival(result, backward, s, earlier);
  }

  /// Buffers that an order within the limit in flight can have at most, if each
  /// is taken by the action at `from`.
  int32_t mostBuffers(int32_t s, HeldUntil from, HeldUntil until) const {
    const int32_t most = problem.stages[s].mostInFlight;
    const int32_t held = kindAt(until) == kindAt(from) ? 1
                         : most == 0                  ? count()
                                                      : most;
    return std::min(held + 1, count());
  }

  ActionKind kindAt(HeldUntil until) const {
    return until == HeldUntil::Forward     ? ActionKind::F
           : until == HeldUntil::InputGrad ? backwardKind()
                                           : lastKind();
  }

  Nanos inputsOf(const Action &action, const solver::Values &values) const {
    Nanos ready = 0;
    for (const Need &need : needs(action))
      ready = std::max(ready,
                       values.integers[startOf(need.before).id] + need.gap);
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
        for (const Need &need : needs(action))
          model.require({atLeast(start, startOf(need.before), need.gap)});
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
  auto keep = [&](Schedule schedule) {
    result.method = schedule.name;
    result.schedule = withFewerInFlight(problem, std::move(schedule));
    result.makespan = *makespan(problem, result.schedule);
  };
  keep(bestKnown(problem));
  result.bound = std::min(leastMakespan(problem), result.makespan);
  if (result.bound < result.makespan || !fromList) {
    const Model model(problem);
    std::optional<solver::Values> start;
    if (fromList)
      start = model.valuesOf(result.schedule);
    const solver::Optimum optimum = solver::minimise(
        model.get(), model.objective(), result.bound, start, settings);
    result.work = optimum.work;
    result.failure = optimum.failure;
    result.bound = std::max(result.bound, optimum.bound);
    if (optimum.values) {
      Schedule found = model.scheduleOf(*optimum.values);
      found.name = "Z3";
      const std::optional<Nanos> time = makespan(problem, found);
      if (time && *time < result.makespan + (fromList ? 0 : 1))
        keep(std::move(found));
    }
    result.bound = std::min(result.bound, result.makespan);
  }
  result.schedule.name = problem.split ? "optimal-split" : "optimal";
  return result;
}
