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

#include <algorithm>

namespace takt {

using namespace partition;

/// An explanation that takes longer leaves ways out unsaid.
static constexpr int64_t kExplainWork = int64_t(1) << 30;

PartitionResult solvePartition(const PartitionProblem &problem,
                               int64_t workLimit) {
  PartitionResult result;
  if (auto fault = problem.check()) {
    result.infeasible.reason = *fault;
    return result;
  }
  const Chain chain(problem);
  // The heuristics may take half of the work, so that bounds get the rest.
  WorkMeter meter{0, workLimit / 2};
  Stages start;
  if (chain.numOptions() > 0 && chain.exactStages() <= chain.maxStages())
    start = bestUniform(chain, meter);
  if (start.empty()) {
    meter.limit = workLimit;
    const Answer answer = findFeasible(chain, meter, start);
    if (answer == Answer::OutOfWork) {
      result.outOfWork = true;
      result.infeasible.reason =
          "the work limit was reached before any assignment was found";
      return result;
    }
    if (answer == Answer::No) {
      WorkMeter rest{0, std::min(workLimit, kExplainWork)};
      result.infeasible = explain(problem, rest);
      return result;
    }
  }
  improve(chain, meter, start);
  meter.limit = workLimit;

  BoxSearch search(chain, meter);
  search.run(std::move(start));
  result.partition = chain.toPartition(search.stages());
  result.partition->bound = search.bound();
  result.partition->work = meter.done;
  if (search.bound() < search.objective())
    result.partition->method = "heuristic (work limit)";
  else
    result.partition->method = problem.cuts ? "given cuts" : "exact";
  return result;
}

} // namespace takt
