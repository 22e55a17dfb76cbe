//===- PipelineTiming.cpp - when the actions of a pipeline run
//--------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Runs all lists from their heads; a list that waits is woken by the action it
// waits for, so that the work is linear in the actions.
//
//===----------------------------------------------------------------------===//

#include "takt/Schedule/Pipeline.h"

#include <algorithm>

namespace takt {

namespace {

constexpr double kNotYet = -1;

class PipelineClock {
public:
  PipelineClock(const PipelineProblem &problem, const Pipeline &pipeline)
      : problem(problem), shape(shapeOf(problem, pipeline)),
        lists(pipeline.schedule.roles), heads(lists.size(), 0),
        freeAt(lists.size(), 0) {
    const size_t passes = size_t(problem.stages()) * problem.microBatches;
    for (std::vector<double> &ends : done)
      ends.assign(passes, kNotYet);
    waiter.assign(passes * 2, -1);
  }

  std::optional<PipelineTiming> run() {
    if (!fits())
      return std::nullopt;
    timing.start.resize(lists.size());
    timing.end.resize(lists.size());
    for (size_t rank = lists.size(); rank-- > 0;)
      ready.push_back(rank);
    while (!ready.empty()) {
      const int32_t rank = ready.back();
      ready.pop_back();
      while (heads[rank] < lists[rank].size() && advance(rank))
        ++heads[rank];
    }
    for (size_t rank = 0; rank < lists.size(); ++rank)
      if (heads[rank] < lists[rank].size())
        return std::nullopt;
    summarize();
    return std::move(timing);
  }

private:
  /// Ends of F, of the input gradient, of I alone.
  enum { kForward, kBackward, kInput, kEnds };

  bool fits() const {
    if (lists.size() != size_t(problem.ranks) ||
        shape.roleOfStage.size() != size_t(shape.stages))
      return false;
    for (size_t rank = 0; rank < lists.size(); ++rank)
      for (const Action &a : lists[rank])
        if (a.stage < 0 || a.stage >= problem.stages() || a.microBatch < 0 ||
            a.microBatch >= problem.microBatches ||
            rankOf(a.stage, a.microBatch) != int32_t(rank))
          return false;
    return true;
  }

  int32_t rankOf(int32_t stage, int32_t microBatch) const {
    return shape.roleOfStage[stage] + shape.replicaOf(stage, microBatch);
  }

  size_t pass(int32_t stage, int32_t microBatch) const {
    return size_t(stage) * problem.microBatches + microBatch;
  }

  /// Raises `start` to the arrival of what stage `from` made for `to`; false if
  /// that has not been made.
  bool await(int kind, int32_t from, int32_t to, int32_t m, double &start) {
    const double end = done[kind][pass(from, m)];
    if (end == kNotYet) {
      // W stands behind its I in the same list, or never runs.
      if (kind != kInput)
        waiter[pass(from, m) * 2 + kind] = rankOf(to, m);
      return false;
    }
    const bool crosses = rankOf(from, m) != rankOf(to, m);
    start = std::max(start, end + (crosses ? problem.hop : 0));
    return true;
  }

  bool inputsHere(const Action &a, double &start) {
    const int32_t s = a.stage, m = a.microBatch;
    if (a.kind == ActionKind::F)
      return shape.isFirst(s) || await(kForward, s - 1, s, m, start);
    if (a.kind == ActionKind::W)
      return await(kInput, s, s, m, start);
    return await(kForward, s, s, m, start) &&
           (shape.isLast(s) || await(kBackward, s + 1, s, m, start));
  }

  bool advance(int32_t rank) {
    const Action &a = lists[rank][heads[rank]];
    double start = freeAt[rank];
    if (!inputsHere(a, start))
      return false;
    const StageTimes t = problem.at(a.stage);
    double took = 0;
    if (a.kind == ActionKind::F)
      took = t.forward;
    if (a.kind == ActionKind::I || a.kind == ActionKind::B)
      took += t.inputGrad;
    if (a.kind == ActionKind::W || a.kind == ActionKind::B)
      took += t.weightGrad;
    freeAt[rank] = start + took;
    timing.start[rank].push_back(start);
    timing.end[rank].push_back(freeAt[rank]);
    if (a.kind == ActionKind::I)
      done[kInput][pass(a.stage, a.microBatch)] = freeAt[rank];
    if (a.kind != ActionKind::W)
      finish(a.kind == ActionKind::F ? kForward : kBackward,
             pass(a.stage, a.microBatch), freeAt[rank]);
    return true;
  }

  void finish(int kind, size_t pass, double end) {
    done[kind][pass] = end;
    int32_t &rank = waiter[pass * 2 + kind];
    if (rank >= 0)
      ready.push_back(rank);
    rank = -1;
  }

  void summarize() {
    for (size_t rank = 0; rank < lists.size(); ++rank) {
      double held = 0, peak = 0, busy = 0;
      for (size_t i = 0; i < lists[rank].size(); ++i) {
        const Action &a = lists[rank][i];
        const StageTimes t = problem.at(a.stage);
        busy += timing.end[rank][i] - timing.start[rank][i];
        held += a.kind == ActionKind::F ? t.held : 0;
        peak = std::max(peak, held);
        held -= a.kind == ActionKind::B   ? t.held
                : a.kind == ActionKind::I ? t.held - t.kept
                : a.kind == ActionKind::W ? t.kept
                                          : 0;
      }
      timing.busy.push_back(busy);
      timing.peakHeld.push_back(peak);
      if (lists[rank].empty())
        continue;
      timing.makespan = std::max(timing.makespan, timing.end[rank].back());
      timing.longestSpan =
          std::max(timing.longestSpan,
                   timing.end[rank].back() - timing.start[rank].front());
    }
  }

  const PipelineProblem &problem;
  const ScheduleProblem shape;
  const std::vector<std::vector<Action>> &lists;
  std::vector<size_t> heads;
  std::vector<double> freeAt;
  std::vector<double> done[kEnds];
  /// Rank that waits for F or the input gradient of a pass, by pass and kind:
  /// no more than one can, the neighbour stage's.
  std::vector<int32_t> waiter;
  std::vector<int32_t> ready;
  PipelineTiming timing;
};

} // namespace

ScheduleProblem shapeOf(const PipelineProblem &problem,
                        const Pipeline &pipeline) {
  return {problem.stages(), problem.microBatches, pipeline.rankOfStage,
          problem.chains, problem.replicas};
}

std::optional<PipelineTiming> timePipeline(const PipelineProblem &problem,
                                           const Pipeline &pipeline) {
  return PipelineClock(problem, pipeline).run();
}

} // namespace takt
