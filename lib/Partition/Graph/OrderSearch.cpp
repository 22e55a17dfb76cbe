//===- OrderSearch.cpp - good orders to cut -------------------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Orders that are far from the best need no exact fitness: the program is told
// to stop above it, which makes it many times faster.
//
//===----------------------------------------------------------------------===//

#include "OrderSearch.h"

#include <algorithm>

namespace takt::graphcut {

namespace {

constexpr int32_t kPopulation = 40, kElite = 10, kMutants = 8;
constexpr int32_t kPatience = 12; ///< generations without a better answer
constexpr uint64_t kKeyRange = uint64_t(1) << 32;

using Keys = std::vector<uint64_t>;

struct Individual {
  Keys keys;
  Nanos fitness = kNever;
};

class Search {
public:
  Search(const Context &context, uint64_t seed, Meter &meter)
      : context(context), meter(meter), state(seed) {}

  GraphPartition run(bool fixedOnly) {
    // The first order is cut whatever the limit, so that there is an answer.
    const int64_t limit = meter.limit;
    meter.limit = INT64_MAX;
    meter.mayBreak = false;
    for (const std::vector<int32_t> &order : fixedOrders()) {
      admit(spreadKeys(order));
      meter.limit = limit;
      meter.mayBreak = true;
    }
    if (fixedOnly)
      return best;
    while (int32_t(population.size()) < kPopulation && !meter.exhausted())
      admit(randomKeys());
    int32_t idle = 0;
    while (idle < kPatience && !meter.exhausted() && best.objective != 0) {
      const Nanos before = fitnessOfBest();
      generation();
      idle = fitnessOfBest() < before ? 0 : idle + 1;
    }
    return best;
  }

private:
  uint64_t draw() {
    state += 0x9E3779B97F4A7C15u;
    uint64_t z = state;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
  }

  Keys randomKeys() {
    Keys keys(context.graph.size);
    for (uint64_t &key : keys)
      key = draw() % kKeyRange;
    return keys;
  }

  /// Keys that decode to the order, spread over the range.
  Keys spreadKeys(const std::vector<int32_t> &order) const {
    Keys keys(order.size());
    for (size_t i = 0; i < order.size(); ++i)
      keys[order[i]] = i * (kKeyRange / order.size());
    return keys;
  }

  /// Smallest first, largest first, and depth first from either side.
  std::vector<std::vector<int32_t>> fixedOrders() const {
    const int32_t size = context.graph.size;
    std::vector<std::vector<int32_t>> orders;
    orders.push_back(orderByKeys(
        context.graph.after,
        keysOf(context.graph, smallestFirstOrder(context.problem))));
    Keys falling(size);
    for (int32_t v = 0; v < size; ++v)
      falling[v] = size - v;
    orders.push_back(orderByKeys(context.graph.after, falling));
    orders.push_back(depthFirst(context.graph.before));
    orders.push_back(depthFirst(context.graph.after));
    std::reverse(orders.back().begin(), orders.back().end());
    return orders;
  }

  /// Every node right after all it needs, each branch finished first.
  std::vector<int32_t>
  depthFirst(const std::vector<std::vector<int32_t>> &needs) const {
    const int32_t size = context.graph.size;
    std::vector<int32_t> order, path;
    std::vector<size_t> next(size, 0);
    std::vector<bool> seen(size, false);
    for (int32_t root = 0; root < size; ++root) {
      if (!seen[root])
        path.push_back(root);
      seen[root] = true;
      while (!path.empty()) {
        const int32_t v = path.back();
        if (next[v] == needs[v].size()) {
          order.push_back(v);
          path.pop_back();
          continue;
        }
        const int32_t w = needs[v][next[v]++];
        if (!seen[w])
          path.push_back(w);
        seen[w] = true;
      }
    }
    return order;
  }

  Nanos fitnessOfBest() const {
    return best.blocks.empty() ? kNever : best.objective;
  }

  void admit(Keys keys) {
    Individual one{std::move(keys), kNever};
    judge(one);
    population.push_back(std::move(one));
  }

  void judge(Individual &one) {
    // A quarter above the best still tells parents apart.
    const Nanos limit =
        best.blocks.empty() ? kNever : best.objective + best.objective / 4;
    const Lattice lattice =
        prefixes(context.graph, orderByKeys(context.graph.after, one.keys));
    Answer answer = bestChain(context, lattice, limit, meter);
    if (answer.partition.blocks.empty())
      return;
    one.fitness = answer.partition.objective;
    if (one.fitness < fitnessOfBest()) {
      best = std::move(answer.partition);
      running.setBest(best.objective);
    }
  }

  void generation() {
    std::stable_sort(population.begin(), population.end(),
                     [](const Individual &a, const Individual &b) {
                       return a.fitness < b.fitness;
                     });
    std::vector<Individual> old = std::move(population);
    population.assign(old.begin(), old.begin() + kElite);
    for (int32_t i = 0; i < kMutants && !meter.exhausted(); ++i)
      admit(i % 2 ? randomKeys() : disturbed(old[draw() % kElite].keys));
    while (int32_t(population.size()) < kPopulation && !meter.exhausted())
      admit(crossed(old[draw() % kElite].keys,
                    old[kElite + draw() % (old.size() - kElite)].keys));
  }

  /// Some keys drawn anew.
  Keys disturbed(Keys keys) {
    const uint64_t share = 2 + draw() % 15;
    for (uint64_t &key : keys)
      if (draw() % 100 < share)
        key = draw() % kKeyRange;
    return keys;
  }

  /// Each key from the better parent seven times of ten.
  Keys crossed(const Keys &elite, const Keys &other) {
    Keys keys(elite.size());
    for (size_t v = 0; v < keys.size(); ++v)
      keys[v] = draw() % 10 < 7 ? elite[v] : other[v];
    return keys;
  }

  const Context &context;
  Meter &meter;
  uint64_t state;
  std::vector<Individual> population;
  GraphPartition best;
  search::Running running{"period of the graph: order search"};
};

} // namespace

GraphPartition searchOrders(const Context &context, uint64_t seed,
                            bool fixedOnly, Meter &meter) {
  return Search(context, seed, meter).run(fixedOnly);
}

} // namespace takt::graphcut
