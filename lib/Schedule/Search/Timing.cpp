//===- Timing.cpp - what an order of actions takes ------------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Every action and every transfer starts as early as it can. Limited buffers are
// those that lowering gives a plan (RoleBuilder::assignSlots): one more than the
// order of the actions holds at once, the one that is given back first is taken
// first.
//
//===----------------------------------------------------------------------===//
#include "takt/Schedule/Search.h"

#include <algorithm>
#include <numeric>

using namespace takt;

namespace {

constexpr Nanos kOpen = -1;

Nanos duration(const SearchStage &stage, ActionKind kind) {
  switch (kind) {
  case ActionKind::F:
    return stage.forward;
  case ActionKind::I:
    return stage.inputGrad;
  case ActionKind::W:
    return stage.weightGrad;
  case ActionKind::B:
    return stage.inputGrad + stage.weightGrad;
  }
  return 0;
}

class Timing {
public:
  Timing(const SearchProblem &problem, const Schedule &schedule)
      : problem(problem), schedule(schedule), count(problem.microBatches),
        stages(int32_t(problem.stages.size())) {
    for (Series &series : ends)
      series.assign(size_t(stages) * count, kOpen);
    for (Crossings &direction : crossings)
      direction.resize(stages);
    findOrder();
    if (problem.limitedBuffers)
      for (int32_t s = 0; s < stages; ++s)
        findBuffers(s);
  }

  std::optional<Nanos> run() {
    bool moved = true;
    while (moved) {
      moved = false;
      for (size_t role = 0; role < schedule.roles.size(); ++role)
        while (heads[role] < schedule.roles[role].size() && advance(role))
          moved = true;
      for (bool backward : {false, true})
        for (int32_t s = 0; s < stages; ++s)
          while (transfer(backward, s))
            moved = true;
    }
    for (size_t role = 0; role < schedule.roles.size(); ++role)
      if (heads[role] < schedule.roles[role].size())
        return std::nullopt;
    return last;
  }

private:
  using Series = std::vector<Nanos>; ///< by stage, micro-batch

  /// Messages that leave a stage in one direction.
  struct Crossing {
    std::vector<int32_t> order; ///< micro-batches as they are made
    size_t sent = 0;
    Nanos free = 0;
    /// Of each micro-batch: the one whose buffer it takes over, at the end that
    /// sends and at the one that receives; -1: a fresh one.
    std::vector<int32_t> sendsAfter, receivesAfter;
  };
  using Crossings = std::vector<Crossing>;

  enum { kForward, kInputGrad, kWeightGrad, kSent, kSentBack, kSeries };

  Nanos &end(int series, int32_t s, int32_t m) {
    return ends[series][size_t(s) * count + m];
  }

  void findOrder() {
    for (std::vector<int32_t> &place : places)
      place.assign(size_t(stages) * count, 0);
    heads.assign(schedule.roles.size(), 0);
    free.assign(schedule.roles.size(), 0);
    for (const std::vector<Action> &actions : schedule.roles)
      for (size_t i = 0; i < actions.size(); ++i) {
        const Action &a = actions[i];
        const size_t at = size_t(a.stage) * count + a.microBatch;
        const bool both = a.kind == ActionKind::B;
        if (a.kind == ActionKind::F)
          places[kForward][at] = int32_t(i);
        if (a.kind == ActionKind::I || both)
          places[kInputGrad][at] = int32_t(i);
        if (a.kind == ActionKind::W || both)
          places[kWeightGrad][at] = int32_t(i);
        if (a.kind == ActionKind::F && a.stage + 1 < stages)
          crossings[0][a.stage].order.push_back(a.microBatch);
        if ((a.kind == ActionKind::I || both) && a.stage > 0)
          crossings[1][a.stage].order.push_back(a.microBatch);
      }
  }

