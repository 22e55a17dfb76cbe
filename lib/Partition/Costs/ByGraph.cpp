//===- ByGraph.cpp - stages by planners of graphs -------------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// The placement of Tarnawski et al. 2020 (GraphProblem.h with what crosses
// added to the loads) and Piper. Both know one kind of link: where the cluster
// has two, the network between nodes.
//
//===----------------------------------------------------------------------===//
#include "Translate.h"

#include "takt/Partition/Costs/Piper.h"
#include "takt/Partition/GraphProblem.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace takt {

using namespace translate;

namespace {

/// Stages that Piper's planner looks at before it takes the best so far.
constexpr int64_t kPiperWork = int64_t(1) << 26;

const rt::Link &linkOf(const PartitionCluster &cluster) {
  return cluster.devices > cluster.devicesPerNode ? cluster.network
                                                  : cluster.intraNode;
}

Bytes keptBytes(const SegmentCost &segment) {
  return segment.weights + segment.gradients + segment.optimizerState;
}

void addStage(ModelledStages &found, const std::vector<int32_t> &segments,
              int64_t option) {
  StageChoice stage;
  stage.begin = int64_t(found.order.size());
  found.order.insert(found.order.end(), segments.begin(), segments.end());
  stage.end = int64_t(found.order.size());
  stage.option = option;
  found.stages.push_back(stage);
}

std::optional<ModelledStages>
byDnnPartitioning(const PartitionProblem &problem,
                  const std::vector<SegmentTensor> &tensors,
                  ModelFault &fault) {
  GraphProblem own;
  for (const SegmentCost &segment : problem.segments) {
    GraphNode node;
    node.name = segment.name;
    node.time = {segment.time.front()};
    // Its sizes are what a device holds of a node, whatever for.
    node.memory = keptBytes(segment) + segment.saved.front();
    own.nodes.push_back(std::move(node));
  }
  const rt::Link &link = linkOf(problem.cluster);
  for (const SegmentTensor &tensor : tensors)
    own.tensors.push_back(
        {tensor.producer, tensor.readers,
         tensor.bytes > 0 ? (tensor.gradient ? 2 : 1) * link.time(tensor.bytes)
                          : 0});
  own.devices = {
      {"device", problem.cluster.devices, problem.cluster.memory, true}};
  own.maxBlocks = problem.maxStages;
  own.costModel = GraphCostModel::Sum;
  if (auto wrong = own.check()) {
    fault.text = *wrong;
    return std::nullopt;
  }
  const GraphResult result = solveGraph(own);
  if (!result.partition) {
    fault = {"by the cost model 'dnn-partitioning': " +
                 result.infeasible.reason,
             !result.outOfWork};
    return std::nullopt;
  }
  ModelledStages found;
  for (const GraphBlock &block : result.partition->blocks)
    addStage(found, block.nodes, 0);
  found.step = toNanos(double(result.partition->objective) * 1e-9 *
                       double(problem.microBatches));
  return found;
}

PiperProblem piperProblem(const PartitionProblem &problem,
                          const std::vector<SegmentTensor> &tensors) {
  PiperProblem own;
  // Several tensors between two segments are one edge of both.
  std::map<std::pair<int32_t, int32_t>, double> edges;
  for (const SegmentTensor &tensor : tensors)
    for (const int32_t reader : tensor.readers)
      edges[{tensor.producer, reader}] += double(tensor.bytes);
  std::vector<size_t> in(problem.segments.size()), out(in.size());
  for (const auto &[ends, bytes] : edges) {
    own.edges.push_back({ends.first, ends.second, bytes});
    ++out[ends.first];
    ++in[ends.second];
  }
  for (size_t i = 0; i < problem.segments.size(); ++i) {
    const SegmentCost &segment = problem.segments[i];
    PiperVariant variant;
    variant.name = "plain";
    variant.seconds = double(segment.time.front()) * 1e-9;
    variant.parameterBytes = double(segment.gradients);
    variant.bytesPerSample = double(segment.saved.front());
    variant.fixedBytes = double(keptBytes(segment));
    variant.inBytes.assign(in[i], 0);
    variant.outBytes.assign(out[i], 0);
    own.nodes.push_back({segment.name, {{1, {std::move(variant)}}}});
  }
  const PartitionCluster &cluster = problem.cluster;
  own.devices = cluster.devices;
  own.memoryBytes = cluster.memory > 0 ? double(cluster.memory) : kAllBytes;
  own.bandwidth = rateOf(linkOf(cluster));
  own.samples = problem.microBatches;
  // Replicas share every micro-batch here, so there may be more than those.
  own.replicaOptions = problem.replicaOptions;
  own.maxReplicas = cluster.devices;
  return own;
}

std::optional<ModelledStages> byPiper(const PartitionProblem &problem,
                                      const std::vector<SegmentTensor> &tensors,
                                      ModelFault &fault) {
  const PiperProblem own = piperProblem(problem, tensors);
  if (auto wrong = own.check()) {
    fault.text = *wrong;
    return std::nullopt;
  }
  PiperSettings settings;
  settings.workLimit = kPiperWork;
  bool ruledOut = false;
  const auto plan = solvePiper(own, settings, &ruledOut);
  if (!plan) {
    fault = {fmt::format("by the cost model 'piper', {} devices of {} bytes "
                         "hold no stages of this model",
                         problem.cluster.devices, problem.cluster.memory),
             ruledOut};
    return std::nullopt;
  }
  ModelledStages found;
  for (const PiperStage &stage : plan->stages) {
    const auto option = std::find(problem.replicaOptions.begin(),
                                  problem.replicaOptions.end(), stage.replicas);
    addStage(found, stage.nodes, option - problem.replicaOptions.begin());
  }
  found.step = toNanos(plan->seconds * double(problem.microBatches));
  return found;
}

} // namespace

std::optional<ModelledStages>
graphStagesByModel(const PartitionProblem &problem, CostModel model,
                   const std::vector<SegmentTensor> &tensors,
                   ModelFault &fault) {
  fault = {refusal(problem, model)};
  if (fault.text.empty() && !plansGraphs(model))
    fault.text = fmt::format("the cost model '{}' plans chains and not graphs",
                             costModelName(model));
  if (fault.text.empty() && problem.replicaOptions.front() != 1)
    fault.text = fmt::format("the cost model '{}' needs times on one device",
                             costModelName(model));
  if (!fault.text.empty())
    return std::nullopt;
  return model == CostModel::Piper ? byPiper(problem, tensors, fault)
                                   : byDnnPartitioning(problem, tensors, fault);
}

} // namespace takt
