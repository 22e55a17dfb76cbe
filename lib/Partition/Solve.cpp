//===- Solve.cpp - the solver's door --------------------------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// A heuristic answer first, then the exact search that beats or proves it.
//
//===----------------------------------------------------------------------===//

#include "BoxSearch.h"
#include "Explain.h"
#include "Feasible.h"
#include "Heuristic.h"
#include "PeriodSearch.h"
#include "Placed.h"

#include <fmt/format.h>

#include <algorithm>

namespace takt {

using namespace partition;

/// An explanation that takes longer leaves ways out unsaid.
static constexpr int64_t kExplainWork = int64_t(1) << 30;

namespace {

template <typename Search>
void runSearch(const Chain &chain, WorkMeter &meter, Stages start,
               PartitionResult &result) {
  Search search(chain, meter);
  search.run(std::move(start));
  result.partition = chain.toPartition(search.stages());
  result.partition->bound = search.bound();
  result.partition->work = result.work = meter.done;
  if (search.bound() < search.objective())
    result.partition->method =
        fmt::format("heuristic ({})", search::whyEnded());
  else
    result.partition->method = chain.problem().cuts ? "given cuts" : "exact";
}

/// The number of stages is given, or does not matter to the side constraints.
PartitionResult solveOnce(const PartitionProblem &problem, int64_t workLimit,
                          bool mayExplain) {
  PartitionResult result;
  const Chain chain(problem);
  // The heuristics may take half of the work, so that bounds get the rest.
  WorkMeter meter{0, workLimit / 2, false};
  Stages start;
  if (chain.numOptions() > 0 && chain.exactStages() <= chain.maxStages())
    start = bestUniform(chain, meter);
  if (start.empty()) {
    meter.limit = workLimit;
    const Answer answer = findFeasible(chain, meter, start);
    result.work = meter.done;
    if (answer == Answer::OutOfWork) {
      result.outOfWork = true;
      result.infeasible.reason =
          "the work limit was reached before any assignment was found";
      return result;
    }
    if (answer == Answer::No) {
      WorkMeter rest{0, std::min(workLimit, kExplainWork)};
      if (mayExplain)
        result.infeasible = explain(problem, rest);
      result.work += rest.done;
      return result;
    }
  }
  meter.mayBreak = true;
  improve(chain, meter, start);
  meter.limit = workLimit;

  if (problem.continuous)
    runSearch<PeriodSearch>(chain, meter, std::move(start), result);
  else
    runSearch<BoxSearch>(chain, meter, std::move(start), result);
  return result;
}

/// Numbers of stages that have to be tried one by one: those that pins leave,
/// if they are free.
std::vector<int64_t> countsToTry(const PartitionProblem &problem) {
  if (problem.pins.empty() || problem.cuts || problem.stages != 0)
    return {problem.stages};
  int64_t least = 1;
  for (const StagePin &pin : problem.pins)
    least = std::max(least, pin.stage + 1);
  std::vector<int64_t> counts;
  const Chain chain(problem);
  for (int64_t count = least; count <= chain.maxStages(); ++count)
    counts.push_back(count);
  return counts;
}

/// What is infeasible with side constraints but not without is no matter of
/// memory or devices.
Infeasible explainAll(const PartitionProblem &problem, int64_t workLimit) {
  PartitionProblem plain = problem;
  plain.apart.clear();
  plain.pins.clear();
  WorkMeter rest{0, std::min(workLimit, kExplainWork)};
  Stages stages;
  if (findFeasible(Chain(plain), rest, stages) == Answer::Yes)
    return {"no assignment keeps all side constraints", {}};
  return explain(plain, rest);
}

} // namespace

PartitionResult solvePartition(const PartitionProblem &problem,
                               int64_t workLimit) {
  PartitionResult best;
  if (auto fault = problem.check()) {
    best.infeasible.reason = *fault;
    return best;
  }
  if (!problem.rankOfStage.empty())
    return solvePlaced(problem, workLimit);
  const bool plain = problem.apart.empty() && problem.pins.empty();
  const std::vector<int64_t> counts = countsToTry(problem);
  if (plain)
    return solveOnce(problem, workLimit, true);
  int64_t work = 0;
  Nanos bound = kNever;
  for (const int64_t count : counts) {
    PartitionProblem one = problem;
    one.stages = count;
    // Every count gets an equal share of what is left.
    const int64_t left = workLimit - work;
    PartitionResult found = solveOnce(
        one, std::max<int64_t>(1, left / (counts.back() - count + 1)), false);
    work += found.work;
    if (found.outOfWork) {
      bound = 0; // nothing is known of this number of stages
      best.outOfWork = !best.partition;
      if (best.outOfWork)
        best.infeasible = found.infeasible;
    }
    if (!found.partition)
      continue;
    best.outOfWork = false;
    bound = std::min(bound, found.partition->bound);
    if (!best.partition ||
        found.partition->objective < best.partition->objective ||
        (problem.continuous &&
         found.partition->objective == best.partition->objective &&
         latency(*found.partition) < latency(*best.partition)))
      best.partition = std::move(found.partition);
  }
  if (best.partition) {
    best.partition->work = work;
    best.partition->bound = bound;
    if (bound < best.partition->objective)
      best.partition->method =
          fmt::format("heuristic ({})", search::whyEnded());
  } else if (!best.outOfWork) {
    best.infeasible = explainAll(problem, workLimit);
  }
  best.work = work;
  return best;
}

Feasibility partitionFeasible(const PartitionProblem &problem,
                              int64_t workLimit, int64_t *spent) {
  if (problem.check())
    return Feasibility::No;
  if (!problem.rankOfStage.empty()) {
    const PartitionResult result = solvePlaced(problem, workLimit);
    return result.partition   ? Feasibility::Yes
           : result.outOfWork ? Feasibility::Unknown
                              : Feasibility::No;
  }
  WorkMeter meter{0, workLimit};
  for (const int64_t count : countsToTry(problem)) {
    PartitionProblem one = problem;
    one.stages = count;
    const Chain chain(one);
    Stages stages;
    const Answer answer = findFeasible(chain, meter, stages);
    if (spent)
      *spent = meter.done;
    switch (answer) {
    case Answer::Yes:
      return Feasibility::Yes;
    case Answer::OutOfWork:
      return Feasibility::Unknown;
    case Answer::No:
      break;
    }
  }
  return Feasibility::No;
}

} // namespace takt
