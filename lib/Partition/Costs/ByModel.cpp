//===- ByModel.cpp - stages by a published model --------------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Names and refusals, and the chains of PipeDream and DAPPLE. Devices stay in
// their order, so a stage may not skip one: of DAPPLE's placements that is
// append first.
//
//===----------------------------------------------------------------------===//
#include "Translate.h"

#include "takt/Partition/Costs/Dapple.h"
#include "takt/Partition/Costs/PipeDream.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace takt {

namespace {

constexpr CostModel kModels[] = {
    CostModel::Takt,  CostModel::PipeDream,       CostModel::Dapple,
    CostModel::TwoBw, CostModel::DnnPartitioning, CostModel::Piper};

} // namespace

const char *costModelName(CostModel model) {
  switch (model) {
  case CostModel::Takt:
    return "takt";
  case CostModel::PipeDream:
    return "pipedream";
  case CostModel::Dapple:
    return "dapple";
  case CostModel::TwoBw:
    return "2bw";
  case CostModel::DnnPartitioning:
    return "dnn-partitioning";
  case CostModel::Piper:
    return "piper";
  }
  return "";
}

std::optional<CostModel> parseCostModel(const std::string &name) {
  for (const CostModel model : kModels)
    if (name == costModelName(model))
      return model;
  return std::nullopt;
}

std::string costModelNames() {
  std::string names;
  for (const CostModel model : kModels)
    names += fmt::format("{}'{}'",
                         model == CostModel::Takt    ? ""
                         : model == CostModel::Piper ? " and "
                                                     : ", ",
                         costModelName(model));
  return names;
}

bool plansGraphs(CostModel model) {
  return model == CostModel::DnnPartitioning || model == CostModel::Piper;
}

double translate::rateOf(const rt::Link &link) {
  return link.bytesPerSecond > 0 ? link.bytesPerSecond : kFreeRate;
}

Nanos translate::toNanos(double seconds) {
  return Nanos(std::llround(std::min(seconds * 1e9, 9e18)));
}

std::string translate::refusal(const PartitionProblem &problem,
                               CostModel model) {
  if (model == CostModel::Takt)
    return "'takt' is no published model";
  const char *wish = problem.cuts                   ? "cuts"
                     : problem.replicas             ? "a number of replicas"
                     : !problem.rankOfStage.empty() ? "several stages on a rank"
                     : problem.stages != 0 ? "an exact number of stages"
                                           : nullptr;
  if (!wish && model != CostModel::Dapple &&
      model != CostModel::DnnPartitioning && problem.maxStages != 0)
    wish = "a largest number of stages";
  if (!wish && (!problem.apart.empty() || !problem.pins.empty()))
    wish = "side constraints";
  if (!wish)
    for (size_t i = 0; i + 1 < problem.segments.size(); ++i)
      if (!problem.segments[i].mayCutAfter)
        wish = "side constraints";
  if (wish)
    return fmt::format("the cost model '{}' does not know {}",
                       costModelName(model), wish);
  const int64_t within =
      std::min(problem.cluster.devices, problem.cluster.devicesPerNode);
  if (!plansGraphs(model) && problem.cluster.devices % within != 0)
    return "the cost models need nodes with equal numbers of devices";
  return {};
}

namespace {

using namespace translate;

std::vector<ProfiledNode> layersOf(const PartitionProblem &problem,
                                   const std::vector<Nanos> &forward) {
  std::vector<ProfiledNode> layers;
  for (size_t i = 0; i < problem.segments.size(); ++i) {
    const SegmentCost &segment = problem.segments[i];
    ProfiledNode layer;
    layer.name = segment.name;
    layer.forward = double(forward[i]) * 1e-9;
    layer.backward = double(segment.time.front() - forward[i]) * 1e-9;
    layer.outputBytes = double(segment.outputWhole);
    layer.parameterBytes = double(segment.gradients);
    layers.push_back(std::move(layer));
  }
  return layers;
}

class Translation {
public:
  Translation(const PartitionProblem &problem,
              const std::vector<Nanos> &forward, ModelFault &fault)
      : problem(problem), layers(layersOf(problem, forward)), fault(fault) {}

