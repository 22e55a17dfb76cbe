//===- Lattice.cpp - down-sets of a graph ---------------------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Sets of size s + 1 are those of size s with one ready node more. A hash table
// of one layer finds the sets that several reach.
//
//===----------------------------------------------------------------------===//

#include "Lattice.h"

#include <algorithm>

namespace takt::graphcut {

namespace {

constexpr int64_t kMostBytes = int64_t(1) << 29;

class Enumeration {
public:
  Enumeration(const Condensed &graph, int64_t cap)
      : graph(graph), words(graph.words), cap(cap) {
    for (int32_t v = 0; v < graph.size; ++v) {
      Bits set(words, 0);
      for (const int32_t u : graph.before[v])
        put(set.data(), u);
      before.push_back(std::move(set));
    }
  }

  std::optional<Lattice> run(int64_t &counted) {
    counted = 1;
    sets.assign(words, 0);
    ready.assign(words, 0);
    for (int32_t v = 0; v < graph.size; ++v)
      if (graph.before[v].empty())
        put(ready.data(), v);
    int32_t begin = 0;
    for (int32_t layer = 0; layer < graph.size; ++layer) {
      const int32_t end = count;
      startTable(4 * int64_t(end - begin));
      for (int32_t i = begin; i < end; ++i)
        if (!extend(i)) {
          counted = cap + 1;
          return std::nullopt;
        }
      begin = end;
    }
    counted = count;
    return finish();
  }

private:
  struct Edge {
    int32_t above, below, node;
  };

  void startTable(int64_t entries) {
    int64_t slots = 64; // a power of two
    while (slots < entries)
      slots *= 2;
    table.assign(slots, -1);
    inLayer = 0;
  }

  /// Adds each ready node of set `i`; false past the cap.
  bool extend(int32_t i) {
    Bits now(sets.begin() + int64_t(i) * words,
             sets.begin() + int64_t(i + 1) * words);
    const Bits choices(ready.begin() + int64_t(i) * words,
                       ready.begin() + int64_t(i + 1) * words);
    bool fits = true;
    forEach(choices.data(), words, [&](int32_t v) {
      if (!fits)
        return;
      put(now.data(), v);
      const int32_t found = find(now, choices, v);
      drop(now.data(), v);
      fits = found >= 0;
      if (fits)
        edges.push_back({found, i, v});
    });
    return fits;
  }

  uint64_t slotOf(const Word *set) const {
    uint64_t hash = 0;
    for (int32_t w = 0; w < words; ++w) {
      hash = (hash ^ set[w]) * 0x9E3779B97F4A7C15u;
      hash ^= hash >> 29;
    }
    return hash & (table.size() - 1);
  }

  /// The number of set `now` = one of this layer's with `added`, made if new.
  int32_t find(const Bits &now, const Bits &choices, int32_t added) {
    uint64_t slot = slotOf(now.data());
    for (; table[slot] >= 0; slot = (slot + 1) & (table.size() - 1))
      if (std::equal(now.begin(), now.end(),
                     sets.begin() + int64_t(table[slot]) * words))
        return table[slot];
    const int64_t bytes =
        (int64_t(count) + 1) * words * 16 + int64_t(edges.size()) * 20;
    if (count >= cap || bytes > kMostBytes)
      return -1;
    table[slot] = count;
    sets.insert(sets.end(), now.begin(), now.end());
    Bits next = choices;
    drop(next.data(), added);
    for (const int32_t v : graph.after[added])
      if (!leaves(before[v].data(), now.data(), words))
        put(next.data(), v);
    ready.insert(ready.end(), next.begin(), next.end());
    if (++inLayer * 2 > int64_t(table.size()))
      grow();
    return count++;
  }

  void grow() {
    table.assign(table.size() * 2, -1);
    for (int32_t i = count - int32_t(inLayer) + 1; i <= count; ++i) {
      uint64_t slot = slotOf(sets.data() + int64_t(i) * words);
      while (table[slot] >= 0)
        slot = (slot + 1) & (table.size() - 1);
      table[slot] = i;
    }
  }

  Lattice finish() {
    Lattice lattice;
    lattice.words = words;
    lattice.bits = std::move(sets);
    lattice.firstStep.assign(count + 1, 0);
    for (const Edge &edge : edges)
      ++lattice.firstStep[edge.above + 1];
    for (int32_t i = 0; i < count; ++i)
      lattice.firstStep[i + 1] += lattice.firstStep[i];
    lattice.steps.resize(edges.size());
    std::vector<int32_t> next(lattice.firstStep.begin(),
                              lattice.firstStep.end() - 1);
    for (const Edge &edge : edges)
      lattice.steps[next[edge.above]++] = {edge.below, edge.node};
    return lattice;
  }

  const Condensed &graph;
  const int32_t words;
  const int64_t cap;
  std::vector<Bits> before;
  std::vector<Word> sets, ready;
  std::vector<Edge> edges;
  std::vector<int32_t> table;
  int64_t inLayer = 0;
  int32_t count = 1;
};

} // namespace

std::optional<Lattice> allDownSets(const Condensed &graph, int64_t cap,
                                   int64_t &counted) {
  return Enumeration(graph, cap).run(counted);
}

Lattice prefixes(const Condensed &graph, const std::vector<int32_t> &order) {
  Lattice lattice;
  lattice.words = graph.words;
  Bits now(graph.words, 0);
  lattice.bits = now;
  lattice.firstStep = {0, 0};
  for (size_t i = 0; i < order.size(); ++i) {
    put(now.data(), order[i]);
    lattice.bits.insert(lattice.bits.end(), now.begin(), now.end());
    lattice.steps.push_back({int32_t(i), order[i]});
    lattice.firstStep.push_back(int32_t(i) + 1);
  }
  return lattice;
}

} // namespace takt::graphcut