  /// What each micro-batch's buffer was before, if it is taken at one action and
  /// held until another.
  std::vector<int32_t> takesOver(int32_t s, int from, HeldUntil until) const {
    auto place = [&](int kind, int32_t m) {
      return places[kind][size_t(s) * count + m];
    };
    auto given = [&](int32_t m) {
      return std::max(place(from, m), place(int(until), m));
    };
    std::vector<int32_t> order(count);
    std::iota(order.begin(), order.end(), 0);
    std::sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
      return place(from, a) < place(from, b);
    });
    int32_t most = 0;
    for (const int32_t m : order) {
      int32_t held = 0;
      for (int32_t other = 0; other < count; ++other)
        held += place(from, other) <= place(from, m) &&
                given(other) >= place(from, m);
      most = std::max(most, held);
    }
    std::vector<int32_t> holders(std::min(most + 1, count), -1), before(count);
    for (const int32_t m : order) {
      const auto first = std::min_element(
          holders.begin(), holders.end(), [&](int32_t a, int32_t b) {
            return (a < 0 ? -1 : given(a)) < (b < 0 ? -1 : given(b));
          });
      before[m] = *first;
      *first = m;
    }
    return before;
  }

  void findBuffers(int32_t s) {
    const SearchStage &stage = problem.stages[s];
    if (s + 1 < stages) {
      crossings[0][s].sendsAfter = takesOver(s, kForward, stage.outputHeld);
      crossings[1][s + 1].receivesAfter =
          takesOver(s, kInputGrad, stage.outputGradHeld);
    }
    if (s > 0) {
      crossings[1][s].sendsAfter = takesOver(s, kInputGrad, stage.inputGradHeld);
      crossings[0][s - 1].receivesAfter = takesOver(s, kForward, stage.inputHeld);
    }
  }

  /// The next action of a role, if all that it waits for has a time.
  bool advance(size_t role) {
    const Action &a = schedule.roles[role][heads[role]];
    const int32_t s = a.stage, m = a.microBatch;
    bool open = false;
    Nanos start = free[role];
    auto after = [&](int series, int32_t stage, int32_t microBatch) {
      const Nanos time = end(series, stage, microBatch);
      open |= time == kOpen;
      start = std::max(start, time);
    };
    auto afterBuffer = [&](int sent, const Crossing &crossing) {
      if (!crossing.sendsAfter.empty() && crossing.sendsAfter[m] >= 0)
        after(sent, s, crossing.sendsAfter[m]);
    };
    if (a.kind == ActionKind::F) {
      if (s > 0)
        after(kSent, s - 1, m);
      afterBuffer(kSent, crossings[0][s]);
    } else if (a.kind == ActionKind::W) {
      after(kInputGrad, s, m);
    } else {
      after(kForward, s, m);
      if (s + 1 < stages)
        after(kSentBack, s + 1, m);
      afterBuffer(kSentBack, crossings[1][s]);
    }
    if (open)
      return false;
    const Nanos done = start + duration(problem.stages[s], a.kind);
    free[role] = done;
    last = std::max(last, done + problem.stages[s].tail);
    if (a.kind == ActionKind::F)
      end(kForward, s, m) = done;
    if (a.kind == ActionKind::I || a.kind == ActionKind::B)
      end(kInputGrad, s, m) = done;
    if (a.kind == ActionKind::W || a.kind == ActionKind::B)
      end(kWeightGrad, s, m) = done;
    ++heads[role];
    return true;
  }

  /// The next message of a stage in one direction.
  bool transfer(bool backward, int32_t s) {
    Crossing &crossing = crossings[backward][s];
    if (crossing.sent == crossing.order.size())
      return false;
    const int32_t m = crossing.order[crossing.sent];
    const int32_t to = backward ? s - 1 : s + 1;
    Nanos start = end(backward ? kInputGrad : kForward, s, m);
    if (start == kOpen)
      return false;
    if (problem.limitedBuffers)
      start = std::max(start, crossing.free);
    if (!crossing.receivesAfter.empty() && crossing.receivesAfter[m] >= 0) {
      const SearchStage &stage = problem.stages[to];
      const HeldUntil until =
          backward ? stage.outputGradHeld : stage.inputHeld;
      const Nanos given = end(int(until), to, crossing.receivesAfter[m]);
      if (given == kOpen)
        return false;
      start = std::max(start, given);
    }
    const SearchStage &stage = problem.stages[s];
    crossing.free = start + (backward ? stage.toPrevious : stage.toNext);
    end(backward ? kSentBack : kSent, s, m) = crossing.free;
    ++crossing.sent;
    return true;
  }

  const SearchProblem &problem;
  const Schedule &schedule;
  const int32_t count, stages;
  Series ends[kSeries];
  std::vector<int32_t> places[3]; ///< in the role, by stage and micro-batch
  Crossings crossings[2];         ///< forward, backward; by sending stage
  std::vector<size_t> heads;
  std::vector<Nanos> free;
  Nanos last = 0;
};

} // namespace

std::optional<Nanos> takt::makespan(const SearchProblem &problem,
                                    const Schedule &schedule) {
  return Timing(problem, schedule).run();
}
