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

#include <algorithm>
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
    if (layer.profiled.trainable) {
      cost.gradients += stated;
      cost.optimizerState += states * stated;
    }
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

/// What lies around a segment: values that cross its end, and bytes of one
/// sample that cross both ends untouched.
struct Surroundings {
  std::vector<int32_t> crossing;
  std::vector<int32_t> through;
};

/// Walks the layers with the values made so far that are still to be read.
class Walk {
public:
  explicit Walk(const Graph &graph)
      : graph(graph), lastUse(graph.values.size(), -1) {
    for (size_t l = 0; l < graph.layers.size(); ++l)
      for (const int32_t id : graph.layers[l].inputs)
        lastUse[id] = int32_t(l);
  }

  Surroundings past(const Segment &segment) {
    Surroundings around;
    std::set<int32_t> touched;
    for (int32_t l = segment.begin; l < segment.end; ++l)
      touched.insert(graph.layers[l].inputs.begin(),
                     graph.layers[l].inputs.end());
    auto leaves = [&](int32_t id) { return lastUse[id] >= segment.end; };
    for (const int32_t id : alive)
      if (leaves(id) && !touched.count(id))
        around.through.push_back(id);
    for (int32_t l = segment.begin; l < segment.end; ++l)
      alive.push_back(graph.layers[l].output);
    alive.erase(std::remove_if(alive.begin(), alive.end(),
                               [&](int32_t id) { return !leaves(id); }),
                alive.end());
    around.crossing = alive;
    return around;
  }

private:
  const Graph &graph;
  std::vector<int32_t> lastUse;
  std::vector<int32_t> alive;
};

/// Shares of several values, no more than the largest that is counted.
Bytes shareOf(const Graph &graph, const std::vector<int32_t> &values,
              int64_t samples) {
  constexpr Bytes kTooMuch = Bytes(1) << 58;
  Bytes bytes = 0;
  for (const int32_t id : values)
    bytes = std::min(
        kTooMuch, bytes + shareBytes(graph.values[id].type.bytes(), samples));
  return bytes;
}

SegmentCost costOf(const Graph &graph, const Segment &segment,
                   const Surroundings &around, const rt::Training &training,
                   const CostTable &costs, const SegmentMemory &memory) {
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
    cost.workspace.push_back(memory.workspace(segment, samples) +
                             shareOf(graph, around.through, samples));
    cost.output.push_back(shareOf(graph, around.crossing, samples));
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
  problem.continuous = training.mode == rt::Mode::Inference;
  problem.microBatches = problem.continuous ? 1 : training.microBatches;
  problem.replicaOptions = costs.replicaOptions;
  Walk walk(graph);
  for (const Segment &segment : segments) {
    const Surroundings around = walk.past(segment);
    SegmentCost cost = costOf(graph, segment, around, training, costs, memory);
    cost.gradientCrosses = around.crossing.empty();
    for (const int32_t id : around.crossing) {
      const Bytes one = graph.values[id].type.bytes();
      const int64_t samples = training.microBatchSize();
      const Bytes aligned = shareBytes(one, samples); // saturates
      cost.outputWhole += aligned / samples < one ? aligned : one * samples;
      cost.gradientCrosses = cost.gradientCrosses || needsGrad[id];
    }
    problem.segments.push_back(std::move(cost));
  }
  if (!problem.segments.empty()) // one loss value of every micro-batch
    problem.segments.back().weights +=
        shareBytes(rt::kAlignment, training.microBatches);
  return problem;
}

} // namespace takt
