//===- BlockLoad.cpp - what a block costs, node by node -------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Adding a node changes only what its tensors and ties count for.
//
//===----------------------------------------------------------------------===//

#include "BlockLoad.h"

#include <algorithm>

namespace takt::graphcut {

Nanos periodOf(const GraphProblem &problem, const BlockLoad &load,
               const Choice &choice) {
  if (load.cannotRun >> choice.device & 1)
    return kNever;
  const int64_t r = choice.replicas;
  const bool transfers = problem.devices[choice.device].transfers;
  const Nanos in = transfers ? load.in : 0, out = transfers ? load.out : 0;
  Nanos time = load.work[choice.device] + (transfers ? load.shared : 0);
  if (r > 1)
    time += (2 * (r - 1) * load.reduce + r - 1) / r;
  if (problem.costModel == GraphCostModel::Sum)
    time += in + out;
  else
    time = std::max({time, in, out});
  return (time + r - 1) / r;
}

void LoadRules::add(BlockLoad &load, int32_t v, const Word *block) const {
  const GraphNode &node = graph.nodes[v];
  for (size_t kind = 0; kind < node.time.size(); ++kind)
    if (node.time[kind] == kCannotRun)
      load.cannotRun |= uint32_t(1) << kind;
    else
      load.work[kind] += node.time[kind];
  load.reduce += node.reduce;
  load.memory += node.memory;
  load.saved += node.saved;
  if (problem.costModel != GraphCostModel::Relayed)
    addTensors(load, v, block);
  addTies(load, v, block);
}

namespace {

// Tensors have few readers, so asking for each beats going over all words.

bool anyInside(const std::vector<int32_t> &nodes, const Word *block) {
  for (const int32_t v : nodes)
    if (has(block, v))
      return true;
  return false;
}

/// `skipped` counts as inside; -1 skips nothing.
bool anyOutside(const std::vector<int32_t> &nodes, const Word *block,
                int32_t skipped) {
  for (const int32_t v : nodes)
    if (v != skipped && !has(block, v))
      return true;
  return false;
}

} // namespace

void LoadRules::addTensors(BlockLoad &load, int32_t v,
                           const Word *block) const {
  for (const int32_t t : graph.tensorsOf[v]) {
    const CondensedTensor &tensor = graph.tensors[t];
    if (tensor.producer == v) {
      if (anyInside(tensor.consumers, block))
        load.in -= tensor.time;
      if (anyOutside(tensor.consumers, block, -1))
        load.out += tensor.time;
    } else if (has(block, tensor.producer)) {
      if (!anyOutside(tensor.consumers, block, v))
        load.out -= tensor.time;
    } else if (!anyInside(tensor.consumers, block)) {
      load.in += tensor.time;
    }
  }
}

void LoadRules::addTies(BlockLoad &load, int32_t v, const Word *block) const {
  for (const int32_t t : graph.tiesOf[v]) {
    const CondensedTie &tie = graph.ties[t];
    if (!meets(tie.nodes.data(), block, graph.words)) {
      // At least two nodes are tied, so one is still outside.
      load.memory += tie.memory;
      load.reduce += tie.reduce;
      load.shared += tie.time;
    } else if (!leavesBut(tie.nodes.data(), block, graph.words, v)) {
      load.shared -= tie.time;
    }
  }
}

Nanos LoadRules::crossing(const Word *downSet) const {
  Nanos time = 0;
  for (const CondensedTensor &tensor : graph.tensors)
    if (has(downSet, tensor.producer) &&
        anyOutside(tensor.consumers, downSet, -1))
      time += tensor.time;
  return time;
}

} // namespace takt::graphcut
