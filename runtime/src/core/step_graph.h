//===- step_graph.h - what each instruction of a step needs -----*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Numbers the executed instructions of all ranks and names, for each, those
// that must end before it can: the one before it on its lane, those it waits
// for, and what the other ends of its transfer or reduction wait for.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "takt-rt/core/plan.h"

#include <utility>
#include <vector>

namespace takt::rt {

/// An instruction on a rank.
struct Node {
  int32_t rank = 0;
  uint16_t lane = 0;
  uint32_t instr = 0;
};

class StepGraph {
public:
  explicit StepGraph(const Plan &plan);

  size_t size() const { return total; }
  size_t index(const Node &node) const {
    return base[node.rank][node.lane] + node.instr;
  }
  const Role &role(int32_t rank) const { return plan.roles[roleOf[rank]]; }
  const Instr &instr(const Node &node) const {
    return role(node.rank).lanes[node.lane].instrs[node.instr];
  }
  /// The same rank's instructions that must end before this one begins.
  void local(const Node &node, std::vector<Node> &out) const;
  /// The other ends of a transfer or reduction; empty for other kinds.
  void peers(const Node &node, std::vector<Node> &out) const;

private:
  using Spot = std::pair<uint16_t, uint32_t>; ///< lane, instruction
  struct End {
    std::vector<Spot> spots;                 ///< in the order of the lane
    std::vector<std::vector<int32_t>> ranks; ///< peers of each replica
  };

  const Plan &plan;
  std::vector<int32_t> roleOf;
  std::vector<std::vector<size_t>> base; ///< by rank and lane
  std::vector<std::vector<std::vector<uint32_t>>>
      turn;                 ///< by role, lane, instr
  std::vector<End> ends[2]; ///< [sending], by channel
  size_t total = 0;
};

} // namespace takt::rt
