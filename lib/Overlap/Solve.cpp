//===- Solve.cpp - list schedule, then Z3 ---------------------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// The question to Z3: one integer for each start and one for the makespan, a
// truth value for the lane of each communication, and for each two of them "one
// after the other, or on different lanes".
//
//===----------------------------------------------------------------------===//
#include "takt/Overlap/Overlap.h"

#include "Paths.h"

#include "takt/Solver/Solver.h"

#include <algorithm>

using namespace takt;
using solver::atLeast;
using solver::Integer;
using solver::kOrigin;
using solver::Truth;

namespace {

struct Question {
  solver::Problem problem;
  std::vector<Integer> start;
  std::vector<Truth> second; ///< by action: on lane 1; of compute unused
  Integer makespan;
};

Question ask(const OverlapProblem &overlap, const Paths &paths) {
  Question q;
  const std::vector<OverlapAction> &actions = overlap.actions;
  std::vector<int32_t> comm;
  for (size_t i = 0; i < actions.size(); ++i) {
    q.start.push_back(q.problem.addInteger(actions[i].name));
    q.second.push_back({});
    if (actions[i].isCompute)
      continue;
    comm.push_back(int32_t(i));
    if (overlap.lanes > 1)
      q.second.back() = q.problem.addTruth(actions[i].name + " on lane 1");
  }
  q.makespan = q.problem.addInteger("makespan");
  for (size_t i = 0; i < actions.size(); ++i) {
    q.problem.require({atLeast(q.start[i], kOrigin, paths.head[i])});
    for (int32_t b : paths.before[i])
      q.problem.require({atLeast(q.start[i], q.start[b], actions[b].time)});
    q.problem.require(
        {atLeast(q.makespan, q.start[i], actions[i].time + paths.tail[i])});
  }
  for (size_t k = 0; k < comm.size(); ++k)
    for (size_t l = k + 1; l < comm.size(); ++l) {
      int32_t a = comm[k], b = comm[l];
      solver::Clause apart{atLeast(q.start[b], q.start[a], actions[a].time),
                           atLeast(q.start[a], q.start[b], actions[b].time)};
      if (overlap.lanes < 2) {
        q.problem.require(apart);
        continue;
      }
      solver::Clause unlessFirst = apart, unlessSecond = apart;
      unlessFirst.push_back(holds(q.second[a]));
      unlessFirst.push_back(holds(q.second[b]));
      unlessSecond.push_back(fails(q.second[a]));
      unlessSecond.push_back(fails(q.second[b]));
      q.problem.require(unlessFirst);
      q.problem.require(unlessSecond);
    }
  return q;
}

/// The lanes are alike: the first communication is put on lane 0.
void breakSymmetry(Question &q, const OverlapProblem &overlap,
                   OverlapSolution &incumbent) {
  if (overlap.lanes < 2)
    return;
  auto first = std::find_if(incumbent.lane.begin(), incumbent.lane.end(),
                            [](int32_t lane) { return lane >= 0; });
  if (first == incumbent.lane.end())
    return;
  if (*first == 1)
    for (int32_t &lane : incumbent.lane)
      lane = lane < 0 ? lane : 1 - lane;
  q.problem.require({fails(q.second[first - incumbent.lane.begin()])});
}

solver::Values valuesOf(const Question &q, const OverlapSolution &solution) {
  solver::Values values;
  values.integers.assign(q.problem.integers.size(), 0);
  values.truths.assign(q.problem.truths.size(), false);
  for (size_t i = 0; i < q.start.size(); ++i) {
    values.integers[q.start[i].id] = solution.start[i];
    if (solution.lane[i] == 1)
      values.truths[q.second[i].id] = true;
  }
  values.integers[q.makespan.id] = solution.makespan;
  return values;
}

} // namespace

OverlapSolution takt::solveOverlap(const OverlapProblem &problem,
                                   const OverlapLimits &limits) {
  OverlapSolution best = listSchedule(problem, ListRule::ByRemaining);
  OverlapSolution other = listSchedule(problem, ListRule::ByReady);
  if (other.makespan < best.makespan)
    best = std::move(other);
  best.bound = overlapBound(problem);
  if (best.proven() || int64_t(problem.actions.size()) > limits.actions ||
      !solver::available())
    return best;

  Paths paths(problem);
  Question question = ask(problem, paths);
  breakSymmetry(question, problem, best);
  if (question.problem.check())
    return best; // times beyond what the door takes
  solver::Settings settings;
  settings.workLimit = limits.workLimit;
  settings.dumpFolder = limits.dumpFolder;
  settings.name = "overlap";
  solver::Optimum found =
      solver::minimise(question.problem, question.makespan, best.bound,
                       valuesOf(question, best), settings);
  best.work = found.work;
  best.failure = found.failure;
  best.bound = std::max(best.bound, found.bound);
  best.method = "Z3";
  if (!found.values || found.value >= best.makespan)
    return best;
  for (size_t i = 0; i < problem.actions.size(); ++i) {
    best.start[i] = found.values->integers[question.start[i].id];
    if (!problem.actions[i].isCompute)
      best.lane[i] =
          problem.lanes > 1 && found.values->truths[question.second[i].id];
  }
  best.makespan = 0;
  for (size_t i = 0; i < problem.actions.size(); ++i)
    best.makespan =
        std::max(best.makespan, best.start[i] + problem.actions[i].time +
                                    problem.actions[i].tail);
  return best;
}
