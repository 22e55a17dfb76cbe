//===- Overlap.h - communication against compute -----------------*- C++
//-*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// When a rank's communication runs beside its compute, on which lane and in
// what order. Compute actions run one after another in their order;
// communication may take any lane, one at a time on each:
//
//   compute   B7.0 ─── B7.1 ────── B7.2 ──            UPDATE
//   lane 0          REDUCE0 ─────  REDUCE1 ── REDUCE2 ──
//
// Without preemption this is a parallel machine problem with heads and tails,
// NP-hard for one lane already (Lenstra, Rinnooy Kan and Brucker 1977). An
// answer is found by list scheduling and bounded by paths and by the load of
// the lanes; where the two differ, Z3 improves it or proves it, up to 100
// actions.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "takt/Solver/Solver.h"

#include "takt-rt/core/plan.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace takt {

using rt::Bytes;
using rt::Nanos;

struct OverlapAction {
  std::string name;
  Nanos time = 0;
  bool isCompute = false;     ///< else communication
  std::vector<int32_t> after; ///< earlier actions that must have ended
  Nanos release = 0;          ///< does not start before
  Nanos tail = 0;             ///< passes after its end before the step ends
};

/// Compute actions run in the order in which they stand.
struct OverlapProblem {
  int32_t lanes = 1; ///< of communication: 1 or 2
  std::vector<OverlapAction> actions;
  std::optional<std::string> check() const;
};

struct OverlapSolution {
  std::vector<Nanos> start;  ///< by action
  std::vector<int32_t> lane; ///< by action; -1: compute
  Nanos makespan = 0;        ///< largest start + time + tail
  Nanos bound = 0;           ///< proven: no order does better
  std::string method;        ///< "list scheduling" or "Z3"
  int64_t work = 0;          ///< of Z3, in the solver's units
  solver::Failure failure;   ///< of Z3; the rest is valid all the same

  bool proven() const { return makespan == bound; }
  double gap() const {
    return bound > 0 ? double(makespan - bound) / double(bound) : 0;
  }
};

struct OverlapLimits {
  int64_t actions = 100;        ///< beyond, Z3 is not asked
  int64_t workLimit = 20000000; ///< of Z3, about 2 CPU seconds
  std::string dumpFolder;       ///< receives the questions; empty: none
};

/// Communication starts as soon as it can; among what is ready at once, what
/// has most still to follow goes first (`ByRemaining`) or what was ready first.
enum class ListRule : uint8_t { ByRemaining, ByReady };
OverlapSolution listSchedule(const OverlapProblem &problem, ListRule rule);

/// Earliest starts when communication follows the given order on each lane;
/// nothing if the order closes a circle. All communication stands in it once.
std::optional<OverlapSolution>
inOrder(const OverlapProblem &problem,
        const std::vector<std::vector<int32_t>> &lanes);

/// The longest path, and for every set of actions that neither can start early
/// nor end late: earliest start + work over lanes + least tail (Carlier 1982).
Nanos overlapBound(const OverlapProblem &problem);

/// The better list schedule, improved or proven by Z3 where it is not at the
/// bound already. The problem must pass `check()`.
OverlapSolution solveOverlap(const OverlapProblem &problem,
                             const OverlapLimits &limits = {});

/// Whether a solution keeps order, lanes and releases and states its makespan
/// and a bound that is not above it; names the first action that does not.
std::optional<std::string> verify(const OverlapProblem &problem,
                                  const OverlapSolution &solution);

/// Communication on each lane in the order of its start.
std::vector<std::vector<int32_t>> laneOrder(const OverlapProblem &problem,
                                            const OverlapSolution &solution);

} // namespace takt
