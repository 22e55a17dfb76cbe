//===- BruteForce.cpp - every acyclic partition, one by one ---------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// The oracle of the solver's tests. A partition is acyclic exactly if its
// blocks can be numbered so that no ordered tensor leads to a smaller number,
// so all such numberings are tried: every acyclic partition in every order of
// its blocks, on every kind of device and number of replicas. Judged by
// evaluate(), which tests hold against verify().
//
//===----------------------------------------------------------------------===//

#include "takt/Partition/GraphProblem.h"

#include <algorithm>

namespace takt {

namespace {

class Enumeration {
public:
  explicit Enumeration(const GraphProblem &problem)
      : problem(problem), nodes(problem.nodes.size()), label(nodes, 0),
        used(problem.devices.size(), 0) {
    int64_t devices = 0;
    for (const DeviceKind &kind : problem.devices)
      devices += kind.count;
    most = problem.maxBlocks > 0 ? problem.maxBlocks : devices;
    most = std::min({most, devices, nodes});
  }

  GraphPartition run() {
    for (int64_t blocks = 1; blocks <= most; ++blocks)
      if (!problem.exactBlocks || blocks == problem.maxBlocks) {
        count = blocks;
        number(0);
      }
    return best;
  }

private:
  /// Numbers node v and all after it.
  void number(int64_t v) {
    if (v == nodes) {
      if (isAllowed())
        chooseDevices();
      return;
    }
    for (int64_t b = 0; b < count; ++b) {
      label[v] = b;
      number(v + 1);
    }
  }

  bool isAllowed() const {
    for (int64_t b = 0; b < count; ++b)
      if (!std::count(label.begin(), label.end(), b))
        return false;
    for (const GraphTensor &tensor : problem.tensors)
      for (const int32_t reader : tensor.consumers)
        if (tensor.ordered && label[tensor.producer] > label[reader])
          return false;
    for (const std::vector<int32_t> &group : problem.together)
      for (const int32_t v : group)
        if (label[v] != label[group.front()])
          return false;
    return true;
  }

  void chooseDevices() {
    current = GraphPartition();
    current.blocks.resize(count);
    for (int64_t v = 0; v < nodes; ++v)
      current.blocks[label[v]].nodes.push_back(int32_t(v));
    run(0);
  }

  /// Devices for block b and all after it.
  void run(int64_t b) {
    if (b == count) {
      judge();
      return;
    }
    for (size_t kind = 0; kind < problem.devices.size(); ++kind) {
      bool can = true;
      for (const int32_t v : current.blocks[b].nodes)
        can &= problem.nodes[v].time[kind] != kCannotRun;
      for (const int64_t replicas : problem.replicaOptions) {
        if (!can || used[kind] + replicas > problem.devices[kind].count)
          continue;
        used[kind] += replicas;
        current.blocks[b].device = int32_t(kind);
        current.blocks[b].replicas = replicas;
        run(b + 1);
        used[kind] -= replicas;
      }
    }
  }

  void judge() {
    evaluate(problem, current);
    for (const GraphBlock &block : current.blocks) {
      const Bytes memory = problem.devices[block.device].memory;
      if (memory != 0 && block.memory > memory)
        return;
    }
    ++work;
    if (!best.blocks.empty() && best.objective <= current.objective)
      return;
    best = current;
    best.bound = best.objective;
  }

  const GraphProblem &problem;
  const int64_t nodes;
  std::vector<int64_t> label, used;
  int64_t most = 0, count = 0, work = 0;
  GraphPartition current, best;

public:
  int64_t judged() const { return work; }
};

} // namespace

GraphResult bruteForceGraph(const GraphProblem &problem) {
  GraphResult result;
  if (auto fault = problem.check()) {
    result.infeasible.reason = *fault;
    return result;
  }
  Enumeration enumeration(problem);
  GraphPartition best = enumeration.run();
  if (best.blocks.empty()) {
    result.infeasible.reason = "no acyclic partition keeps all limits";
    return result;
  }
  best.work = enumeration.judged();
  best.rung = GraphRung::DownSets;
  result.partition = std::move(best);
  return result;
}

} // namespace takt