  std::optional<ModelledStages> byPipeDream() {
    PipeDreamProblem own;
    own.states = chainStates(layers);
    own.replicaOptions = problem.replicaOptions;
    const PartitionCluster &cluster = problem.cluster;
    const int64_t within = std::min(cluster.devices, cluster.devicesPerNode);
    own.levels = {{within, rateOf(cluster.intraNode)}};
    if (cluster.devices > within)
      own.levels.push_back({cluster.devices / within, rateOf(cluster.network)});
    if (auto fault = own.check())
      return refuse(*fault);
    const auto plan = solvePipeDream(own);
    if (!plan)
      return refuse(noReplicas());
    ModelledStages found;
    for (const PipeDreamStage &stage : flatten(*plan))
      if (!add(found, stage.begin, stage.end, stage.replicas))
        return std::nullopt;
    found.step = toNanos(plan->seconds * double(problem.microBatches));
    return found;
  }

  std::optional<ModelledStages> byDapple() {
    DappleProblem own;
    own.layers = layers;
    own.microBatches = problem.microBatches;
    const PartitionCluster &cluster = problem.cluster;
    own.cluster.devicesPerMachine =
        std::min(cluster.devices, cluster.devicesPerNode);
    own.cluster.machines = cluster.devices / own.cluster.devicesPerMachine;
    own.cluster.withinRate = rateOf(cluster.intraNode);
    own.cluster.acrossRate = own.cluster.reduceRate = rateOf(cluster.network);
    own.cluster.sharedNetwork = false; // rates are those of a device
    own.replicaOptions = problem.replicaOptions;
    own.placements = {DapplePlacement::Append};
    own.maxStages = problem.maxStages;
    if (auto fault = own.check())
      return refuse(*fault);
    const auto plan = solveDapple(own);
    if (!plan)
      return refuse(noReplicas());
    ModelledStages found;
    for (const DappleStage &stage : plan->stages)
      if (!add(found, stage.begin, stage.end, int64_t(stage.devices.size())))
        return std::nullopt;
    found.step = toNanos(plan->seconds);
    return found;
  }

private:
  std::nullopt_t refuse(std::string why) {
    fault.text = std::move(why);
    return std::nullopt;
  }

  std::string noReplicas() const {
    return fmt::format("no stages on exactly {} devices: replicas have to "
                       "divide a micro-batch of {} samples or fewer",
                       problem.cluster.devices, problem.replicaOptions.back());
  }

  bool add(ModelledStages &found, int32_t begin, int32_t end,
           int64_t replicas) {
    const auto &options = problem.replicaOptions;
    const auto at = std::find(options.begin(), options.end(), replicas);
    if (at == options.end()) {
      fault.text = fmt::format(
          "{} replicas of a stage do not divide a micro-batch", replicas);
      return false;
    }
    StageChoice stage;
    stage.begin = begin;
    stage.end = end;
    stage.option = at - options.begin();
    found.stages.push_back(stage);
    return true;
  }

  const PartitionProblem &problem;
  const std::vector<ProfiledNode> layers;
  ModelFault &fault;
};

} // namespace

std::optional<ModelledStages> stagesByModel(const PartitionProblem &problem,
                                            CostModel model,
                                            const std::vector<Nanos> &forward,
                                            ModelFault &fault) {
  fault = {refusal(problem, model)};
  if (!fault.text.empty())
    return std::nullopt;
  if (model == CostModel::TwoBw)
    return stagesOfBlocks(problem, fault);
  if (model == CostModel::PipeDream)
    return Translation(problem, forward, fault).byPipeDream();
  if (model == CostModel::Dapple)
    return Translation(problem, forward, fault).byDapple();
  std::vector<SegmentTensor> tensors;
  for (size_t i = 0; i + 1 < problem.segments.size(); ++i) {
    const SegmentCost &segment = problem.segments[i];
    tensors.push_back({int32_t(i),
                       {int32_t(i) + 1},
                       segment.outputWhole,
                       segment.gradientCrosses});
  }
  return graphStagesByModel(problem, model, tensors, fault);
}

} // namespace takt
