//===- ChainProblem.cpp - a costed model as a chain to cut ----------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Adds up times and bytes of the layers of each segment.
//
//===----------------------------------------------------------------------===//

#include "SegmentMemory.h"

#include "takt/Cost/Cost.h"

#include <fmt/format.h>

#include <set>

namespace takt {

namespace {

Bytes paramBytes(const Graph &graph, int32_t param) {
  return shareBytes(
      TensorType{graph.params[param].shape, DType::Float32}.bytes(), 1);
}

/// Parameters with their gradients, one accumulator a use, and optimizer state.
void addParameters(const Graph &graph, const Segment &segment, int states,
                   SegmentCost &cost) {
  std::set<int32_t> counted;
  for (int32_t l = segment.begin; l < segment.end; ++l) {
    const Layer &layer = graph.layers[l];
    const Bytes stated = shareBytes(layer.profiled.parameters, 1);
    cost.weights += stated;
    cost.gradients += stated;
    cost.optimizerState += states * stated;
    for (const int32_t param : layer.params) {
      const Bytes bytes = paramBytes(graph, param);
      const bool trainable = graph.params[param].trainable;
      if (trainable)
        cost.gradients += bytes;
      if (!counted.insert(param).second)
        continue;
      cost.weights += bytes;
      if (trainable)
        cost.optimizerState += states * bytes;
    }
  }
}

SegmentCost costOf(const Graph &graph, const Segment &segment,
                   const rt::Training &training, const CostTable &costs,
                   const SegmentMemory &memory) {
  SegmentCost cost;
  const std::string &first = graph.layers[segment.begin].name;
  cost.name =
      segment.end - segment.begin == 1
          ? first
          : fmt::format("{} .. {}", first, graph.layers[segment.end - 1].name);
  for (size_t o = 0; o < costs.replicaOptions.size(); ++o) {
    const int64_t samples = training.microBatchSize() / costs.replicaOptions[o];
    Nanos time = 0, update = 0;
    for (int32_t l = segment.begin; l < segment.end; ++l) {
      const LayerTimes &times = costs.layers[l];
      time += times.forward[o] + times.inputGrad[o] + times.weightGrad[o];
      update += times.update;
    }
    cost.time.push_back(time);
    cost.update.push_back(update);
    cost.saved.push_back(memory.saved(segment, samples));
    cost.workspace.push_back(memory.workspace(segment, samples));
    cost.output.push_back(
        segment.output < 0
            ? 0
            : shareBytes(graph.values[segment.output].type.bytes(), samples));
  }
  addParameters(graph, segment, optimizerStates(training.optimizer), cost);
  return cost;
}

} // namespace

PartitionProblem partitionProblem(const Graph &graph,
                                  const std::vector<Segment> &segments,
                                  const rt::Training &training,
                                  const CostTable &costs,
                                  const PartitionCluster &cluster) {
  const std::vector<bool> needsGrad = valuesNeedingGrad(graph);
  const SegmentMemory memory(graph);
  PartitionProblem problem;
  problem.cluster = cluster;
  problem.microBatches = training.microBatches;
  problem.replicaOptions = costs.replicaOptions;
  for (const Segment &segment : segments) {
    SegmentCost cost = costOf(graph, segment, training, costs, memory);
    if (segment.output >= 0) {
      const Bytes one = graph.values[segment.output].type.bytes();
      const int64_t samples = training.microBatchSize();
      const Bytes aligned = shareBytes(one, samples); // saturates
      cost.outputWhole = aligned / samples < one ? aligned : one * samples;
      cost.gradientCrosses = needsGrad[segment.output];
    }
    problem.segments.push_back(std::move(cost));
  }
  if (!problem.segments.empty()) // one loss value of every micro-batch
    problem.segments.back().weights +=
        shareBytes(rt::kAlignment, training.microBatches);
  return problem;
}

} // namespace takt
