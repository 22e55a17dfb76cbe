//===- Solve.cpp - the door of assignment to unequal devices --------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// A narrow search for a good answer, then the whole one that beats or proves
// it.
//
//===----------------------------------------------------------------------===//
#include "Search.h"

#include <algorithm>
#include <cmath>

namespace takt {

using namespace mixed;

/// Labels of a boundary that the first search extends.
static constexpr size_t kNarrow = 48;
/// An explanation that takes longer leaves ways out unsaid.
static constexpr int64_t kExplainWork = int64_t(1) << 26;

namespace {

/// An answer for one number of stages, or any.
struct Found {
  std::optional<MixedPartition> partition;
  double cost = HUGE_VAL, bound = HUGE_VAL; ///< in the unit of the objective
  bool outOfWork = false;
  int64_t work = 0;
};

Found solveOnce(const MixedProblem &problem, int64_t workLimit) {
  const MixedBounds bounds(problem);
  MixedSearch search(problem, bounds, std::max<int64_t>(1, workLimit / 4));
  search.run(kNarrow);
  Found found;
  if (!search.best()) {
    // Tight memory: whatever fits is a start, and often nothing does.
    const MixedProblem plain = timeless(problem);
    const MixedBounds nothing(plain);
    MixedSearch any(plain, nothing, std::max<int64_t>(1, workLimit / 4));
    any.run(0);
    workLimit = std::max<int64_t>(1, workLimit - any.work());
    found.work = any.work();
    if (!any.best() && !any.exhausted())
      return found;
    if (any.best()) {
      MixedPartition start = *any.best();
      evaluate(problem, start);
      search.offer(std::move(start));
    }
  }
  search.setLimit(std::max(workLimit, search.work() + 1));
  search.run(0);
  found.partition = search.best();
  found.bound = search.boundCost();
  found.outOfWork = search.exhausted();
  found.work += search.work();
  if (found.partition)
    found.cost = search.cost(found.partition->rate, found.partition->time);
  return found;
}

/// Pins speak of a stage's number, which a search from the end knows only where
/// the number of stages is given.
std::vector<int64_t> countsToTry(const PartitionProblem &chain) {
  if (chain.cuts)
    return {int64_t(chain.cuts->size()) + 1};
  if (chain.stages > 0 || chain.pins.empty())
    return {chain.stages};
  int64_t least = 1, most = int64_t(chain.segments.size());
  for (const StagePin &pin : chain.pins)
    least = std::max(least, pin.stage + 1);
  if (chain.maxStages > 0)
    most = std::min(most, chain.maxStages);
  std::vector<int64_t> counts;
  for (int64_t count = least; count <= most; ++count)
    counts.push_back(count);
  return counts;
}

} // namespace

MixedResult solveMixed(const MixedProblem &problem, int64_t workLimit) {
  MixedResult result;
  if (auto fault = problem.check()) {
    result.infeasible.reason = *fault;
    return result;
  }
  const std::vector<int64_t> counts = countsToTry(problem.chain);
  Found best;
  int64_t work = 0;
  for (size_t c = 0; c < counts.size(); ++c) {
    MixedProblem one = problem;
    one.chain.stages = counts[c];
    // Every count gets an equal share of what is left.
    const int64_t share = (workLimit - work) / int64_t(counts.size() - c);
    Found found = solveOnce(one, std::max<int64_t>(1, share));
    work += found.work;
    const double bound = std::min(best.bound, found.bound);
    const bool outOfWork = best.outOfWork || found.outOfWork;
    if (found.cost < best.cost)
      best = std::move(found);
    best.bound = bound;
    best.outOfWork = outOfWork;
  }
  if (!best.partition) {
    result.outOfWork = best.outOfWork;
    if (best.outOfWork)
      result.infeasible.reason =
          "the work limit was reached before any assignment was found";
    else
      result.infeasible =
          explainMixed(problem, std::min(workLimit, kExplainWork));
    return result;
  }
  MixedPartition &partition = *best.partition;
  partition.work = work;
  partition.bound = partition.time;
  partition.method = "exact";
  if (best.bound < best.cost) {
    const double rate = problem.objective == StageObjective::Price
                            ? double(std::max<int64_t>(1, partition.rate))
                            : 1;
    partition.bound = std::min(partition.time, Nanos(best.bound / rate));
    partition.method = "heuristic (work limit)";
  }
  result.partition = std::move(best.partition);
  return result;
}

} // namespace takt
