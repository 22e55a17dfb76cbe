//===- Lattice.h - down-sets of a graph -------------------------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// A down-set holds all predecessors of its members. Blocks of an acyclic
// partition are differences of nested down-sets. The lattice keeps which
// down-sets lie one node below each: from a set, taking the last nodes away one
// by one reaches every set inside it.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "Condensed.h"

#include <optional>

namespace takt::graphcut {

/// Down-sets by ascending size: the first is empty, the last holds all nodes.
struct Lattice {
  struct Step {
    int32_t below = 0; ///< the down-set without `node`
    int32_t node = 0;
  };
  int32_t words = 0;
  std::vector<Word> bits;         ///< `words` for each
  std::vector<int32_t> firstStep; ///< into `steps`, one more than down-sets
  std::vector<Step> steps;

  int32_t size() const { return int32_t(firstStep.size()) - 1; }
  const Word *set(int32_t i) const { return bits.data() + int64_t(i) * words; }
};

/// All down-sets; nothing if there are more than `cap`, or than fit into half a
/// gigabyte. `counted` is their number, or one more than the cap.
std::optional<Lattice> allDownSets(const Condensed &graph, int64_t cap,
                                   int64_t &counted);

/// The down-sets that begin one topological order.
Lattice prefixes(const Condensed &graph, const std::vector<int32_t> &order);

} // namespace takt::graphcut
