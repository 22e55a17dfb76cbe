//===- Helix.cpp - attention of several micro-batches on several ranks ----===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// HelixPipe, arXiv 2507.00394. Block P(l), what follows the attention of layer
// l - 1 and what precedes that of layer l, is on rank l mod p. Attention A(l)
// of the micro-batch with offset d runs on rank (l + d + 1) mod p: for d = p -
// 1 at the block's own rank. Three ranks, three layers, one fold, forward:
//
//   rank 0  P0.0 P0.1 P0.2 A0.2 .    .    .    A2.0 P3.0 ...
//   rank 1  .    A0.0 P1.0 P1.1 P1.2 A1.2 .    .
//   rank 2  .    .    A0.1 A1.0 P2.0 P2.1 P2.2 A2.2
//
// Backward is the forward list of each rank reversed: first in, last out. So
// every rank holds all micro-batches of a repeat, and equally many.
//
// Forward bubble, with attention no shorter than a block: max(p - 1,
// folds (p - 3) + 2) blocks, whatever the attention and the number of layers
// (of three ranks with several folds, where two ends of blocks do not match,
// more).
//
//===----------------------------------------------------------------------===//

#include "takt/Schedule/ChainFamilies.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace takt {

namespace {

class Helix {
public:
  explicit Helix(const HelixProblem &problem)
      : problem(problem), p(problem.ranks), layers(problem.layers) {}

  ChainPlan run() {
    plan.problem.ranks = p;
    plan.problem.hop = equalHops(p, problem.hop);
    makeSteps();
    for (int32_t m = 0; m < problem.microBatches(); ++m)
      plan.problem.paths.push_back(pathOf(m % p));
    plan.schedule.ranks.resize(p);
    for (int32_t repeat = 0; repeat < problem.repeats; ++repeat)
      for (int32_t rank = 0; rank < p; ++rank)
        addRepeat(repeat, rank);
    return std::move(plan);
  }

private:
  // Places in a path forward: block l at 2 l, attention at 2 l + 1, so block
  // `layers` at 2 layers; backward mirrors them. Steps have the same numbers.
  int32_t turns() const { return 2 * layers + 1; }

  void makeSteps() {
    for (const char *prefix : {"", "b"})
      for (int32_t i = 0; i < turns(); ++i) {
        const int32_t at = *prefix ? turns() - 1 - i : i;
        ChainStep step;
        step.name = fmt::format("{}{}{}", prefix, at % 2 ? 'A' : 'P', at / 2);
        if (at % 2 == 0)
          step.homes = {at / 2 % p};
        plan.problem.steps.push_back(std::move(step));
      }
  }

  std::vector<ChainVisit> pathOf(int32_t d) const {
    std::vector<ChainVisit> path;
    for (int32_t at = 0; at < turns(); ++at) {
      const int32_t layer = at / 2;
      const bool attends = at % 2 == 1;
      ChainVisit visit;
      visit.step = at;
      visit.rank = (attends ? layer + d + 1 : layer) % p;
      visit.time = attends ? problem.attention
                           : (layer < layers ? problem.pre : 0) +
                                 (layer > 0 ? problem.post : 0);
      visit.held = attends ? problem.heldPerAttention : problem.heldPerBlock;
      path.push_back(visit);
    }
    for (int32_t at = turns() - 1; at >= 0; --at) {
      ChainVisit visit = path[at];
      visit.step = int32_t(path.size());
      visit.time *= problem.backwardRatio;
      visit.freed = std::exchange(visit.held, 0);
      visit.with = at;
      path.push_back(visit);
    }
    return path;
  }

  void addRepeat(int32_t repeat, int32_t rank) {
    order.clear();
    // Offset 0 passes a block behind the attention before it, but for the
    // first.
    for (int32_t fold = 0; rank == 0 && fold < problem.folds; ++fold)
      order.push_back({0, 0, fold});
    // Loop k of the helix ends in block k p + rank; in front of it come the
    // attentions that this rank takes over from the blocks of the p - 1 others.
    for (int32_t layer = rank; layer <= layers; layer += p) {
      for (int32_t d = std::min(p - 2, layer - 1); d >= 0; --d)
        attend(layer - 1 - d, d);
      for (int32_t d = 1; d < p; ++d)
        pass(layer, d);
    }
    // Behind the last block of a rank that has not the last of all.
    if (rank > 0)
      for (int32_t d = p - 2; d >= rank; --d)
        attend(layers + rank - 1 - d, d);
    auto &list = plan.schedule.ranks[rank];
    const int32_t firstFold = repeat * problem.folds;
    for (auto [at, d, fold] : order)
      list.push_back({(firstFold + fold) * p + d, at});
    for (size_t i = order.size(); i-- > 0;)
      list.push_back({(firstFold + order[i].fold) * p + order[i].d,
                      2 * turns() - 1 - order[i].at});
  }

  /// Attention of a layer by every fold; the block behind it follows at once
  /// for offset 0, whose attention is one rank further on.
  void attend(int32_t layer, int32_t d) {
    for (int32_t fold = 0; fold < problem.folds; ++fold) {
      order.push_back({2 * layer + 1, d, fold});
      if (d == 0)
        order.push_back({2 * layer + 2, d, fold});
    }
  }

  void pass(int32_t layer, int32_t d) {
    for (int32_t fold = 0; fold < problem.folds; ++fold) {
      order.push_back({2 * layer, d, fold});
      if (d == p - 1 && layer < layers)
        order.push_back({2 * layer + 1, d, fold});
    }
  }

  struct Turn {
    int32_t at, d, fold;
  };

  const HelixProblem &problem;
  const int32_t p, layers;
  ChainPlan plan;
  std::vector<Turn> order; ///< of a rank, forward
};

} // namespace

std::optional<std::string> HelixProblem::check() const {
  constexpr int32_t kMostRanks = 1024;
  if (ranks < 2 || ranks > kMostRanks)
    return fmt::format("'ranks' is {}, not from 2 to {}", ranks, kMostRanks);
  if (layers < ranks || layers % ranks != 0)
    return fmt::format("'layers' is {}, no multiple of the {} ranks", layers,
                       ranks);
  if (folds < 1 || repeats < 1)
    return fmt::format("there are {} folds and {} repeats, not at least 1",
                       folds, repeats);
  constexpr int64_t kMost = int64_t(1) << 24;
  if (int64_t(folds) * repeats > kMost ||
      int64_t(folds) * repeats * ranks > kMost ||
      int64_t(folds) * repeats * ranks * layers > kMost)
    return fmt::format("{} layers of {} x {} x {} micro-batches are more than "
                       "{}",
                       layers, ranks, folds, repeats, kMost);
  for (auto [name, value] : {std::pair("pre", pre),
                             {"attention", attention},
                             {"post", post},
                             {"backwardRatio", backwardRatio},
                             {"hop", hop},
                             {"heldPerBlock", heldPerBlock},
                             {"heldPerAttention", heldPerAttention}})
    if (!(value >= 0) || !std::isfinite(value))
      return fmt::format("'{}' is {}", name, value);
  return std::nullopt;
}

ChainPlan generateHelix(const HelixProblem &problem) {
  return Helix(problem).run();
}

HelixMessage helixMessage(int64_t sequence, int64_t batch, int64_t hidden) {
  const int64_t input = sequence * batch * hidden;
  const int64_t weights = 3 * hidden * (hidden + 1);
  if (input + weights < 3 * input)
    return {input + weights, true};
  return {3 * input, false};
}

} // namespace takt
