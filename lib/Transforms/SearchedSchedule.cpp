//===- SearchedSchedule.cpp - schedules that are searched for -------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Reads stages, costs and memory into a search problem. The chain problem of
// stage assignment is posed once more, as it knows what a stage needs for any
// number of micro-batches held.
//
//===----------------------------------------------------------------------===//
#include "SearchedSchedule.h"

#include "Model/ModelBridge.h"
#include "takt/Cost/Cost.h"

#include <algorithm>

using namespace takt;

namespace {

struct Posed {
  PartitionProblem chain;
  Partition stages;
  CostTable costs;
};

std::optional<Posed> pose(const pipe::ProgramParts &parts, std::string &error) {
  std::optional<CostTable> costs = model::exportCosts(parts.graph);
  if (!costs) {
    error = "the layers have no costs; run takt-annotate-costs first";
    return std::nullopt;
  }
  std::optional<PartitionCluster> cluster =
      pipe::exportPartitionCluster(parts.cluster, error);
  if (!cluster)
    return std::nullopt;
  const Graph graph = model::exportGraph(parts.graph);
  Posed posed;
  posed.chain =
      partitionProblem(graph, chainSegments(graph),
                       model::exportTraining(parts.graph), *costs, *cluster);
  // Of the constraints only the headroom is left to keep: stages are settled.
  const auto module = parts.program->getParentOfType<mlir::ModuleOp>();
  std::vector<ConstraintSpec> headrooms = pipe::exportConstraints(module);
  headrooms.erase(
      std::remove_if(headrooms.begin(), headrooms.end(),
                     [](const ConstraintSpec &constraint) {
                       return constraint.kind != ConstraintKind::HeadroomBytes &&
                              constraint.kind != ConstraintKind::HeadroomPpm;
                     }),
      headrooms.end());
  if (auto kept = sideConstraints(graph, {}, headrooms, error))
    if (auto constrained = constrain(posed.chain, *kept))
      posed.chain.cluster.memory = constrained->cluster.memory;
  posed.stages =
      pipe::exportPartition(parts.program, posed.chain.replicaOptions);
  posed.costs = std::move(*costs);
  for (const StageChoice &stage : posed.stages.stages)
    if (stage.option < 0) {
      error = "the layers have no costs for the replicas of a stage";
      return std::nullopt;
    }
  return posed;
}

Bytes memoryOf(const Posed &posed, const StageChoice &stage, int64_t held) {
  return stageMemory(posed.chain, stage.begin, stage.end, stage.option, held);
}

/// Most micro-batches that fit; at least what the stage was assigned with.
int32_t mostInFlight(const Posed &posed, const StageChoice &stage) {
  const Bytes capacity = posed.chain.cluster.memory;
  int64_t held = posed.chain.microBatches;
  while (capacity != 0 && held > stage.inFlight &&
         memoryOf(posed, stage, held) > capacity)
    --held;
  return int32_t(held);
}

SearchStage searchStage(const Posed &posed, size_t s, pipe::StageOp op) {
  const StageChoice &choice = posed.stages.stages[s];
  SearchStage stage;
  stage.forward = stage.inputGrad = stage.weightGrad = 0;
  for (int32_t l = op.getLayerBegin(); l < op.getLayerEnd(); ++l) {
    const LayerTimes &times = posed.costs.layers[l];
    stage.forward += times.forward[choice.option];
    stage.inputGrad += times.inputGrad[choice.option];
    stage.weightGrad += times.weightGrad[choice.option];
  }
  // Frozen stages have no backward work; the actions stay, with a nanosecond.
  for (Nanos *time : {&stage.forward, &stage.inputGrad, &stage.weightGrad})
    *time = std::max<Nanos>(*time, 1);
  auto oneWay = [&](size_t boundary) {
    const StageChoice &before = posed.stages.stages[boundary];
    const bool both = posed.chain.segments[before.end - 1].gradientCrosses;
    return before.transfer / (both ? 2 : 1);
  };
  if (s + 1 < posed.stages.stages.size())
    stage.toNext = oneWay(s);
  if (s > 0)
    stage.toPrevious = oneWay(s - 1);
  stage.tail = choice.allReduce;
  stage.mostInFlight = mostInFlight(posed, choice);
  return stage;
}

} // namespace

bool takt::isSearchedSchedule(const std::string &name) {
  return name == "optimal" || name == "optimal-split";
}

std::optional<SearchResult>
takt::searchProgram(const pipe::ProgramParts &parts, const std::string &name,
                    const solver::Settings &settings, std::string &error) {
  std::optional<Posed> posed = pose(parts, error);
  if (!posed)
    return std::nullopt;
  SearchProblem problem;
  problem.split = name == "optimal-split";
  problem.microBatches = int32_t(posed->chain.microBatches);
  pipe::ProgramOp program = parts.program;
  const std::vector<pipe::StageOp> stages = program.getStages();
  for (size_t s = 0; s < stages.size(); ++s)
    problem.stages.push_back(searchStage(*posed, s, stages[s]));
  if (std::optional<std::string> fault = problem.check()) {
    error = *fault;
    return std::nullopt;
  }
  SearchResult result = searchSchedule(problem, settings);
  if (std::optional<std::string> fault = verify(problem, result)) {
    error = "the schedule found fails its check: " + *fault;
    return std::nullopt;
  }
  for (size_t s = 0; s < stages.size(); ++s) {
    pipe::StageOp stage = stages[s];
    const int32_t peak = peakInFlight(result.schedule.roles[s]);
    if (peak <= stage.getInFlight())
      continue;
    stage.setInFlight(peak);
    stage.setMemoryBytes(memoryOf(*posed, posed->stages.stages[s], peak));
  }
  return result;
}
