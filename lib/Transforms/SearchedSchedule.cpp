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

#include "PlannedStep.h"

#include "Coll/CollBridge.h"
#include "Model/ModelBridge.h"
#include "takt/Cost/Cost.h"
#include "takt/Lower/Lower.h"

#include <algorithm>
#include <utility>

using namespace takt;

namespace {

struct Posed {
  PartitionProblem chain;
  Partition stages;
  std::vector<CostTable> costs; ///< by stage, of its kind of device
  std::vector<Bytes> capacity;  ///< likewise; 0: unlimited
};

std::optional<Posed> pose(const pipe::ProgramParts &parts, std::string &error) {
  pipe::StagedModel staged = pipe::exportModel(parts);
  std::optional<CostTable> &costs = staged.costs;
  if (!costs) {
    error = "the layers have no costs; run takt-annotate-costs first";
    return std::nullopt;
  }
  const Graph &graph = staged.graph;
  Posed posed;
  posed.chain = partitionProblem(
      graph, staged.segments, model::exportTraining(parts.graph), *costs, {});
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
  const auto kept = sideConstraints(graph, {}, headrooms, error);
  pipe::ClusterOp cluster = parts.cluster;
  pipe::ProgramOp program = parts.program;
  for (pipe::StageOp stage : program.getStages()) {
    const llvm::StringRef kind =
        cluster.getNodeOf(stage.getDevices().front()).second.getDevice();
    posed.chain.cluster.memory = cluster.lookupDevice(kind).getMemory();
    if (kept)
      if (auto constrained = constrain(posed.chain, *kept))
        posed.chain.cluster.memory = constrained->cluster.memory;
    posed.capacity.push_back(posed.chain.cluster.memory);
    std::optional<CostTable> own = pipe::exportCosts(parts, kind);
    if (!own) {
      error =
          "the layers have no costs on devices of kind '" + kind.str() + "'";
      return std::nullopt;
    }
    posed.costs.push_back(std::move(*own));
  }
  posed.stages =
      pipe::exportPartition(parts.program, posed.chain.replicaOptions);
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
int32_t mostInFlight(const Posed &posed, size_t s) {
  const StageChoice &stage = posed.stages.stages[s];
  const Bytes capacity = posed.capacity[s];
  int64_t held = posed.chain.microBatches;
  while (capacity != 0 && held > stage.inFlight &&
         memoryOf(posed, stage, held) > capacity)
    --held;
  return int32_t(held);
}

bool gradientCrosses(const Posed &posed, size_t boundary) {
  const StageChoice &before = posed.stages.stages[boundary];
  return posed.chain.segments[before.end - 1].gradientCrosses;
}

SearchStage searchStage(const Posed &posed, size_t s, pipe::StageOp op) {
  const StageChoice &choice = posed.stages.stages[s];
  SearchStage stage;
  stage.forward = stage.inputGrad = stage.weightGrad = 0;
  for (int32_t l = op.getLayerBegin(); l < op.getLayerEnd(); ++l) {
    const LayerTimes &times = posed.costs[s].layers[l];
    stage.forward += times.forward[choice.option];
    stage.inputGrad += times.inputGrad[choice.option];
    stage.weightGrad += times.weightGrad[choice.option];
  }
  // Frozen stages have no backward work; the actions stay, with a nanosecond.
  for (Nanos *time : {&stage.forward, &stage.inputGrad, &stage.weightGrad})
    *time = std::max<Nanos>(*time, 1);
  auto oneWay = [&](size_t boundary) {
    return posed.stages.stages[boundary].transfer /
           (gradientCrosses(posed, boundary) ? 2 : 1);
  };
  if (s + 1 < posed.stages.stages.size())
    stage.toNext = oneWay(s);
  if (s > 0 && gradientCrosses(posed, s - 1))
    stage.toPrevious = oneWay(s - 1);
  stage.tail = choice.allReduce;
  stage.mostInFlight = mostInFlight(posed, s);
  return stage;
}

std::vector<SearchStage> searchStages(const Posed &posed,
                                      pipe::ProgramOp program) {
  const std::vector<pipe::StageOp> stages = program.getStages();
  std::vector<SearchStage> found;
  for (size_t s = 0; s < stages.size(); ++s)
    found.push_back(searchStage(posed, s, stages[s]));
  return found;
}

HeldUntil heldUntil(int8_t phase, HeldUntil none) {
  return phase < 0 ? none : HeldUntil(phase);
}

/// How long the stages need their messages' buffers.
bool setBuffers(const pipe::ProgramParts &parts, SearchProblem &problem,
                std::string &error) {
  const std::optional<LoweringProblem> stages =
      coll::exportStages(parts, error);
  if (!stages)
    return false;
  problem.limitedBuffers = true;
  for (size_t s = 0; s < problem.stages.size(); ++s) {
    const MessageLives lives =
        messageLives(*stages, int32_t(s), problem.split);
    SearchStage &stage = problem.stages[s];
    stage.inputHeld = heldUntil(lives.input, HeldUntil::Forward);
    stage.outputHeld = heldUntil(lives.output, HeldUntil::Forward);
    stage.outputGradHeld = heldUntil(lives.outputGrad, HeldUntil::InputGrad);
    stage.inputGradHeld = heldUntil(lives.inputGrad, HeldUntil::InputGrad);
  }
  return true;
}

/// The search's model leaves out what devices share, sums of tied weights and
/// the like: as plans, what it found and the generators' schedules are compared
/// once more.
bool takeBestPlan(mlir::ModuleOp module, const SearchProblem &problem,
                  SearchResult &result, std::string &error) {
  std::vector<Schedule> candidates = generatedSchedules(problem);
  candidates.insert(candidates.begin(), result.schedule);
  candidates.front().name = result.method;
  // What does not fit comes after all that does.
  std::optional<std::pair<bool, Nanos>> least;
  for (Schedule &candidate : candidates) {
    const std::optional<PlannedStep> planned =
        planStep(module, candidate, error);
    if (!planned)
      continue;
    const std::pair<bool, Nanos> own{!planned->fits, planned->step};
    if (least && own >= *least)
      continue;
    least = own;
    result.method = candidate.name;
    candidate.name = result.schedule.name;
    result.schedule = std::move(candidate);
  }
  if (!least)
    return false;
  result.makespan = *makespan(problem, result.schedule);
  return true;
}

} // namespace

bool takt::isSearchedSchedule(const std::string &name) {
  return name == "optimal" || name == "optimal-split";
}

std::optional<std::vector<SearchStage>>
takt::stageTimes(const pipe::ProgramParts &parts, std::string &error) {
  const std::optional<Posed> posed = pose(parts, error);
  if (!posed)
    return std::nullopt;
  return searchStages(*posed, parts.program);
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
  problem.stages = searchStages(*posed, program);
  if (std::optional<std::string> fault = problem.check()) {
    error = *fault;
    return std::nullopt;
  }
  if (!setBuffers(parts, problem, error))
    return std::nullopt;
  SearchResult result = searchSchedule(problem, settings);
  if (!takeBestPlan(parts.program->getParentOfType<mlir::ModuleOp>(), problem,
                    result, error))
    return std::nullopt;
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
