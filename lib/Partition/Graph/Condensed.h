//===- Condensed.h - the graph with groups contracted -----------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Nodes that one block must hold become one. Whatever lies on a way between two
// of them has to be there too, so strongly connected groups are merged as well;
// what is left is acyclic, and nothing was lost.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "Bits.h"

#include "takt/Partition/GraphProblem.h"

namespace takt::graphcut {

struct CondensedTensor {
  int32_t producer = 0;
  std::vector<int32_t>
      consumers; ///< ascending, without the producer, not empty
  Nanos time = 0;
};

struct CondensedTie {
  Bits nodes; ///< at least two
  Bytes memory = 0;
  Nanos time = 0, reduce = 0;
};

/// Nodes are numbered in the topological order that takes the group with the
/// smallest node first.
struct Condensed {
  int32_t size = 0, words = 0;
  std::vector<std::vector<int32_t>> members; ///< nodes of the problem
  std::vector<int32_t> groupOf;              ///< of each node of the problem
  std::vector<GraphNode> nodes;              ///< sums over the members
  std::vector<CondensedTensor> tensors;
  std::vector<CondensedTie> ties;
  std::vector<std::vector<int32_t>> before, after; ///< ordered neighbours
  std::vector<std::vector<int32_t>> tensorsOf;     ///< made or read by a node
  std::vector<std::vector<int32_t>> tiesOf;
};

/// `problem` has passed check().
Condensed condense(const GraphProblem &problem);

/// Kahn's algorithm, the ready node with the smallest key first, then the
/// smallest number. Shorter than `after` if there is a cycle.
std::vector<int32_t> orderByKeys(const std::vector<std::vector<int32_t>> &after,
                                 const std::vector<uint64_t> &keys);

/// Keys that order groups by the places of their first nodes in `order`.
std::vector<uint64_t> keysOf(const Condensed &graph,
                             const std::vector<int32_t> &order);

} // namespace takt::graphcut
