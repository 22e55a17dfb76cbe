//===- RankWork.cpp - what a rank has still to do -------------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "Rules.h"

#include <algorithm>
#include <utility>

namespace takt {

RankWork::RankWork(const ScheduleProblem &shape, int32_t rank,
                   std::vector<int32_t> own, int32_t groups)
    : stages(std::move(own)) {
  // Chunk 0 is the one nearest to the start of its chain.
  std::stable_sort(stages.begin(), stages.end(), [&](int32_t a, int32_t b) {
    return a % shape.stagesOfChain() < b % shape.stagesOfChain();
  });
  std::vector<int32_t> microBatches;
  for (int32_t m = 0; m < shape.microBatches; ++m)
    if (shape.roleOfStage[stages[0]] + shape.replicaOf(stages[0], m) == rank)
      microBatches.push_back(m);
  for (Order *order : {&forwards, &backwards}) {
    order->ofChunk.resize(stages.size());
    order->takenOf.resize(stages.size(), 0);
    const size_t size = std::max<size_t>(1, groups);
    for (size_t first = 0; first < microBatches.size(); first += size)
      for (int32_t i = 0; i < chunks(); ++i) {
        const int32_t chunk = order == &forwards ? i : chunks() - 1 - i;
        for (size_t k = first; k < std::min(first + size, microBatches.size());
             ++k) {
          order->ofChunk[chunk].push_back(order->passes.size());
          order->passes.emplace_back(chunk, microBatches[k]);
        }
      }
    order->taken.assign(order->passes.size(), false);
  }
}

int64_t RankWork::left(const Step &step) const {
  const int64_t notBack = int64_t(backwards.passes.size()) - backwards.count;
  if (step.kind == ActionKind::W)
    return int64_t(inputs.size() - weights) + notBack;
  const Order &order = orderOf(step.kind);
  if (step.chunk < 0)
    return int64_t(order.passes.size()) - order.count;
  return int64_t(order.ofChunk[step.chunk].size() - order.takenOf[step.chunk]);
}

std::optional<size_t> RankWork::place(const Step &step) const {
  if (left(step) == 0)
    return std::nullopt;
  const Order &order = orderOf(step.kind);
  return step.chunk < 0 ? order.first
                        : order.ofChunk[step.chunk][order.takenOf[step.chunk]];
}

std::optional<Action> RankWork::next(const Step &step) const {
  if (step.kind == ActionKind::W) {
    if (weights == inputs.size())
      return std::nullopt;
    const Action &input = inputs[weights];
    return Action{input.stage, ActionKind::W, input.microBatch};
  }
  const std::optional<size_t> at = place(step);
  if (!at)
    return std::nullopt;
  const auto [chunk, microBatch] = orderOf(step.kind).passes[*at];
  return Action{stages[chunk], step.kind, microBatch};
}

void RankWork::take(const Step &step) {
  if (step.kind == ActionKind::W) {
    ++weights;
    return;
  }
  if (step.kind == ActionKind::I)
    inputs.push_back(*next(step));
  Order &order = step.kind == ActionKind::F ? forwards : backwards;
  const size_t at = *place(step);
  // Of one chunk the passes are taken in their order, whoever asks for them.
  ++order.takenOf[order.passes[at].first];
  ++order.count;
  order.taken[at] = true;
  while (order.first < order.taken.size() && order.taken[order.first])
    ++order.first;
}

bool RankWork::isDone() const {
  return forwards.count == int64_t(forwards.passes.size()) &&
         backwards.count == int64_t(backwards.passes.size()) &&
         weights == inputs.size();
}

} // namespace takt
