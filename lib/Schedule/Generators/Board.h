//===- Board.h - a pipeline while its lists are made ------------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// List scheduling in the time and memory model of Pipeline.h: actions are put
// at the end of their rank's list one after the other, each as early as it can
// run, and the board says what that costs.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "takt/Schedule/Pipeline.h"

#include <algorithm>

namespace takt {

/// Limits are sums of fractions, and so are times: what exceeds one by rounding
/// alone fits.
inline bool fitsLimit(double value, double limit) {
  return value <= limit + 1e-9 * std::max(1.0, limit);
}

class Board {
public:
  Board(const PipelineProblem &problem, std::vector<int32_t> rankOfStage);

  const PipelineProblem &problem;
  const std::vector<int32_t> rankOfStage;

  /// Whether all inputs of an action have been put.
  bool hasInputs(const Action &action) const;
  /// When they have reached its rank. Only if it has them.
  double arrival(const Action &action) const;
  /// End of an action that has been put.
  double end(ActionKind kind, int32_t stage, int32_t microBatch) const {
    return ends[int(kind)][pass(stage, microBatch)];
  }
  double length(const Action &action) const;

  double freeAt(int32_t rank) const { return ranks[rank].freeAt; }
  /// Idle time since the rank's first action began.
  double bubble(int32_t rank) const { return ranks[rank].bubble; }
  double largestBubble() const;
  double held(int32_t rank) const { return ranks[rank].held; }
  double limit(int32_t rank) const;
  /// Room for one more forward of a stage.
  bool hasRoom(int32_t stage) const;
  /// Number of actions of a kind that a stage has behind it.
  int32_t count(ActionKind kind, int32_t stage) const {
    return counts[int(kind)][stage];
  }

  /// Weight gradients that have their input gradient and wait to be run, the
  /// oldest first.
  bool owesWeights(int32_t rank) const {
    return ranks[rank].paid < ranks[rank].owed.size();
  }
  Action oldestWeights(int32_t rank) const {
    return ranks[rank].owed[ranks[rank].paid];
  }
  /// Pays weight gradients until a forward of a stage fits; false if even all
  /// of them do not make room for it.
  bool makeRoom(int32_t stage);
  /// Pays those that are done by `until`.
  void payUntil(int32_t rank, double until);

  /// The action must have its inputs.
  void put(const Action &action);
  void payOldest(int32_t rank) { put(oldestWeights(rank)); }
  void payAll();

  double longestSpan() const;
  double makespan() const;
  std::vector<std::vector<Action>> takeLists() { return std::move(lists); }

private:
  struct Rank {
    double freeAt = 0, bubble = 0, held = 0, firstStart = 0;
    bool begun = false;
    std::vector<Action> owed; ///< weight gradients in the order of their I
    size_t paid = 0;
  };

  size_t pass(int32_t stage, int32_t microBatch) const {
    return size_t(stage) * problem.microBatches + microBatch;
  }
  double hopBetween(int32_t a, int32_t b) const {
    return rankOfStage[a] == rankOfStage[b] ? 0 : problem.hop;
  }

  std::vector<Rank> ranks;
  std::vector<double> ends[3]; ///< by kind F, I, W and pass
  std::vector<int32_t> counts[3];
  std::vector<std::vector<Action>> lists;
};

/// How weight gradients are laid between forwards and input gradients that have
/// their order already.
struct WeightRule {
  /// In a gap shorter than a weight gradient, though it delays what comes next.
  bool inShortGaps = false;
  /// The same only if the rank would otherwise lose more than any has yet.
  bool againstLargestBubble = false;
};

/// Adds W to lists of F and I; the lists of F and I that result are the given
/// ones. Nothing if they cannot run or do not fit.
std::optional<Board> layWeights(const PipelineProblem &problem,
                                const std::vector<int32_t> &rankOfStage,
                                const std::vector<std::vector<Action>> &order,
                                const WeightRule &rule);

/// Puts whole lists of F, I and W. Nothing if they cannot run or do not fit.
std::optional<Board> runLists(const PipelineProblem &problem,
                              const std::vector<int32_t> &rankOfStage,
                              const std::vector<std::vector<Action>> &lists);

} // namespace takt
