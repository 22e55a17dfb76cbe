//===- machine.h - what calls and transfers of a plan share -----*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Turns `Plan::resources` into numbered resources and says which of them a
// call, a piece of a transfer and an all-reduce use, and how much.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "sharing.h"

#include "takt-rt/core/plan.h"

#include <vector>

namespace takt::rt {

class Machine {
public:
  /// Adds its resources to `sharing`.
  Machine(const Plan &plan, Sharing &sharing);

  /// Whether anything is shared at all.
  bool isShared() const { return !nodes.empty(); }
  std::vector<Use> ofCall(int32_t rank, const Procedure &procedure) const;
  std::vector<Use> ofPiece(int32_t from, int32_t to, const Link &link) const;
  std::vector<Use> ofAllReduce(const Group &group) const;

private:
  struct Device {
    uint32_t node = 0;
    uint32_t sm = 0, engines = 0, memory = 0;       ///< 0: not shared
    uint32_t port[2] = {0, 0}, network[2] = {0, 0}; ///< out, in
  };
  struct NodeShares {
    const NodeResources *kind = nullptr;
    uint32_t cores = 0, network[2] = {0, 0};
  };
  void addEnd(std::vector<Use> &uses, const Device &device, bool in,
              bool sameNode, double rate) const;

  const Plan &plan;
  std::vector<NodeShares> nodes;
  std::vector<Device> devices;
  std::vector<uint32_t> deviceOf; ///< of each rank
};

} // namespace takt::rt
