//===- Antichains.cpp - the states that PipeDream cuts at -----------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Sets of nodes are bit sets: ancestors and descendants of each node once, then
// a breadth-first walk over states.
//
//===----------------------------------------------------------------------===//
#include "takt/Partition/Costs/Antichains.h"

#include <algorithm>
#include <map>
#include <set>

namespace takt {

namespace {

using Bits = std::vector<uint64_t>;

bool has(const Bits &bits, int32_t i) { return bits[i / 64] >> (i % 64) & 1; }
void put(Bits &bits, int32_t i) { bits[i / 64] |= uint64_t(1) << (i % 64); }
void join(Bits &bits, const Bits &other) {
  for (size_t w = 0; w < bits.size(); ++w)
    bits[w] |= other[w];
}
bool meet(const Bits &a, const Bits &b) {
  for (size_t w = 0; w < a.size(); ++w)
    if (a[w] & b[w])
      return true;
  return false;
}

template <typename Visit>
void forEach(const Bits &bits, Visit &&visit) {
  for (size_t w = 0; w < bits.size(); ++w)
    for (uint64_t rest = bits[w]; rest != 0; rest &= rest - 1)
      visit(int32_t(w * 64) + __builtin_ctzll(rest));
}

class Walk {
public:
  explicit Walk(const std::vector<ProfiledNode> &nodes)
      : nodes(nodes), none((nodes.size() + 63) / 64), above(nodes.size(), none),
        below(nodes.size(), none) {
    relate();
  }

  /// The antichain with the ancestors whose output still has to cross.
  Bits augmented(const Bits &antichain) const {
    Bits all = antichain;
    forEach(antichain, [&](int32_t member) {
      forEach(above[member], [&](int32_t ancestor) {
        for (const int32_t reader : nodes[ancestor].readers)
          if (reader != member && !has(above[member], reader)) {
            put(all, ancestor);
            break;
          }
      });
    });
    return all;
  }

  std::set<Bits> next(const Bits &antichain, const Bits &all) const {
    std::set<Bits> found;
    forEach(all, [&](int32_t old) {
      for (const int32_t reader : nodes[old].readers) {
        if (has(antichain, reader) || meet(below[reader], all))
          continue;
        Bits members = all;
        members[old / 64] &= ~(uint64_t(1) << (old % 64));
        put(members, reader);
        Bits last = none; // those without a descendant among the members
        forEach(members, [&](int32_t member) {
          if (!meet(below[member], members))
            put(last, member);
        });
        found.insert(std::move(last));
      }
    });
    return found;
  }

  Bits covered(const Bits &antichain) const {
    Bits all = antichain;
    forEach(antichain, [&](int32_t member) { join(all, above[member]); });
    return all;
  }

  const std::vector<ProfiledNode> &nodes;
  const Bits none;

private:
  /// Kahn's order, then unions along the edges.
  void relate() {
    std::vector<int32_t> missing(nodes.size()), order;
    for (const ProfiledNode &node : nodes)
      for (const int32_t reader : node.readers)
        ++missing[reader];
    for (size_t i = 0; i < nodes.size(); ++i)
      if (missing[i] == 0)
        order.push_back(int32_t(i));
    for (size_t i = 0; i < order.size(); ++i)
      for (const int32_t reader : nodes[order[i]].readers) {
        join(above[reader], above[order[i]]);
        put(above[reader], order[i]);
        if (--missing[reader] == 0)
          order.push_back(reader);
      }
    for (auto at = order.rbegin(); at != order.rend(); ++at)
      for (const int32_t reader : nodes[*at].readers) {
        join(below[*at], below[reader]);
        put(below[*at], reader);
      }
  }

  std::vector<Bits> above, below;
};

/// Found states by number, with edges.
struct Found {
  std::vector<Bits> antichains;
  std::vector<std::vector<int32_t>> next;
};

std::optional<Found> explore(const Walk &walk, int32_t first,
                             int64_t maxStates) {
  Found found;
  Bits start = walk.none;
  put(start, first);
  std::map<Bits, int32_t> numbers{{start, 0}};
  found.antichains.push_back(start);
  for (size_t i = 0; i < found.antichains.size(); ++i) {
    found.next.emplace_back();
    const Bits antichain = found.antichains[i];
    for (const Bits &other : walk.next(antichain, walk.augmented(antichain))) {
      auto [at, isNew] = numbers.emplace(other, int32_t(numbers.size()));
      if (isNew)
        found.antichains.push_back(other);
      if (int64_t(numbers.size()) > maxStates)
        return std::nullopt;
      found.next[i].push_back(at->second);
    }
  }
  return found;
}

std::vector<int32_t> topologicalOrder(const Found &found) {
  std::vector<int32_t> missing(found.next.size()), order{0};
  for (const auto &next : found.next)
    for (const int32_t other : next)
      ++missing[other];
  for (size_t i = 0; i < order.size(); ++i)
    for (const int32_t other : found.next[order[i]])
      if (--missing[other] == 0)
        order.push_back(other);
  return order;
}

} // namespace

std::optional<std::vector<ProfileState>>
antichainStates(const std::vector<ProfiledNode> &nodes, int32_t first,
                int64_t maxStates) {
  const Walk walk(nodes);
  const std::optional<Found> found = explore(walk, first, maxStates);
  if (!found)
    return std::nullopt;
  const std::vector<int32_t> order = topologicalOrder(*found);
  std::vector<int32_t> position(order.size());
  for (size_t i = 0; i < order.size(); ++i)
    position[order[i]] = int32_t(i);

  std::vector<ProfileState> states(order.size());
  std::vector<Bits> before(order.size(), Bits((order.size() + 63) / 64));
  for (size_t i = 0; i < order.size(); ++i) {
    const Bits &antichain = found->antichains[order[i]];
    ProfileState &state = states[i];
    forEach(walk.covered(antichain), [&](int32_t node) {
      state.nodes.push_back(node);
      state.seconds += nodes[node].seconds();
      state.activationBytes += nodes[node].outputBytes;
      state.parameterBytes += nodes[node].parameterBytes;
    });
    forEach(walk.augmented(antichain), [&](int32_t node) {
      state.outputBytes += nodes[node].outputBytes;
    });
    forEach(before[i], [&](int32_t other) { state.before.push_back(other); });
    for (const int32_t next : found->next[order[i]]) {
      join(before[position[next]], before[i]);
      put(before[position[next]], int32_t(i));
    }
  }
  if (states.back().nodes.size() != nodes.size())
    return std::nullopt;
  return states;
}

std::vector<ProfileState> chainStates(const std::vector<ProfiledNode> &nodes) {
  std::vector<ProfileState> states;
  ProfileState state;
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (i > 0)
      state.before.push_back(int32_t(i) - 1);
    state.nodes.push_back(int32_t(i));
    state.seconds += nodes[i].seconds();
    state.activationBytes += nodes[i].outputBytes;
    state.parameterBytes += nodes[i].parameterBytes;
    state.outputBytes = nodes[i].outputBytes;
    states.push_back(state);
  }
  return states;
}

} // namespace takt
