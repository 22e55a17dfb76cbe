//===- ZeroBubbleV.cpp - there and back in half the stages ----------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// ZB-V of Qi et al. 2024, "Zero Bubble Pipeline Parallelism", arXiv 2401.10241,
// section 6: 2p stages, rank r has stages r and 2p - 1 - r, so that the
// backward starts on the rank where the forward started.
//
// Two ranks, three micro-batches, F = I = W; f, i and w are of the second
// stage:
//
//   rank 0  F0 F1 F2 f0 i0 w0 f1 i1 w1 I0 W0 f2 i2 w2 I1 W1 I2 W2
//   rank 1  .  F0 f0 F1 f1 i0 w0 F2 I0 W0 f2 i1 w1 I1 i2 I2 W1 w2 W2
//
// By hand, rank r warms up with 2 (p - r) - 1 forwards of its first stage, then
// r of each, then p - r passes forward and back of its second; then both stages
// take turns, and at the end input gradients go before weights. The automatic
// rule reaches the same where times are equal and adapts where they are not:
// backwards of the second stage first, a forward after each backward, weight
// gradients in waits and where room is needed. Both are tried.
//
// All ranks hold p micro-batches; with F = I = W and m of at least 2p - 1 the
// only bubble is the first forward's way down.
//
//===----------------------------------------------------------------------===//

#include "Families.h"
#include "Orders.h"

#include <algorithm>
#include <limits>

namespace takt {

namespace {

/// The order by hand, made for at least 2p - 1 micro-batches; those that are
/// not there are left out.
Orders orderByHand(const PipelineProblem &problem) {
  const int32_t p = problem.ranks, m = problem.microBatches;
  const int32_t count = std::max(m, 2 * p - 1);
  Orders lists(p);
  for (int32_t r = 0; r < p; ++r) {
    const int32_t low = r, high = 2 * p - 1 - r;
    std::vector<Action> &list = lists[r];
    int32_t made[3][2] = {}; // by kind and stage
    auto add = [&](ActionKind kind, int32_t stage) {
      int32_t &next = made[int(kind)][stage == high];
      if (next < m)
        list.push_back({stage, kind, next});
      ++next;
    };
    auto addBackward = [&](int32_t stage) {
      add(ActionKind::I, stage);
      add(ActionKind::W, stage);
    };
    for (int32_t i = 0; i < 2 * (p - r) - 1; ++i)
      add(ActionKind::F, low);
    for (int32_t i = 0; i < r; ++i) {
      add(ActionKind::F, high);
      add(ActionKind::F, low);
    }
    for (int32_t i = 0; i < p - r; ++i) {
      add(ActionKind::F, high);
      addBackward(high);
    }
    while (made[0][1] < count) {
      if (made[0][0] < count)
        add(ActionKind::F, low);
      addBackward(low);
      add(ActionKind::F, high);
      addBackward(high);
    }
    for (int32_t i = 0; i < r; ++i) {
      add(ActionKind::I, low);
      add(ActionKind::I, high);
    }
    for (int32_t i = 0; i < p - r; ++i)
      addBackward(low);
    for (const int32_t stage : {high, low})
      while (made[int(ActionKind::W)][stage == high] < count)
        add(ActionKind::W, stage);
  }
  return lists;
}

/// Which waits that are too short for a weight gradient are filled all the
/// same.
struct Fills {
  bool beforeForward, beforeHighBackward;
};

class AutomaticRule {
public:
  /// `approved`: idle times of the ranks that were found before; a rank may
  /// idle as much less than the worst as it did then.
  AutomaticRule(const BestOrder &of, const Fills &fills,
                const std::vector<double> &approved)
      : board(of.problem, of.rankOfStage), p(of.problem.ranks),
        m(of.problem.microBatches), fills(fills), approved(approved) {}

  /// Nothing where an action lacks its input or its room.
  std::optional<Board> run() {
    warmUp();
    evenOut();
    for (int32_t round = 0; round < 2 * m && runs; ++round) {
      putBackwards();
      putForwards();
    }
    if (!runs)
      return std::nullopt;
    board.payAll();
    return std::move(board);
  }

private:
  int32_t low(int32_t r) const { return r; }
  int32_t high(int32_t r) const { return 2 * p - 1 - r; }
  int32_t forwards(int32_t stage) const {
    return board.count(ActionKind::F, stage);
  }
  int32_t backwards(int32_t stage) const {
    return board.count(ActionKind::I, stage);
  }
  Action next(ActionKind kind, int32_t stage) const {
    return {stage, kind, board.count(kind, stage)};
  }

  void put(ActionKind kind, int32_t stage) {
    const Action action = next(kind, stage);
    runs = runs && action.microBatch < m && board.hasInputs(action) &&
           (kind != ActionKind::F || board.hasRoom(stage));
    if (runs)
      board.put(action);
  }

