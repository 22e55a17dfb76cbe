//===- Slots.cpp - repeated patterns, moved to the front ------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "Slots.h"

#include <algorithm>
#include <tuple>

namespace takt {

namespace {

constexpr int32_t kEmpty = -1;

class SlotTable {
public:
  SlotTable(const BestOrder &of, const Pattern &pattern, const SlotRule &rule)
      : problem(of.problem), rankOfStage(of.rankOfStage), rule(rule),
        rows(problem.ranks) {
    for (std::vector<int32_t> &kind : slotOf)
      kind.assign(size_t(problem.stages()) * problem.microBatches, kEmpty);
    layPattern(pattern);
  }

  std::optional<Orders> run() {
    if (meets)
      return std::nullopt;
    for (int32_t rank = 0; rank < problem.ranks; ++rank) {
      layWeightsOf(rank);
      fillLevels(rank);
    }
    setLimits();
    moveAll();
    if (rule.squeezesEnd)
      squeezeEnd();
    Orders orders(problem.ranks);
    for (int32_t rank = 0; rank < problem.ranks; ++rank)
      for (const int32_t index : rows[rank].slots)
        if (index != kEmpty)
          orders[rank].push_back(actions[index]);
    return orders;
  }

private:
  struct Row {
    std::vector<int32_t> slots; ///< index of the action
    std::vector<double> level;  ///< held during the slot
    double most = 0;
  };

  int32_t &slot(ActionKind kind, int32_t stage, int32_t m) {
    return slotOf[int(kind)][size_t(stage) * problem.microBatches + m];
  }
  int32_t &slot(const Action &a) { return slot(a.kind, a.stage, a.microBatch); }

  void lay(const Action &a, int32_t at) {
    std::vector<int32_t> &slots = rows[rankOfStage[a.stage]].slots;
    if (slots.size() <= size_t(at))
      slots.resize(at + 1, kEmpty);
    meets = meets || slots[at] != kEmpty;
    slots[at] = int32_t(actions.size());
    slot(a) = at;
    actions.push_back(a);
  }

  void layPattern(const Pattern &pattern) {
    for (int32_t s = 0; s < problem.stages(); ++s)
      for (int32_t m = 0; m < problem.microBatches; ++m) {
        const double begin = m * pattern.interval;
        lay({s, ActionKind::F, m}, int32_t(begin + pattern.forward[s]));
        lay({s, ActionKind::I, m}, int32_t(begin + pattern.inputGrad[s]));
      }
  }

  /// Into every empty slot that has an input gradient before it.
  void layWeightsOf(int32_t rank) {
    std::vector<Action> owed;
    size_t paid = 0;
    for (size_t at = 0; at < rows[rank].slots.size() || paid < owed.size();
         ++at) {
      const int32_t index =
          at < rows[rank].slots.size() ? rows[rank].slots[at] : kEmpty;
      if (index == kEmpty && paid < owed.size())
        lay(owed[paid++], int32_t(at));
      else if (index != kEmpty && actions[index].kind == ActionKind::I)
        owed.push_back(
            {actions[index].stage, ActionKind::W, actions[index].microBatch});
    }
  }

  double taken(const Action &a) const {
    return a.kind == ActionKind::F ? problem.at(a.stage).held : 0;
  }
  double given(const Action &a) const {
    const StageTimes t = problem.at(a.stage);
    const double kept = rule.holdsInFull ? t.held : t.kept;
    return a.kind == ActionKind::I   ? t.held - kept
           : a.kind == ActionKind::W ? kept
                                     : 0;
  }

  /// Its ranks' largest peak is a pattern's limit where memory is counted in
  /// full.
  void setLimits() {
    double peak = 0;
    for (const Row &row : rows)
      peak = std::max(peak, row.most);
    for (int32_t rank = 0; rank < problem.ranks; ++rank)
      rows[rank].most = rule.holdsInFull || problem.mostHeld.empty()
                            ? peak
                            : problem.mostHeld[rank];
  }

  void fillLevels(int32_t rank) {
    Row &row = rows[rank];
    double held = 0, peak = 0;
    for (const int32_t index : row.slots) {
      held += index == kEmpty ? 0 : taken(actions[index]);
      row.level.push_back(held);
      peak = std::max(peak, held);
      held -= index == kEmpty ? 0 : given(actions[index]);
    }
    row.most = peak;
  }

  void moveAll() {
    using Key = std::tuple<int32_t, int32_t, int32_t>;
    std::vector<std::pair<Key, int32_t>> order;
    for (size_t i = 0; i < actions.size(); ++i)
      order.push_back(
          {Key{slot(actions[i]), rankOfStage[actions[i].stage], int32_t(i)},
           int32_t(i)});
    std::sort(order.begin(), order.end());
    const int32_t firstEnd = slot(ActionKind::I, 0, 0);
    const int32_t lastStart = slot(ActionKind::F, 0, problem.microBatches - 1);
    for (const auto &[key, index] : order) {
      const int32_t at = std::get<0>(key);
      const bool beforeEnd =
          at < lastStart || (at == lastStart && std::get<1>(key) == 0);
      if (rule.keepsSteadyState && at >= firstEnd && beforeEnd)
        continue;
      move(index);
    }
  }

