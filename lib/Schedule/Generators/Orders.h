//===- Orders.h - orders of F and I, and the best of several ----*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// A family's rule says in which order a rank runs its forwards and input
// gradients; weight gradients go where the clock leaves room for them. Where a
// rule leaves something open, several orders are tried and the best is taken.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "Board.h"

namespace takt {

using Orders = std::vector<std::vector<Action>>; ///< by rank

/// When one micro-batch passes every stage, from 0; those behind it come at
/// equal intervals.
struct Pattern {
  std::vector<double> forward, inputGrad; ///< by stage
  double interval = 1;
};

/// The pass at the stages' own pace.
Pattern fastestPattern(const PipelineProblem &problem,
                       const std::vector<int32_t> &rankOfStage);

/// F and I of all micro-batches in the order of a pattern's times. Times grow
/// from stage to stage, so the lists run.
Orders ordersOf(const PipelineProblem &problem,
                const std::vector<int32_t> &rankOfStage,
                const Pattern &pattern);

/// The problem, with room for so many whole micro-batches on every rank if it
/// states no limit.
PipelineProblem limitedTo(double microBatches, const PipelineProblem &problem,
                          const std::vector<int32_t> &rankOfStage);

/// The order with the least makespan, then with the shortest longest span.
class BestOrder {
public:
  /// `problem` states its limits.
  BestOrder(PipelineProblem problem, std::vector<int32_t> rankOfStage)
      : problem(std::move(problem)), rankOfStage(std::move(rankOfStage)) {}

  const PipelineProblem problem;
  const std::vector<int32_t> rankOfStage;

  /// Lays weight gradients into an order by every rule.
  void tryOrders(const Orders &orders);
  /// Takes lists as they are, if they run and fit.
  void tryLists(const Orders &lists);
  /// Patterns of ever longer intervals, until one micro-batch has left before
  /// the next one enters; that one always fits.
  void tryIntervals(Pattern pattern);

  bool found() const { return !best.empty(); }
  /// Too large to try everything.
  bool isLarge() const;
  /// Moves forwards and input gradients within their lists as long as that
  /// helps, within a fixed amount of work.
  void improve();
  Orders takeLists() { return std::move(best); }

private:
  bool offer(Board &&board);
  bool tryOrders(const Orders &orders, const WeightRule &its);

  std::pair<double, double> cost; ///< makespan, longest span
  WeightRule rule;                ///< the last one that helped
  Orders best;
};

/// Lists without their weight gradients.
Orders withoutWeights(const Orders &lists);

} // namespace takt
