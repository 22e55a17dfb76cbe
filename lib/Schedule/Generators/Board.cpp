//===- Board.cpp - a pipeline while its lists are made --------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "Board.h"

#include <limits>

namespace takt {

namespace {
constexpr double kNotYet = -1;
} // namespace

Board::Board(const PipelineProblem &problem, std::vector<int32_t> rankOfStage)
    : problem(problem), rankOfStage(std::move(rankOfStage)),
      ranks(problem.ranks), lists(problem.ranks) {
  for (std::vector<double> &kind : ends)
    kind.assign(size_t(problem.stages()) * problem.microBatches, kNotYet);
  for (std::vector<int32_t> &kind : counts)
    kind.assign(problem.stages(), 0);
}

bool Board::hasInputs(const Action &a) const {
  const int32_t s = a.stage, m = a.microBatch;
  if (a.kind == ActionKind::F)
    return s == 0 || end(ActionKind::F, s - 1, m) != kNotYet;
  if (a.kind == ActionKind::W)
    return end(ActionKind::I, s, m) != kNotYet;
  return end(ActionKind::F, s, m) != kNotYet &&
         (s + 1 == problem.stages() || end(ActionKind::I, s + 1, m) != kNotYet);
}

double Board::arrival(const Action &a) const {
  const int32_t s = a.stage, m = a.microBatch;
  if (a.kind == ActionKind::F)
    return s == 0 ? 0 : end(ActionKind::F, s - 1, m) + hopBetween(s - 1, s);
  if (a.kind == ActionKind::W)
    return end(ActionKind::I, s, m);
  const double own = end(ActionKind::F, s, m);
  return s + 1 == problem.stages()
             ? own
             : std::max(own,
                        end(ActionKind::I, s + 1, m) + hopBetween(s, s + 1));
}

double Board::length(const Action &a) const {
  const StageTimes t = problem.at(a.stage);
  return a.kind == ActionKind::F   ? t.forward
         : a.kind == ActionKind::I ? t.inputGrad
                                   : t.weightGrad;
}

double Board::largestBubble() const {
  double largest = 0;
  for (const Rank &rank : ranks)
    largest = std::max(largest, rank.bubble);
  return largest;
}

double Board::limit(int32_t rank) const {
  return problem.mostHeld.empty() ? std::numeric_limits<double>::infinity()
                                  : problem.mostHeld[rank];
}

bool Board::hasRoom(int32_t stage) const {
  const int32_t rank = rankOfStage[stage];
  return problem.mostHeld.empty() ||
         fitsLimit(ranks[rank].held + problem.at(stage).held, limit(rank));
}

bool Board::makeRoom(int32_t stage) {
  const int32_t rank = rankOfStage[stage];
  while (!hasRoom(stage)) {
    if (!owesWeights(rank))
      return false;
    payOldest(rank);
  }
  return true;
}

void Board::payUntil(int32_t rank, double until) {
  while (owesWeights(rank) &&
         fitsLimit(freeAt(rank) + length(oldestWeights(rank)), until))
    payOldest(rank);
}

void Board::put(const Action &a) {
  Rank &rank = ranks[rankOfStage[a.stage]];
  const double start = std::max(rank.freeAt, arrival(a));
  const StageTimes t = problem.at(a.stage);
  if (rank.begun)
    rank.bubble += start - rank.freeAt;
  else
    rank.firstStart = start;
  rank.begun = true;
  rank.freeAt = start + length(a);
  ends[int(a.kind)][pass(a.stage, a.microBatch)] = rank.freeAt;
  ++counts[int(a.kind)][a.stage];
  if (a.kind == ActionKind::F) {
    rank.held += t.held;
  } else if (a.kind == ActionKind::I) {
    rank.held -= t.held - t.kept;
    rank.owed.push_back({a.stage, ActionKind::W, a.microBatch});
  } else {
    rank.held -= t.kept;
    ++rank.paid;
  }
  lists[rankOfStage[a.stage]].push_back(a);
}

void Board::payAll() {
  for (int32_t rank = 0; rank < problem.ranks; ++rank)
    while (owesWeights(rank))
      payOldest(rank);
}

double Board::longestSpan() const {
  double longest = 0;
  for (const Rank &rank : ranks)
    longest = std::max(longest, rank.freeAt - rank.firstStart);
  return longest;
}

double Board::makespan() const {
  double last = 0;
  for (const Rank &rank : ranks)
    last = std::max(last, rank.freeAt);
  return last;
}

namespace {

/// Runs lists from their heads as far as they go; `put` puts the head of a
/// rank, which has its inputs, and what has to go before it.
template <typename Put>
bool runHeads(Board &board, const std::vector<std::vector<Action>> &lists,
              Put put) {
  std::vector<size_t> heads(lists.size(), 0);
  for (bool moved = true; moved;) {
    moved = false;
    for (size_t rank = 0; rank < lists.size(); ++rank)
      for (; heads[rank] < lists[rank].size(); ++heads[rank]) {
        const Action &next = lists[rank][heads[rank]];
        if (!board.hasInputs(next))
          break;
        if (!put(next))
          return false;
        moved = true;
      }
  }
  for (size_t rank = 0; rank < lists.size(); ++rank)
    if (heads[rank] < lists[rank].size())
      return false;
  return true;
}

} // namespace

std::optional<Board> layWeights(const PipelineProblem &problem,
                                const std::vector<int32_t> &rankOfStage,
                                const std::vector<std::vector<Action>> &order,
                                const WeightRule &rule) {
  std::optional<Board> board(std::in_place, problem, rankOfStage);
  const bool ran = runHeads(*board, order, [&](const Action &next) {
    const int32_t rank = rankOfStage[next.stage];
    if (next.kind == ActionKind::F && !board->makeRoom(next.stage))
      return false;
    const double arrival = board->arrival(next);
    board->payUntil(rank, arrival);
    const double gap = arrival - board->freeAt(rank);
    if (board->owesWeights(rank) && gap > 0 &&
        (rule.inShortGaps ||
         (rule.againstLargestBubble &&
          gap > board->largestBubble() - board->bubble(rank))))
      board->payOldest(rank);
    board->put(next);
    return true;
  });
  if (!ran)
    return std::nullopt;
  board->payAll();
  return board;
}

std::optional<Board> runLists(const PipelineProblem &problem,
                              const std::vector<int32_t> &rankOfStage,
                              const std::vector<std::vector<Action>> &lists) {
  std::optional<Board> board(std::in_place, problem, rankOfStage);
  const bool ran = runHeads(*board, lists, [&](const Action &next) {
    if (next.kind == ActionKind::F && !board->hasRoom(next.stage))
      return false;
    board->put(next);
    return true;
  });
  if (!ran)
    return std::nullopt;
  return board;
}

} // namespace takt