  /// Actions behind the last start move once more, through slots of weight
  /// gradients, which then take the slots that are left.
  void squeezeEnd() {
    for (Row &row : rows)
      for (int32_t &index : row.slots)
        if (index != kEmpty && actions[index].kind == ActionKind::W)
          index = kEmpty;
    std::vector<double> most;
    for (int32_t rank = 0; rank < problem.ranks; ++rank)
      most.push_back(std::max(rows[rank].most, peakOf(rows[rank])));
    const int32_t lastStart = slot(ActionKind::F, 0, problem.microBatches - 1);
    std::vector<std::pair<int32_t, int32_t>> order; // slot, action
    for (size_t i = 0; i < actions.size(); ++i)
      if (actions[i].kind != ActionKind::W && slot(actions[i]) > lastStart)
        order.push_back({slot(actions[i]), int32_t(i)});
    std::sort(order.begin(), order.end());
    for (const auto &[from, index] : order) {
      const Action &a = actions[index];
      const int32_t rank = rankOfStage[a.stage];
      std::vector<int32_t> &slots = rows[rank].slots;
      for (int32_t at = earliest(a); at < from; ++at) {
        if (slots[at] != kEmpty)
          continue;
        std::swap(slots[at], slots[from]);
        slot(a) = at;
        if (fitsLimit(peakOf(rows[rank]), most[rank]))
          break;
        std::swap(slots[at], slots[from]);
        slot(a) = from;
      }
    }
    for (int32_t rank = 0; rank < problem.ranks; ++rank)
      layWeightsOf(rank);
  }

  /// Most held if weight gradients take every empty slot they can.
  double peakOf(const Row &row) const {
    double held = 0, peak = 0;
    std::vector<double> owed; // what each gives
    size_t paid = 0;
    for (const int32_t index : row.slots) {
      if (index == kEmpty) {
        held -= paid < owed.size() ? owed[paid++] : 0;
        continue;
      }
      const Action &a = actions[index];
      peak = std::max(peak, held += taken(a));
      held -= given(a);
      if (a.kind == ActionKind::I)
        owed.push_back(given({a.stage, ActionKind::W, a.microBatch}));
    }
    return peak;
  }

  /// First slot behind all inputs and behind the same action of the micro-batch
  /// before.
  int32_t earliest(const Action &a) {
    const int32_t s = a.stage, m = a.microBatch;
    int32_t after = kEmpty;
    auto behind = [&](int32_t at) { after = std::max(after, at); };
    if (a.kind == ActionKind::F && s > 0)
      behind(slot(ActionKind::F, s - 1, m));
    if (a.kind == ActionKind::I)
      behind(slot(ActionKind::F, s, m));
    if (a.kind == ActionKind::I && s + 1 < problem.stages())
      behind(slot(ActionKind::I, s + 1, m));
    if (a.kind == ActionKind::W)
      behind(slot(ActionKind::I, s, m));
    if (m > 0)
      behind(slot(a.kind, s, m - 1));
    return after + 1;
  }

  void move(int32_t index) {
    const Action &a = actions[index];
    Row &row = rows[rankOfStage[a.stage]];
    const int32_t from = slot(a), least = earliest(a);
    int32_t to = from;
    for (int32_t at = from - 1; at >= least; --at) {
      if (!fitsLimit(row.level[at] + taken(a), row.most))
        break;
      if (row.slots[at] == kEmpty)
        to = at;
    }
    if (to == from)
      return;
    for (int32_t at = to; at < from; ++at) {
      row.level[at] += taken(a);
      row.level[at + 1] -= given(a);
    }
    row.slots[from] = kEmpty;
    row.slots[to] = index;
    slot(a) = to;
  }

  const PipelineProblem &problem;
  const std::vector<int32_t> &rankOfStage;
  const SlotRule rule;
  std::vector<Row> rows;
  std::vector<int32_t> slotOf[3]; ///< by kind F, I, W and pass
  std::vector<Action> actions;
  bool meets = false;
};

} // namespace

std::optional<Orders> reorderPattern(const BestOrder &of,
                                     const Pattern &pattern,
                                     const SlotRule &rule) {
  return SlotTable(of, pattern, rule).run();
}

void tryPattern(BestOrder &best, const Pattern &pattern) {
  best.tryOrders(ordersOf(best.problem, best.rankOfStage, pattern));
  // Squeezing looks at whole rows for every move.
  const int ways = best.isLarge() ? 4 : 8;
  for (int way = 0; way < ways; ++way)
    if (const auto lists = reorderPattern(
            best, pattern, {(way & 1) != 0, (way & 2) != 0, (way & 4) != 0})) {
      best.tryLists(*lists);
      best.tryOrders(withoutWeights(*lists));
    }
}

} // namespace takt
