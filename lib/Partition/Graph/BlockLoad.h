//===- BlockLoad.h - what a block costs, node by node -----------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Sums over a block that grow by one node at a time, so that all blocks below a
// down-set cost no more than the tensors their nodes touch.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "Lattice.h"

#include <array>

namespace takt::graphcut {

constexpr Nanos kNever = INT64_MAX;

struct BlockLoad {
  std::array<Nanos, kMaxDeviceKinds> work{};
  uint32_t cannotRun = 0; ///< a bit a kind of device
  Nanos in = 0, out = 0, shared = 0, reduce = 0;
  Bytes memory = 0, saved = 0;
};

/// One way to run a block.
struct Choice {
  int32_t device = 0;
  int64_t replicas = 1;
};

/// Time of the load on `replicas` in turn, for one micro-batch; kNever where
/// the device cannot run it.
Nanos periodOf(const GraphProblem &problem, const BlockLoad &load,
               const Choice &choice);

class LoadRules {
public:
  LoadRules(const GraphProblem &problem, const Condensed &graph)
      : problem(problem), graph(graph) {}

  /// Adds node v to the load of the nodes in `block`, which lacks it.
  void add(BlockLoad &load, int32_t v, const Word *block) const;

  /// Time of all that crosses the cut after a down-set, as Relayed counts it.
  Nanos crossing(const Word *downSet) const;

private:
  void addTensors(BlockLoad &load, int32_t v, const Word *block) const;
  void addTies(BlockLoad &load, int32_t v, const Word *block) const;

  const GraphProblem &problem;
  const Condensed &graph;
};

} // namespace takt::graphcut
