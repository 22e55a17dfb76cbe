//===- Chains.h - schedules of chains of phases -----------------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Schedules in which a stage is not on one rank, or a micro-batch passes it
// more than once each way or not at all. Every micro-batch has a path of its
// own: visits of steps, each on a rank, one after the other. Forward and
// backward of a pipeline are a path that goes up and comes back.
//
// Time model: a rank runs its list in order, one visit at a time; a visit
// starts when its rank is free and the one before it on its path has ended,
// plus `message` times the hop if that was on another rank.
//
// Memory model: a visit adds `held` when it starts and takes `freed` away when
// it ends, on its rank.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace takt {

/// A phase of a stage, such as its forward.
struct ChainStep {
  std::string name;
  /// Ranks that have its parameters, the only ones that can run it; empty: it
  /// has none and runs anywhere.
  std::vector<int32_t> homes = {};
};

struct ChainVisit {
  int32_t step = 0;
  int32_t rank = 0;
  double time = 1;
  double held = 0, freed = 0;
  double message = 1; ///< hops that its input takes from another rank
  /// An earlier visit of the path whose saved values it reads, -1: none. Both
  /// have to be on one rank.
  int32_t with = -1;
};

struct ChainProblem {
  int32_t ranks = 1;
  std::vector<ChainStep> steps;
  std::vector<std::vector<ChainVisit>> paths = {}; ///< by micro-batch
  /// By rank from and rank to; empty: 0.
  std::vector<std::vector<double>> hop = {};
  /// Most that each rank may hold; empty: no limit.
  std::vector<double> mostHeld = {};

  double hopBetween(int32_t from, int32_t to) const {
    return hop.empty() || from == to ? 0 : hop[from][to];
  }
  std::optional<std::string> check() const;
};

/// The same hop between any two ranks.
std::vector<std::vector<double>> equalHops(int32_t ranks, double hop);

struct ChainAction {
  int32_t microBatch = 0;
  int32_t visit = 0; ///< place in the path
  bool operator==(const ChainAction &o) const {
    return microBatch == o.microBatch && visit == o.visit;
  }
};

/// List r is of rank r.
struct ChainSchedule {
  std::vector<std::vector<ChainAction>> ranks;
};

/// Step and micro-batch: "FE1.0".
std::string toText(const ChainProblem &problem, const ChainAction &action);

/// Every visit exactly once and on its rank, no limit of memory passed, and the
/// lists can run to their ends; names the action that breaks the rule, and the
/// circle of waits. The problem passed its check.
std::optional<std::string> verify(const ChainProblem &problem,
                                  const ChainSchedule &schedule);

struct ChainTiming {
  std::vector<std::vector<double>> start, end; ///< by rank, of each action
  double makespan = 0;
  std::vector<double> busy, peakHeld; ///< by rank
};

/// Nothing if the lists cannot run to their ends. Actions are of the problem.
std::optional<ChainTiming> timeChains(const ChainProblem &problem,
                                      const ChainSchedule &schedule);

/// A makespan that no order goes below: for some rank, the first arrival, its
/// work, and the least that is left of a path behind its last visit there; or
/// a path by itself.
double boundChains(const ChainProblem &problem);

/// How `listChains` chooses between visits that can start at the same time.
struct ChainOrder {
  /// By micro-batch and visit; the smaller goes first. Empty: all equal. Among
  /// equals the earlier micro-batch.
  std::vector<std::vector<double>> rank = {};
  /// Micro-batches that have begun and not ended; 0: no limit.
  int32_t mostInFlight = 0;
};

/// Whatever can start first is next, within the limits of memory. Nothing if
/// the limits leave nothing that can run.
std::optional<ChainSchedule> listChains(const ChainProblem &problem,
                                        const ChainOrder &order = {});

/// A steady state: starts of the visits of a path such that micro-batches which
/// begin a period apart never have two visits of a rank at the same time.
struct ChainRepeat {
  double period = 1;
  /// From the first start to the last end; at most n periods is at most n
  /// micro-batches in flight.
  double mostSpan = 1;
  /// Waits are tried in such steps; 0: only until another visit begins or ends.
  double grid = 0;
  int64_t mostTries = 20000;
};
/// Nothing if there is none, or none was found in so many tries; then `tried`
/// is `mostTries`. Ranks and hops are of the problem.
std::optional<std::vector<double>>
repeatPath(const ChainProblem &problem, const std::vector<ChainVisit> &path,
           const ChainRepeat &repeat, int64_t *tried = nullptr);

} // namespace takt
