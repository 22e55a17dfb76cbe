//===- BreadthFirst.cpp - all micro-batches through a chunk ---------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Lamy-Poirier 2022, "Breadth-First Pipeline Parallelism", arXiv 2211.05953.
//
// Two ranks of two stages, three micro-batches, backward as long as forward:
//
//   rank 0  0F0 0F1 0F2 2F0 2F1 2F2 .   .   2B0 2B1 2B2 0B0 0B1 0B2
//   rank 1  .   1F0 1F1 1F2 3F0 3F1 3F2 3B0 3B1 3B2 1B0 1B1 1B2 .
//
// The weights of a stage are needed in one piece forward and one backward, and
// its gradients are whole as soon as its last backward is over: the order for
// sharded weights and early reductions. A rank holds all it computes.
//
//===----------------------------------------------------------------------===//

#include "Families.h"

namespace takt {

Schedule generateBreadthFirst(const PipelineProblem &problem) {
  const int32_t p = problem.ranks;
  Schedule schedule;
  schedule.roles.resize(p);
  for (int32_t rank = 0; rank < p; ++rank) {
    std::vector<Action> &list = schedule.roles[rank];
    for (int32_t chunk = 0; chunk < problem.chunks; ++chunk)
      for (int32_t m = 0; m < problem.microBatches; ++m)
        list.push_back({chunk * p + rank, ActionKind::F, m});
    for (int32_t chunk = problem.chunks; chunk-- > 0;)
      for (int32_t m = 0; m < problem.microBatches; ++m)
        list.push_back({chunk * p + rank, ActionKind::B, m});
  }
  return schedule;
}

} // namespace takt