  /// The first micro-batch goes all the way; the ranks it passes on its way
  /// back fill the wait for it with first forwards, down to the rank that
  /// waits.
  void warmUp() {
    for (int32_t r = 0; r < p; ++r)
      put(ActionKind::F, low(r));
    put(ActionKind::F, high(p - 1));
    for (int32_t r = p - 2; r >= 0 && runs; --r) {
      const double due =
          board.end(ActionKind::F, high(r) - 1, 0) + board.problem.hop;
      // Ranks above take another r forwards before this one gives back.
      auto fits = [&] {
        return fitsLimit(board.held(r) +
                             board.problem.at(low(r)).held * (2 + 2 * r),
                         board.limit(r));
      };
      while (runs && fits() && forwards(low(r)) < m &&
             fitsLimit(board.freeAt(r) + board.problem.at(low(r)).forward, due))
        for (int32_t above = 0; above <= r; ++above)
          put(ActionKind::F, low(above));
      put(ActionKind::F, high(r));
    }
  }

  /// Lower ranks catch up with the number of forwards of those above, of the
  /// first and the second stage by turns.
  void evenOut() {
    bool first = true;
    for (int32_t r = 1; r < p; ++r)
      while (runs && isBehind(r)) {
        for (int32_t rank = p - 1; rank >= r; --rank) {
          const int32_t stage = first ? low(rank) : high(rank);
          if (forwards(stage) < m)
            put(ActionKind::F, stage);
        }
        first = !first;
      }
  }
  bool isBehind(int32_t r) const {
    const int32_t above = forwards(high(r - 1));
    return forwards(low(r)) + forwards(high(r)) <
               forwards(low(r - 1)) + above ||
           (forwards(high(r)) <= above && above < m);
  }

  /// One on every rank: first stages from below up, then second ones down, each
  /// in the direction its gradients flow.
  void putBackwards() {
    std::vector<int32_t> stages;
    for (int32_t r = p - 1; r >= 0; --r)
      if (!takesHigh(r))
        stages.push_back(low(r));
    for (int32_t r = 0; r < p; ++r)
      if (takesHigh(r))
        stages.push_back(high(r));
    for (const int32_t stage : stages)
      putBehindWait(ActionKind::I, stage,
                    stage < p || fills.beforeHighBackward);
  }
  bool takesHigh(int32_t r) const {
    if (backwards(low(r)) >= backwards(high(r)))
      return true;
    const bool lowCan = r == p - 1 || backwards(low(r + 1)) > backwards(low(r));
    return !lowCan && backwards(high(r)) < m;
  }

  void putForwards() {
    for (int32_t r = 0; r < p && runs; ++r) {
      const int32_t stage = chooseForward(r);
      if (stage < 0)
        continue;
      runs = board.makeRoom(stage);
      putBehindWait(ActionKind::F, stage, fills.beforeForward);
    }
  }
  /// The second stage as soon as it can; -1: none this round.
  int32_t chooseForward(int32_t r) const {
    const int32_t done = forwards(high(r));
    if (done >= m)
      return -1;
    if (done >= forwards(low(r)))
      return low(r);
    if (r == p - 1 || forwards(high(r + 1)) > done)
      return high(r);
    const bool lowCan = forwards(low(r)) < m &&
                        (r == 0 || forwards(low(r - 1)) > forwards(low(r)));
    return lowCan ? low(r) : -1;
  }

  void putBehindWait(ActionKind kind, int32_t stage, bool fillsShort) {
    const Action action = next(kind, stage);
    runs = runs && action.microBatch < m && board.hasInputs(action);
    if (!runs)
      return;
    const int32_t r = board.rankOfStage[stage];
    const double arrival = board.arrival(action);
    board.payUntil(r, arrival);
    const double gap = arrival - board.freeAt(r);
    if (board.owesWeights(r) && fillsShort && gap > 0 &&
        gap > largestBubble(r) - board.bubble(r))
      board.payOldest(r);
    put(kind, stage);
  }
  double largestBubble(int32_t r) const {
    double allowed = 0;
    if (!approved.empty())
      allowed =
          *std::max_element(approved.begin(), approved.end()) - approved[r];
    return std::max(board.largestBubble(), allowed);
  }

  Board board;
  const int32_t p, m;
  const Fills fills;
  const std::vector<double> &approved;
  bool runs = true;
};

/// Again with the idle times it found, as long as the worst becomes less.
void tryRule(BestOrder &best, const Fills &fills) {
  std::vector<double> approved;
  double worst = std::numeric_limits<double>::infinity();
  while (std::optional<Board> board =
             AutomaticRule(best, fills, approved).run()) {
    const double bubble = board->largestBubble();
    std::vector<double> found;
    for (int32_t r = 0; r < best.problem.ranks; ++r)
      found.push_back(board->bubble(r));
    const Orders lists = board->takeLists();
    best.tryLists(lists);
    best.tryOrders(withoutWeights(lists));
    if (!(bubble < worst))
      return;
    worst = bubble;
    approved = std::move(found);
  }
}

} // namespace

Schedule generateZeroBubbleV(const PipelineProblem &problem) {
  const std::vector<int32_t> ranks =
      placeStages(Placement::VShape, problem.ranks, problem.chunks);
  BestOrder best(limitedTo(problem.ranks, problem, ranks), ranks);
  const Orders byHand = orderByHand(problem);
  best.tryLists(byHand);
  best.tryOrders(withoutWeights(byHand));
  for (const Fills fills : {Fills{true, true}, Fills{true, false},
                            Fills{false, true}, Fills{false, false}})
    tryRule(best, fills);
  if (!best.found())
    best.tryIntervals(fastestPattern(problem, best.rankOfStage));
  best.improve();
  return {"zb-v", best.takeLists()};
}

} // namespace takt
