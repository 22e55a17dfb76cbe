//===- FamilySchedule.cpp - published schedules for a program -------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Reads stages, their devices and their times into a problem for generators. A
// micro-batch counts as one wherever it is held, until its weight gradient is
// made: so memory was planned for it.
//
//===----------------------------------------------------------------------===//
#include "FamilySchedule.h"

#include "SearchedSchedule.h"

#include "Model/ModelBridge.h"
#include "takt/Schedule/Pipeline.h"
#include "takt/Transforms/ScheduleBounds.h"

#include <fmt/format.h>

#include <algorithm>

using namespace takt;

namespace {

/// Rank of every stage, in the order of their first stages: those that share
/// devices share a rank.
std::vector<int32_t> ranksOf(std::vector<pipe::StageOp> stages) {
  std::vector<int32_t> rankOf;
  int32_t ranks = 0;
  for (size_t s = 0; s < stages.size(); ++s) {
    int32_t rank = ranks;
    for (size_t first = 0; first < s && rank == ranks; ++first)
      if (stages[first].getDevices() == stages[s].getDevices())
        rank = rankOf[first];
    ranks = std::max(ranks, rank + 1);
    rankOf.push_back(rank);
  }
  return rankOf;
}

PipelineProblem problemOf(const pipe::ProgramParts &parts,
                          const std::vector<int32_t> &rankOf) {
  PipelineProblem problem;
  problem.ranks = 1 + *std::max_element(rankOf.begin(), rankOf.end());
  problem.chunks = std::max(1, int32_t(rankOf.size()) / problem.ranks);
  problem.microBatches =
      int32_t(model::exportTraining(parts.graph).microBatches);
  return problem;
}

void setTimes(const std::vector<SearchStage> &stages,
              PipelineProblem &problem) {
  for (const SearchStage &stage : stages) {
    StageTimes own;
    own.forward = double(stage.forward);
    own.inputGrad = double(stage.inputGrad);
    own.weightGrad = double(stage.weightGrad);
    own.held = own.kept = 1;
    problem.times.push_back(own);
  }
}

/// Times of messages between ranks, both ways.
std::vector<double> hopsOf(const std::vector<SearchStage> &stages,
                           const std::vector<int32_t> &rankOf) {
  std::vector<double> hops;
  for (size_t s = 0; s + 1 < stages.size(); ++s)
    if (rankOf[s] != rankOf[s + 1])
      hops.insert(hops.end(), {double(stages[s].toNext),
                               double(stages[s + 1].toPrevious)});
  return hops;
}

/// Times of the stages and the micro-batches that they may hold.
bool setCosts(const pipe::ProgramParts &parts,
              const std::vector<int32_t> &rankOf, PipelineProblem &problem,
              std::string &error) {
  const std::optional<std::vector<SearchStage>> stages =
      stageTimes(parts, error);
  if (!stages)
    return false;
  setTimes(*stages, problem);
  for (const double hop : hopsOf(*stages, rankOf))
    problem.hop = std::max(problem.hop, hop);
  pipe::ProgramOp program = parts.program;
  problem.mostHeld.assign(problem.ranks, 0);
  for (size_t s = 0; s < stages->size(); ++s)
    problem.mostHeld[rankOf[s]] += program.getStages()[s].getInFlight();
  return true;
}

bool keepsPlannedMemory(pipe::ProgramOp program, const Schedule &schedule) {
  std::vector<pipe::StageOp> stages = program.getStages();
  const std::vector<int32_t> held = heldByStage(schedule, stages.size());
  for (size_t s = 0; s < stages.size(); ++s)
    if (held[s] > stages[s].getInFlight())
      return false;
  return true;
}

} // namespace

std::optional<Schedule>
takt::generatedSchedule(const pipe::ProgramParts &parts,
                        const PipelineGenerator &generate,
                        std::string &error) {
  pipe::ProgramOp program = parts.program;
  const std::vector<int32_t> rankOf = ranksOf(program.getStages());
  const PipelineProblem problem = problemOf(parts, rankOf);
  const std::optional<Pipeline> equal = generate(problem, error);
  if (!equal)
    return std::nullopt;
  if (equal->rankOfStage != rankOf) {
    error = fmt::format("schedule '{}' does not lie on ranks as the {} stages "
                        "do",
                        equal->schedule.name, rankOf.size());
    return std::nullopt;
  }
  // Without costs, as in IR made by hand, stages count as equal.
  std::string why;
  PipelineProblem timed = problem;
  if (!setCosts(parts, rankOf, timed, why))
    return equal->schedule;
  const std::optional<Pipeline> own = generate(timed, why);
  return own && keepsPlannedMemory(program, own->schedule) ? own->schedule
                                                           : equal->schedule;
}

std::optional<PipelineBounds>
takt::scheduleBounds(mlir::ModuleOp module, std::string &error) {
  const std::optional<pipe::ProgramParts> parts =
      pipe::findProgram(module, error);
  if (!parts)
    return std::nullopt;
  const std::optional<std::vector<SearchStage>> stages =
      stageTimes(*parts, error);
  if (!stages)
    return std::nullopt;
  pipe::ProgramOp program = parts->program;
  const std::vector<int32_t> rankOf = ranksOf(program.getStages());
  PipelineProblem problem = problemOf(*parts, rankOf);
  // Ranks need not have equal numbers of stages.
  if (int64_t(problem.ranks) * problem.chunks != int64_t(rankOf.size())) {
    error = "the ranks have different numbers of stages";
    return std::nullopt;
  }
  setTimes(*stages, problem);
  const std::vector<double> hops = hopsOf(*stages, rankOf);
  if (!hops.empty())
    problem.hop = *std::min_element(hops.begin(), hops.end());
  return boundPipeline(problem, rankOf, /*splitsBackward=*/true);
}
