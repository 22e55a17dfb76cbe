//===- Placed.h - stages whose ranks are given -----------------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// The schedule says which stages share a rank; where the cuts lie is free. The
// time that counts is the sum over the stages of a rank, so the best cuts are
// no longer a chain of independent choices: a state of a dynamic program would
// be all those sums. A local search gives an answer, a branch and bound
// improves or proves it within its work, and a bound is always given.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "takt/Partition/Problem.h"

namespace takt::partition {

/// Bytes of one stage on its device, its part of what several share.
struct StageMemory {
  Bytes held = 0;      ///< adds up over the stages of a rank
  Bytes workspace = 0; ///< of one call: ranks need the largest
};
StageMemory placedMemory(const PartitionProblem &problem, int64_t option,
                         int64_t stage, int64_t begin, int64_t end);

/// Both transfers over the boundary behind a stage that ends at segment `end`,
/// with equal replicas at both sides; 0 if the next stage has the same rank.
Nanos boundaryTime(const PartitionProblem &problem, int64_t option,
                   int64_t stage, int64_t end);

/// All-reduce and update of a stage.
Nanos reduceTime(const PartitionProblem &problem, int64_t option, int64_t stage,
                 int64_t begin, int64_t end);

/// `evaluate` for a problem with a placement.
void evaluatePlaced(const PartitionProblem &problem, Partition &partition);

/// For a problem with a placement that passes `check()`. All ranks have the
/// same number of replicas; answer and bound are over all assignments of that
/// kind.
PartitionResult solvePlaced(const PartitionProblem &problem, int64_t workLimit);

} // namespace takt::partition
