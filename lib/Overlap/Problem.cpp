//===- Problem.cpp - checks of overlap problems and answers ---------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// What a problem must be, and an independent look at an answer.
//
//===----------------------------------------------------------------------===//
#include "takt/Overlap/Overlap.h"

#include <fmt/format.h>

#include <algorithm>

using namespace takt;

std::optional<std::string> OverlapProblem::check() const {
  if (lanes < 1 || lanes > 2)
    return fmt::format("{} lanes of communication, expected 1 or 2", lanes);
  for (size_t i = 0; i < actions.size(); ++i) {
    const OverlapAction &a = actions[i];
    if (a.time < 0 || a.release < 0 || a.tail < 0)
      return fmt::format("action '{}' has a negative time: {} ns, from {} ns, "
                         "tail {} ns",
                         a.name, a.time, a.release, a.tail);
    for (int32_t before : a.after)
      if (before < 0 || size_t(before) >= i)
        return fmt::format("action '{}' comes after action {}, expected one "
                           "of the {} before it",
                           a.name, before, i);
  }
  return std::nullopt;
}

std::vector<std::vector<int32_t>>
takt::laneOrder(const OverlapProblem &problem,
                const OverlapSolution &solution) {
  std::vector<std::vector<int32_t>> lanes(problem.lanes);
  for (size_t i = 0; i < problem.actions.size(); ++i)
    if (solution.lane[i] >= 0)
      lanes[solution.lane[i]].push_back(int32_t(i));
  // What takes no time goes before what starts at the same moment.
  auto earlier = [&](int32_t a, int32_t b) {
    return solution.start[a] != solution.start[b]
               ? solution.start[a] < solution.start[b]
               : problem.actions[a].time < problem.actions[b].time;
  };
  for (std::vector<int32_t> &lane : lanes)
    std::stable_sort(lane.begin(), lane.end(), earlier);
  return lanes;
}

std::optional<std::string> takt::verify(const OverlapProblem &problem,
                                        const OverlapSolution &solution) {
  const std::vector<OverlapAction> &actions = problem.actions;
  if (solution.start.size() != actions.size() ||
      solution.lane.size() != actions.size())
    return fmt::format("{} starts and {} lanes for {} actions",
                       solution.start.size(), solution.lane.size(),
                       actions.size());
  auto end = [&](int32_t i) { return solution.start[i] + actions[i].time; };
  Nanos makespan = 0;
  int32_t lastCompute = -1;
  for (size_t i = 0; i < actions.size(); ++i) {
    const OverlapAction &a = actions[i];
    if (solution.start[i] < a.release)
      return fmt::format("'{}' starts at {} ns, before its release at {} ns",
                         a.name, solution.start[i], a.release);
    std::vector<int32_t> after = a.after;
    if (a.isCompute && lastCompute >= 0)
      after.push_back(lastCompute);
    for (int32_t before : after)
      if (solution.start[i] < end(before))
        return fmt::format("'{}' starts at {} ns, '{}' ends at {} ns", a.name,
                           solution.start[i], actions[before].name,
                           end(before));
    if (a.isCompute)
      lastCompute = int32_t(i);
    int32_t lanes = a.isCompute ? 0 : problem.lanes;
    if (solution.lane[i] < (a.isCompute ? -1 : 0) || solution.lane[i] >= lanes)
      return fmt::format("'{}' is on lane {} of {}", a.name, solution.lane[i],
                         problem.lanes);
    makespan = std::max(makespan, end(int32_t(i)) + a.tail);
  }
  for (const std::vector<int32_t> &lane : laneOrder(problem, solution))
    for (size_t k = 1; k < lane.size(); ++k)
      if (solution.start[lane[k]] < end(lane[k - 1]))
        return fmt::format("'{}' starts at {} ns while '{}' has its lane until "
                           "{} ns",
                           actions[lane[k]].name, solution.start[lane[k]],
                           actions[lane[k - 1]].name, end(lane[k - 1]));
  if (solution.makespan != makespan)
    return fmt::format("the makespan is {} ns, not {} ns", makespan,
                       solution.makespan);
  if (solution.bound > makespan)
    return fmt::format("the bound of {} ns lies above the makespan of {} ns",
                       solution.bound, makespan);
  return std::nullopt;
}
