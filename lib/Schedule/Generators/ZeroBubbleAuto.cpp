//===- ZeroBubbleAuto.cpp - backwards in two parts, laid by a rule --------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// The automatic schedule of Qi et al. 2024, "Zero Bubble Pipeline Parallelism",
// arXiv 2401.10241, section 3.1: ZB-1p with room for p micro-batches a rank,
// ZB-2p with room for 2p, which is the limit where none is given.
//
// Three ranks, six micro-batches, F = I = W, room for 6:
//
//   rank 0  F0 F1 F2 F3 F4 I0 F5 W0 I1 W1 I2 W2 I3 W3 I4 W4 I5 W5
//   rank 1  .  F0 F1 F2 I0 F3 I1 F4 I2 F5 I3 W0 I4 W1 I5 W2 W3 W4 W5
//   rank 2  .  .  F0 I0 F1 I1 F2 I2 F3 I3 F4 I4 F5 I5 W0 W1 W2 W3 W4 W5
//
// A rank takes as many forwards before its first backward as it can hold and as
// keep it busy. Then come rounds of one forward and one backward on every rank.
// A weight gradient fills the wait for either, makes room for a forward, or is
// left for the end. Three questions the rule leaves open are answered both ways
// and the order with the shortest of the longest spans is taken: may a forward
// more be squeezed in before the first backward though that comes later; may a
// rank pass a round without a forward while the next is two behind; is a wait
// that is too short for a weight gradient filled though the rank has not idled
// longest.
//
// Unequal stages and limits need nothing more: every rank asks its own.
//
//===----------------------------------------------------------------------===//

#include "Board.h"
#include "Families.h"
#include "Orders.h"

namespace takt {

namespace {

struct Answers {
  bool squeezes, passes, fills;
};

class AutomaticRule {
public:
  AutomaticRule(const PipelineProblem &problem, const Answers &answers)
      : board(problem, placeStages(Placement::Linear, problem.ranks, 1)),
        ranks(problem.ranks), total(problem.microBatches), answers(answers) {}

  Board run() {
    warmUp();
    for (int32_t round = 1; round < total; ++round) {
      const std::vector<bool> forward = chooseForwards();
      for (int32_t r = 0; r < ranks; ++r)
        if (forward[r])
          putForward(r);
      for (int32_t r = ranks - 1; r >= 0; --r)
        putBackward(r);
    }
    board.payAll();
    return std::move(board);
  }

private:
  Action next(ActionKind kind, int32_t r) const {
    return {r, kind, board.count(kind, r)};
  }
  double length(ActionKind kind, int32_t r) const {
    return board.length({r, kind, 0});
  }

  void warmUp() {
    for (int32_t r = 0; r < ranks; ++r)
      board.put(next(ActionKind::F, r));
    std::vector<int32_t> ahead(ranks, 0);
    double gradient = 0; // when the first one leaves the rank below
    for (int32_t r = ranks - 1; r >= 0; --r) {
      double busyUntil = board.freeAt(r);
      if (r < ranks - 1) {
        gradient += board.problem.hop;
        ahead[r] = countAhead(r, gradient, busyUntil);
      }
      gradient = std::max(busyUntil, gradient) + length(ActionKind::I, r);
    }
    for (int32_t r = 1; r < ranks; ++r) {
      // A rank stays a forward behind the one before it, until that has none.
      const bool all = ahead[r - 1] == total - 1;
      ahead[r] =
          std::min(ahead[r], all ? total - 1 : std::max(ahead[r - 1] - 1, 0));
    }
    for (int32_t r = 0; r < ranks; ++r)
      for (int32_t i = 0; i < ahead[r]; ++i)
        board.put(next(ActionKind::F, r));
    for (int32_t r = ranks - 1; r >= 0; --r)
      board.put(next(ActionKind::I, r));
  }

  int32_t countAhead(int32_t r, double gradient, double &busyUntil) const {
    const double held = board.problem.at(r).held;
    double room = board.held(r) + held;
    int32_t count = 0;
    while (1 + count < total && fitsLimit(room, board.limit(r)) &&
           (answers.squeezes
                ? busyUntil < gradient
                : fitsLimit(busyUntil + length(ActionKind::F, r), gradient))) {
      room += held;
      busyUntil += length(ActionKind::F, r);
      ++count;
    }
    return count;
  }

  std::vector<bool> chooseForwards() const {
    std::vector<bool> forward(ranks, false);
    for (int32_t r = 0; r < ranks; ++r)
      forward[r] = board.count(ActionKind::F, r) < total && !mayPass(r);
    // A rank that goes on while the next one passes would only pile up.
    for (int32_t r = ranks - 2; r >= 0; --r)
      forward[r] = forward[r] && forward[r + 1];
    return forward;
  }

  /// Whether a backward is better off if this round has no forward.
  bool mayPass(int32_t r) const {
    if (!answers.passes || r + 1 == ranks ||
        board.count(ActionKind::F, r) < board.count(ActionKind::F, r + 1) + 2)
      return false;
    const double gradient = board.freeAt(r + 1) + length(ActionKind::F, r + 1) +
                            length(ActionKind::I, r + 1) + board.problem.hop;
    const double now = board.freeAt(r);
    if (now >= gradient)
      return true;
    const StageTimes t = board.problem.at(r);
    double held = board.held(r) + t.held, weights = 0;
    int32_t owed =
        board.count(ActionKind::I, r) - board.count(ActionKind::W, r);
    for (; owed > 0 && !fitsLimit(held, board.limit(r)); --owed) {
      held -= t.kept;
      weights += t.weightGrad;
    }
    if (fitsLimit(now + t.forward + weights, gradient))
      return false;
    return fitsLimit(gradient - now, board.largestBubble() - board.bubble(r));
  }

  void putForward(int32_t r) {
    // Its forwards stay as far ahead as at the start, so there is room.
    board.makeRoom(r);
    fillWait(next(ActionKind::F, r), r > 0);
  }

  void putBackward(int32_t r) {
    // Nobody waits for stage 0, so its weights come first.
    if (r == 0 && board.count(ActionKind::F, 0) == total) {
      fillWait(next(ActionKind::I, r), ranks > 1, true);
      return;
    }
    fillWait(next(ActionKind::I, r), r + 1 < ranks);
  }

  void fillWait(const Action &action, bool waits, bool payAll = false) {
    const int32_t r = action.stage;
    const double arrival = board.arrival(action);
    if (waits) {
      board.payUntil(r, arrival);
      const double gap = arrival - board.freeAt(r);
      const bool isWorst =
          !fitsLimit(gap, board.largestBubble() - board.bubble(r));
      if (board.owesWeights(r) && gap > 0 && (isWorst || answers.fills))
        board.payOldest(r);
    }
    while (payAll && board.owesWeights(r))
      board.payOldest(r);
    board.put(action);
  }

  Board board;
  const int32_t ranks, total;
  const Answers answers;
};

} // namespace

Schedule generateZeroBubbleAuto(const PipelineProblem &given) {
  const PipelineProblem problem =
      limitedTo(2 * given.ranks, given,
                placeStages(Placement::Linear, given.ranks, 1));
  std::optional<Board> best;
  for (int grid = 0; grid < 8; ++grid) {
    Board board = AutomaticRule(problem, {(grid & 4) != 0, (grid & 2) != 0,
                                          (grid & 1) != 0})
                      .run();
    const auto cost = [](const Board &b) {
      return std::pair(b.longestSpan(), b.makespan());
    };
    if (!best || cost(board) < cost(*best))
      best.emplace(std::move(board));
  }
  return {"zb-auto", best->takeLists()};
}

} // namespace takt
