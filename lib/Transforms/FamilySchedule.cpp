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

/// Times of the stages and the micro-batches that they may hold.
bool setCosts(const pipe::ProgramParts &parts,
              const std::vector<int32_t> &rankOf, PipelineProblem &problem,
              std::string &error) {
  const std::optional<std::vector<SearchStage>> times =
      stageTimes(parts, error);
  if (!times)
    return false;
  pipe::ProgramOp program = parts.program;
  problem.mostHeld.assign(problem.ranks, 0);
  for (size_t s = 0; s < times->size(); ++s) {
    const SearchStage &stage = (*times)[s];
    StageTimes own;
    own.forward = double(stage.forward);
    own.inputGrad = double(stage.inputGrad);
    own.weightGrad = double(stage.weightGrad);
    own.held = own.kept = 1;
    problem.times.push_back(own);
    if (s + 1 < times->size() && rankOf[s] != rankOf[s + 1])
      problem.hop = std::max(problem.hop, double(stage.toNext));
    problem.mostHeld[rankOf[s]] += program.getStages()[s].getInFlight();
  }
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

std::optional<Schedule> takt::familySchedule(const pipe::ProgramParts &parts,
                                             const std::string &name,
                                             std::string &error) {
  pipe::ProgramOp program = parts.program;
  const std::vector<int32_t> rankOf = ranksOf(program.getStages());
  const int32_t stages = int32_t(rankOf.size());
  PipelineProblem problem;
  problem.ranks = 1 + *std::max_element(rankOf.begin(), rankOf.end());
  problem.chunks = std::max(1, stages / problem.ranks);
  problem.microBatches =
      int32_t(model::exportTraining(parts.graph).microBatches);

  const std::optional<Pipeline> equal = generatePipeline(name, problem, error);
  if (!equal)
    return std::nullopt;
  if (equal->rankOfStage != rankOf) {
    error = fmt::format("schedule '{}' does not lie on ranks as the {} stages "
                        "do",
                        name, stages);
    return std::nullopt;
  }
  // Without costs, as in IR made by hand, stages count as equal.
  std::string why;
  PipelineProblem timed = problem;
  if (!setCosts(parts, rankOf, timed, why))
    return equal->schedule;
  const std::optional<Pipeline> own = generatePipeline(name, timed, why);
  return own && keepsPlannedMemory(program, own->schedule) ? own->schedule
                                                           : equal->schedule;
}
