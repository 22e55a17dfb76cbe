//===- DualPipe.cpp - from both ends at once ------------------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// DeepSeek-AI 2024, "DeepSeek-V3 Technical Report", arXiv 2412.19437
// (DualPipe), and its halved form DualPipeV, whose two directions are the two
// arms of a V.
//
// DualPipeV, two ranks, four micro-batches, F = I = W, B = I + W:
//
//   rank 0  0F0 0F1 0F2 3F0 3I0 3W0 3F1 0F3 3B1 3B1 3F2 0B0 0B0 3B2 3B2 3F3
//   rank 1  .   1F0 2F0 1F1 2F1 1F2 2B0 2B0 2F2 1B0 1B0 1F3 2B1 2B1 2F3 1B1
//
//           .   0B1 0B1 3B3 3B3 0I2 0W2 0I3 0W3
//           1B1 2B2 2B2 1B2 1B2 2I3 1I3 2W3 1W3
//
// A rank has two stages, near and far: the near one takes what enters at this
// end, the far one what comes back (DualPipeV) or from the other end
// (DualPipe, where the far stage belongs to a second copy of the pipeline with
// micro-batches of its own). On rank k of h (DualPipe: k counts from the nearer
// end, h = p / 2), with M micro-batches in each direction for each copy:
//
//   2 (h - k - 1)    near F                        |
//   k + 1            near F, far F                 | warm-up
//   h - k - 1        far I, W, far F               |
//   M - 2 h + k + 1  near F, far B, far F, near B  | steady
//   h - k - 1        far B, far F, near B          |
//   k + 1            far B, near B; the later half | drain
//                    leaves its W for the end      |
//   h - k - 1        W, near I                     |
//   the rest         W, in the order of their I    |
//
// Where a forward and a backward follow each other in the steady part they are
// meant to overlap, one's messages under the other's compute. The order is made
// for M >= 2 h; fewer micro-batches take it with the others left out. With
// F = I = W a rank holds 2 h + 1 stages' worth.
//
//===----------------------------------------------------------------------===//

#include "Families.h"

#include <fmt/format.h>

namespace takt {

namespace {

/// The list of one rank.
class TwoWays {
public:
  TwoWays(int32_t near, int32_t far, int32_t microBatches)
      : stages{near, far}, microBatches(microBatches) {}

  std::vector<Action> list(int32_t k, int32_t h) {
    const int32_t rest = h - k - 1;
    const int32_t total = std::max(microBatches, 2 * h);
    for (int32_t i = 0; i < 2 * rest; ++i)
      forward(kNear);
    for (int32_t i = 0; i <= k; ++i) {
      forward(kNear);
      forward(kFar);
    }
    for (int32_t i = 0; i < rest; ++i) {
      inputGrad(kFar);
      weightGrad();
      forward(kFar);
    }
    for (int32_t i = 0; i < total - 2 * h + k + 1; ++i) {
      forward(kNear);
      backward(kFar);
      forward(kFar);
      backward(kNear);
    }
    for (int32_t i = 0; i < rest; ++i) {
      backward(kFar);
      forward(kFar);
      backward(kNear);
    }
    // 2 (k + 1) backwards; the last k + 1 of them split.
    for (int32_t i = 0; i < 2 * (k + 1); ++i) {
      const int way = i % 2 == 0 ? kFar : kNear;
      i < k + 1 ? backward(way) : inputGrad(way);
    }
    for (int32_t i = 0; i < rest; ++i) {
      weightGrad();
      inputGrad(kNear);
    }
    while (nextWeight < waiting.size())
      weightGrad();
    return std::move(actions);
  }

private:
  enum { kNear, kFar };

  /// Micro-batches that the order has and the problem has not take their turn
  /// but no place in the list.
  void add(int way, ActionKind kind, int32_t m) {
    if (m < microBatches)
      actions.push_back({stages[way], kind, m});
  }
  void forward(int way) { add(way, ActionKind::F, forwards[way]++); }
  void backward(int way) { add(way, ActionKind::B, backwards[way]++); }
  void inputGrad(int way) {
    waiting.push_back({stages[way], ActionKind::W, backwards[way]});
    add(way, ActionKind::I, backwards[way]++);
  }
  void weightGrad() {
    const Action &a = waiting[nextWeight++];
    if (a.microBatch < microBatches)
      actions.push_back(a);
  }

  const int32_t stages[2];
  const int32_t microBatches;
  int32_t forwards[2] = {0, 0}, backwards[2] = {0, 0};
  std::vector<Action> waiting; ///< W of every I so far
  size_t nextWeight = 0;
  std::vector<Action> actions;
};

} // namespace

Schedule generateDualPipeV(const PipelineProblem &problem) {
  const int32_t p = problem.ranks;
  Schedule schedule;
  for (int32_t rank = 0; rank < p; ++rank)
    schedule.roles.push_back(
        TwoWays(rank, 2 * p - 1 - rank, problem.microBatches).list(rank, p));
  return schedule;
}

std::optional<std::string> refuseOddRanks(const PipelineProblem &problem) {
  if (problem.ranks % 2 == 0)
    return std::nullopt;
  return fmt::format("two directions meet between two ranks: {} ranks are odd",
                     problem.ranks);
}

Schedule generateDualPipe(const PipelineProblem &problem) {
  const int32_t p = problem.ranks;
  Schedule schedule;
  for (int32_t rank = 0; rank < p; ++rank) {
    // The copy's stage s is stage p + s, on rank p - 1 - s.
    const int32_t own = rank, other = 2 * p - 1 - rank;
    const bool nearStart = rank < p / 2;
    schedule.roles.push_back(TwoWays(nearStart ? own : other,
                                     nearStart ? other : own,
                                     problem.microBatches)
                                 .list(std::min(rank, p - 1 - rank), p / 2));
  }
  return schedule;
}

} // namespace takt
