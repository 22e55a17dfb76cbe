//===- Evaluate.cpp - the figures of an answer on a graph -----------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// By the definitions in the header: one pass over nodes, ties and tensors.
//
//===----------------------------------------------------------------------===//

#include "takt/Partition/GraphProblem.h"

#include <algorithm>

namespace takt {

namespace {

/// Which block holds each node, and the figures of all blocks from it.
class Figures {
public:
  Figures(const GraphProblem &problem, GraphPartition &partition)
      : problem(problem), blocks(partition.blocks),
        blockOf(problem.nodes.size(), 0) {
    for (size_t b = 0; b < blocks.size(); ++b)
      for (const int32_t v : blocks[b].nodes)
        blockOf[v] = int32_t(b);
  }

  void fill() {
    int64_t devices = 0;
    for (size_t b = blocks.size(); b-- > 0;) {
      GraphBlock &block = blocks[b];
      devices += block.replicas;
      block.work = block.in = block.out = block.shared = block.reduce = 0;
      block.memory = saved = 0;
      block.inFlight = inFlight(block.replicas, devices);
      for (const int32_t v : block.nodes)
        add(block, problem.nodes[v]);
      block.memory += saved * block.inFlight;
    }
    for (const GraphTie &tie : problem.ties)
      addTie(tie);
    for (const GraphTensor &tensor : problem.tensors)
      addTensor(tensor);
    for (GraphBlock &block : blocks)
      finish(block);
  }

private:
  int64_t inFlight(int64_t replicas, int64_t devices) const {
    const int64_t most =
        problem.inFlight == InFlightPolicy::GPipe
            ? problem.microBatches
            : std::min(devices, problem.microBatches * replicas);
    return (most + replicas - 1) / replicas;
  }

  void add(GraphBlock &block, const GraphNode &node) {
    block.work += std::max<Nanos>(node.time[block.device], 0);
    block.reduce += node.reduce;
    block.memory += node.memory;
    saved += node.saved;
  }

  std::vector<int32_t> blocksOf(const std::vector<int32_t> &nodes) const {
    std::vector<int32_t> list;
    for (const int32_t v : nodes)
      list.push_back(blockOf[v]);
    std::sort(list.begin(), list.end());
    list.erase(std::unique(list.begin(), list.end()), list.end());
    return list;
  }

  void addTie(const GraphTie &tie) {
    const std::vector<int32_t> holders = blocksOf(tie.nodes);
    for (const int32_t b : holders) {
      blocks[b].memory += tie.memory;
      blocks[b].reduce += tie.reduce;
      if (holders.size() > 1)
        blocks[b].shared += tie.time;
    }
  }

  void addTensor(const GraphTensor &tensor) {
    const int32_t home = blockOf[tensor.producer];
    std::vector<int32_t> readers = blocksOf(tensor.consumers);
    readers.erase(std::remove(readers.begin(), readers.end(), home),
                  readers.end());
    if (readers.empty())
      return;
    blocks[home].out += tensor.time;
    if (problem.costModel != GraphCostModel::Relayed) {
      for (const int32_t b : readers)
        blocks[b].in += tensor.time;
      return;
    }
    for (int32_t b = home + 1; b <= readers.back(); ++b) {
      blocks[b].in += tensor.time;
      if (b < readers.back())
        blocks[b].out += tensor.time;
    }
  }

  void finish(GraphBlock &block) const {
    if (!problem.devices[block.device].transfers)
      block.in = block.out = block.shared = 0;
    const int64_t r = block.replicas;
    block.reduce = r > 1 ? (2 * (r - 1) * block.reduce + r - 1) / r : 0;
    Nanos load = block.work + block.shared + block.reduce;
    if (problem.costModel == GraphCostModel::Sum)
      load += block.in + block.out;
    else
      load = std::max({load, block.in, block.out});
    block.period = (load + r - 1) / r;
  }

  const GraphProblem &problem;
  std::vector<GraphBlock> &blocks;
  std::vector<int32_t> blockOf;
  Bytes saved = 0;
};

} // namespace

void evaluate(const GraphProblem &problem, GraphPartition &partition) {
  Figures(problem, partition).fill();
  partition.objective = 0;
  for (const GraphBlock &block : partition.blocks)
    partition.objective = std::max(partition.objective, block.period);
}

} // namespace takt
