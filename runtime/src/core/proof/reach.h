//===- reach.h - what is sure to have happened before -----------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// One instruction happens before another of the same rank if it completes
// before the other can begin, whatever the timing. Lanes and waits of the rank
// decide nearly every question; they are kept as a count a lane for each
// instruction. The rest is a search back over messages, rank by rank.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "program.h"

#include <map>
#include <utility>
#include <vector>

namespace takt::rt::proof {

class Reach {
public:
  Reach(const Program &program, const Order &order);

  /// Index of a node in the order.
  uint32_t place(Node node) const { return places[node]; }
  /// `earlier` and `later` belong to one role.
  bool before(Node earlier, Node later);

private:
  bool search(Node earlier, Node later, int32_t replica);
  bool isSymmetric() const;
  const std::vector<Piece> &pieces(uint16_t channel, bool sending,
                                   int32_t replica);

  const Program &program;
  const Order &order;
  bool symmetric;
  std::vector<uint32_t> places;   ///< by node
  std::vector<size_t> firstKnown; ///< by role, into `known`
  /// By node and lane of its role: instructions of the lane that complete
  /// before the node begins.
  std::vector<uint32_t> known;
  std::map<std::pair<int32_t, int32_t>, std::vector<Piece>> pieceTable;
  uint64_t steps = 0;
};

} // namespace takt::rt::proof
