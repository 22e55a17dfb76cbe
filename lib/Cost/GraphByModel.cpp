//===- GraphByModel.cpp - stages of a graph by a published model ----------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// The planner sees layers and values; its stages are cuts of the order that it
// puts the layers in.
//
//===----------------------------------------------------------------------===//
#include "takt/Cost/GraphStages.h"

#include <algorithm>

namespace takt {

std::vector<SegmentTensor> layerTensors(const Graph &graph,
                                        const rt::Training &training) {
  const std::vector<bool> needsGrad = valuesNeedingGrad(graph);
  std::vector<SegmentTensor> tensors;
  std::vector<std::vector<int32_t>> readers(graph.values.size());
  for (size_t l = 0; l < graph.layers.size(); ++l)
    for (const int32_t id : graph.layers[l].inputs)
      if (readers[id].empty() || readers[id].back() != int32_t(l))
        readers[id].push_back(int32_t(l));
  for (size_t id = 0; id < graph.values.size(); ++id) {
    const Value &value = graph.values[id];
    if (value.producer < 0 || readers[id].empty())
      continue;
    // Sizes whose product is out of range are refused by the planner.
    const double bytes =
        double(value.type.bytes()) * double(training.microBatchSize());
    tensors.push_back({value.producer, std::move(readers[id]),
                       Bytes(std::min(bytes, 9e18)), needsGrad[id]});
  }
  for (const auto &[before, after] : fixedOrder(graph))
    tensors.push_back({before, {after}, 0, false});
  return tensors;
}

std::optional<ModelledGraphStages>
graphStagesByModel(const Graph &graph, const rt::Training &training,
                   const CostTable &costs, const PartitionProblem &problem,
                   CostModel model, int64_t workLimit, ModelFault &fault) {
  const auto modelled =
      graphStagesByModel(problem, model, layerTensors(graph, training), fault);
  if (!modelled)
    return std::nullopt;
  ModelledGraphStages answer;
  answer.step = modelled->step;
  answer.found = solveGraphStages(graph, training, costs, problem, {},
                                  workLimit, solver::Settings(), fault.text);
  if (!fault.text.empty())
    return std::nullopt;
  GraphStages &found = answer.found;
  if (!found.result.partition)
    return answer;
  found.staged = stagedGraph(graph, costs, modelled->order);
  found.problem = problem;
  found.problem.segments =
      partitionProblem(found.staged.graph, layerSegments(found.staged.graph),
                       training, found.staged.costs, problem.cluster)
          .segments;
  Partition partition;
  partition.stages = modelled->stages;
  partition.method = std::string("cost model ") + costModelName(model);
  evaluate(found.problem, partition);
  partition.bound =
      std::min(found.result.partition->bound, partition.objective);
  found.result.partition = std::move(partition);
  return answer;
}

} // namespace takt
