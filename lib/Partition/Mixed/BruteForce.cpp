//===- BruteForce.cpp - every assignment to unequal devices ---------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// The oracle of the solver's tests. Stages are laid from the start of the chain
// and of every pool, behind any number of idle devices of a node, and judged by
// the definitions alone.
//
//===----------------------------------------------------------------------===//
#include "takt/Partition/Mixed.h"

#include <algorithm>

namespace takt {

namespace {

class Enumeration {
public:
  explicit Enumeration(const MixedProblem &problem)
      : problem(problem), chain(problem.chain), taken(problem.pools.size()) {}

  std::optional<MixedPartition> run() {
    extend(0);
    return best;
  }

private:
  void extend(int64_t begin) {
    const int64_t segments = int64_t(chain.segments.size());
    if (begin == segments) {
      judge();
      return;
    }
    for (int64_t end = begin + 1; end <= segments; ++end) {
      if (end < segments && !mayEnd(end))
        continue;
      for (size_t o = 0; o < chain.replicaOptions.size(); ++o) {
        if (chain.replicas && chain.replicaOptions[o] != *chain.replicas)
          continue;
        for (size_t k = 0; k < problem.pools.size(); ++k)
          place(begin, end, int64_t(o), int32_t(k));
      }
    }
  }

  void place(int64_t begin, int64_t end, int64_t option, int32_t pool) {
    const DevicePool &own = problem.pools[pool];
    const int64_t before = taken[pool];
    for (int64_t idle = 0; idle < own.devicesPerNode; ++idle) {
      const int64_t first = before + idle;
      if (first + chain.replicaOptions[option] > own.devices)
        break;
      MixedStage stage;
      stage.begin = begin;
      stage.end = end;
      stage.option = option;
      stage.pool = pool;
      stage.firstDevice = first;
      current.stages.push_back(stage);
      taken[pool] = first + chain.replicaOptions[option];
      extend(end);
      taken[pool] = before;
      current.stages.pop_back();
    }
  }

  bool mayEnd(int64_t end) const {
    if (chain.cuts)
      return std::count(chain.cuts->begin(), chain.cuts->end(), end) > 0;
    return chain.segments[end - 1].mayCutAfter;
  }

  void judge() {
    const int64_t stages = int64_t(current.stages.size());
    if ((chain.cuts && stages != int64_t(chain.cuts->size()) + 1) ||
        (chain.stages > 0 && stages != chain.stages) ||
        (chain.maxStages > 0 && stages > chain.maxStages))
      return;
    MixedPartition found = current;
    evaluate(problem, found);
    found.bound = 0;
    if (verify(problem, found))
      return;
    const bool byPrice = problem.objective == StageObjective::Price;
    if (best &&
        (byPrice ? found.price() >= best->price() : found.time >= best->time))
      return;
    best = std::move(found);
    best->bound = best->time;
    best->method = "brute force";
  }

  const MixedProblem &problem;
  const PartitionProblem &chain;
  MixedPartition current;
  std::vector<int64_t> taken; ///< from the start of each pool
  std::optional<MixedPartition> best;
};

} // namespace

MixedResult bruteForceMixed(const MixedProblem &problem) {
  MixedResult result;
  if (auto fault = problem.check()) {
    result.infeasible.reason = *fault;
    return result;
  }
  result.partition = Enumeration(problem).run();
  if (!result.partition)
    result.infeasible.reason = "no assignment keeps all limits";
  return result;
}

} // namespace takt
