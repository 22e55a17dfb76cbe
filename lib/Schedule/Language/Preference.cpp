//===- Preference.cpp - lists by running the ranks in time ----------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// A rank that is free looks through the preference and starts the first action
// that has arrived and that it has room for; else it looks again when something
// arrives. Moments are looked at in their order, ranks of one moment in theirs,
// so that the same rule gives the same lists.
//
//===----------------------------------------------------------------------===//

#include "Rules.h"

#include <fmt/format.h>

#include <cmath>
#include <queue>

namespace takt {

namespace {

constexpr double kNotYet = -1;

class Runner {
public:
  Runner(const ScheduleRule &rule, const PipelineProblem &problem,
         const Pipeline &places, std::vector<RankWork> &ranks,
         Schedule &schedule)
      : rule(rule), problem(problem), shape(shapeOf(problem, places)),
        ranks(ranks), schedule(schedule), freeAt(ranks.size(), 0),
        held(ranks.size(), 0) {
    const size_t passes = size_t(shape.stages) * shape.microBatches;
    forward.assign(passes, kNotYet);
    backward.assign(passes, kNotYet);
  }

  bool run(const std::vector<double> &most, const std::vector<double> &blocks,
           Diagnostics &diags) {
    for (size_t rank = 0; rank < ranks.size(); ++rank)
      moments.push({0, int32_t(rank)});
    while (!moments.empty()) {
      const auto [now, rank] = moments.top();
      moments.pop();
      if (freeAt[rank] <= now)
        startOne(rank, now, most[rank], int32_t(blocks[rank]));
    }
    for (size_t rank = 0; rank < ranks.size(); ++rank)
      if (!ranks[rank].isDone()) {
        std::string limit;
        if (!rule.hold.empty())
          limit = fmt::format(" and holds {} of at most {}", held[rank],
                              most[rank]);
        diags.error(rule.loc,
                    fmt::format("rank {} comes to a halt after {} actions: "
                                "nothing that it prefers can start{}",
                                rank, schedule.roles[rank].size(), limit));
        return false;
      }
    return true;
  }

private:
  using Moment = std::pair<double, int32_t>;

  size_t pass(int32_t stage, int32_t m) const {
    return size_t(stage) * shape.microBatches + m;
  }
  int32_t rankOf(int32_t stage, int32_t m) const {
    return shape.roleOfStage[stage] + shape.replicaOf(stage, m);
  }
  double hop(int32_t from, int32_t to, int32_t m) const {
    return rankOf(from, m) == rankOf(to, m) ? 0 : problem.hop;
  }
  bool arrived(const std::vector<double> &ends, int32_t from, int32_t to,
               int32_t m, double now) const {
    const double end = ends[pass(from, m)];
    return end != kNotYet && end + hop(from, to, m) <= now;
  }

  bool canStart(const Action &a, double now) const {
    const int32_t s = a.stage, m = a.microBatch;
    if (a.kind == ActionKind::W)
      return true; // its I is over: it is taken, and the rank is free
    if (a.kind == ActionKind::F)
      return shape.isFirst(s) || arrived(forward, s - 1, s, m, now);
    return arrived(forward, s, s, m, now) &&
           (shape.isLast(s) || arrived(backward, s + 1, s, m, now));
  }

  void startOne(int32_t rank, double now, double most, int32_t block) {
    for (const Step &step : rule.prefer) {
      const std::optional<Action> action = ranks[rank].next(step);
      if (!action)
        continue;
      if (action->kind == ActionKind::F &&
          held[rank] + 1 > most + 1e-9 * std::max(1.0, most))
        continue;
      const bool asBlock = block > 1 && action->kind != ActionKind::F &&
                           action->kind != ActionKind::W;
      if (asBlock ? blockCanStart(*action, block, now)
                  : canStart(*action, now)) {
        start(rank, step, *action, now);
        while (asBlock && sameBlock(ranks[rank].next(step), *action, block))
          start(rank, step, *ranks[rank].next(step), freeAt[rank]);
        return;
      }
    }
  }

  static bool sameBlock(const std::optional<Action> &a, const Action &first,
                        int32_t block) {
    return a && a->stage == first.stage &&
           a->microBatch / block == first.microBatch / block;
  }

  bool blockCanStart(const Action &first, int32_t block, double now) const {
    const int32_t begin = first.microBatch / block * block;
    for (int32_t m = begin; m < begin + block && m < shape.microBatches; ++m)
      if (rankOf(first.stage, m) == rankOf(first.stage, first.microBatch) &&
          !canStart({first.stage, first.kind, m}, now))
        return false;
    return true;
  }

  void start(int32_t rank, const Step &step, const Action &a, double now) {
    const StageTimes t = problem.at(a.stage);
    const double kept = t.held > 0 ? t.kept / t.held : 0;
    double end = now;
    if (a.kind == ActionKind::F)
      end += t.forward;
    if (a.kind == ActionKind::I || a.kind == ActionKind::B)
      end += t.inputGrad;
    if (a.kind == ActionKind::W || a.kind == ActionKind::B)
      end += t.weightGrad;
    held[rank] += a.kind == ActionKind::F   ? 1
                  : a.kind == ActionKind::I ? kept - 1
                  : a.kind == ActionKind::W ? -kept
                                            : -1;
    schedule.roles[rank].push_back(a);
    ranks[rank].take(step);
    freeAt[rank] = end;
    moments.push({end, rank});
    if (a.kind == ActionKind::W)
      return;
    const bool isForward = a.kind == ActionKind::F;
    (isForward ? forward : backward)[pass(a.stage, a.microBatch)] = end;
    if (isForward ? shape.isLast(a.stage) : shape.isFirst(a.stage))
      return;
    const int32_t to = a.stage + (isForward ? 1 : -1);
    moments.push(
        {end + hop(a.stage, to, a.microBatch), rankOf(to, a.microBatch)});
  }

  const ScheduleRule &rule;
  const PipelineProblem &problem;
  const ScheduleProblem shape;
  std::vector<RankWork> &ranks;
  Schedule &schedule;
  std::vector<double> freeAt, held;
  std::vector<double> forward, backward; ///< ends, by pass
  std::priority_queue<Moment, std::vector<Moment>, std::greater<>> moments;
};

} // namespace

bool expandPreference(const ScheduleRule &rule, const PipelineProblem &problem,
                      const Pipeline &places, std::vector<RankWork> &ranks,
                      const std::vector<FormulaNames> &names,
                      Diagnostics &diags, Schedule &schedule) {
  std::vector<double> most, blocks;
  for (const FormulaNames &given : names) {
    most.push_back(HUGE_VAL);
    blocks.push_back(1);
    if (!rule.hold.empty()) {
      const auto value = valueOf(rule.hold, given, false, diags);
      if (!value)
        return false;
      most.back() = *value;
    }
    if (!rule.together.empty()) {
      const auto value = valueOf(rule.together, given, true, diags);
      if (!value)
        return false;
      blocks.back() = *value;
      if (*value < 1) {
        diags.error(
            rule.together.loc,
            fmt::format("backwards of {} micro-batches as one", *value));
        return false;
      }
    }
  }
  return Runner(rule, problem, places, ranks, schedule)
      .run(most, blocks, diags);
}

} // namespace takt
