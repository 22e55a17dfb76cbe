//===- Families.cpp - families of pipeline schedules by name
//----------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// The names users write and the generators behind them. A new family is a file
// in Generators/ and a line here.
//
//===----------------------------------------------------------------------===//

#include "Generators/Families.h"
#include "Generators/Board.h"

#include <fmt/format.h>

#include <limits>

namespace takt {

Schedule generateGPipeFamily(const PipelineProblem &problem) {
  return generateGPipe({problem.ranks, problem.microBatches});
}

Schedule generateOneFOneBFamily(const PipelineProblem &problem) {
  return generateOneFOneB({problem.ranks, problem.microBatches});
}

/// Where the number of stages a rank is up to the user.
constexpr int32_t kAnyChunks = std::numeric_limits<int32_t>::max();

const std::vector<ScheduleFamily> &scheduleFamilies() {
  static const std::vector<ScheduleFamily> families = {
      {"gpipe", "all forwards, then all backwards", Placement::Linear, 1, 1,
       false, generateGPipeFamily},
      {"pipedream", "1F1B-RR: one forward, one backward, over replicas",
       Placement::Linear, 1, 1, false, generateRoundRobin, 1, true, false,
       nullptr, true},
      {"dapple-a", "early backward, p - s forwards ahead", Placement::Linear, 1,
       1, false, generateEarlyBackwardA},
      {"dapple-b", "early backward, 2 (p - s) - 1 forwards ahead",
       Placement::Linear, 1, 1, false, generateEarlyBackwardB},
      {"1f1b", "one forward, one backward", Placement::Linear, 1, 1, false,
       generateOneFOneBFamily},
      {"pipedream-2bw", "one forward, one backward, never flushed",
       Placement::Linear, 1, 1, false, generateContinuous, 1, false, true,
       refuseShortSteps, true},
      {"interleaved-1f1b", "groups of micro-batches through several stages",
       Placement::Interleaved, 1, kAnyChunks, false, generateInterleaved, 1,
       false, true},
      {"breadth-first",
       "all micro-batches through one stage of a rank, then the next",
       Placement::Interleaved, 1, kAnyChunks, false, generateBreadthFirst},
      {"nf1b", "the forwards of a group, then its backwards as one",
       Placement::Linear, 1, 1, false, generateGroupBackward, 1, false, true,
       nullptr, true},
      {"zb-h1", "1F1B with late weight gradients, its memory",
       Placement::Linear, 1, 1, true, generateZeroBubbleH1},
      {"zb-h2", "no bubble between steps, twice 1F1B's memory",
       Placement::Linear, 1, 1, true, generateZeroBubbleH2},
      {"zb-auto", "list scheduling within a memory limit", Placement::Linear, 1,
       1, true, generateZeroBubbleAuto},
      {"zb-interleaved", "interleaved 1F1B with late weight gradients",
       Placement::Interleaved, 1, kAnyChunks, true,
       generateZeroBubbleInterleaved},
      {"zb-v", "two stages a rank in a V, 1F1B's memory", Placement::VShape, 2,
       2, true, generateZeroBubbleV},
      {"v-half", "two stages a rank in a V, half of 1F1B's memory",
       Placement::VShape, 2, 2, true, generateVHalf},
      {"v-min", "two stages a rank in a V, a third of 1F1B's memory",
       Placement::VShape, 2, 2, true, generateVMin},
      {"dualpipe", "two copies, micro-batches from both ends",
       Placement::VShape, 2, 2, true, generateDualPipe, 2, false, false,
       refuseOddRanks},
      {"dualpipev", "DualPipe folded to a V of one copy", Placement::VShape, 2,
       2, true, generateDualPipeV},
  };
  return families;
}

const ScheduleFamily *findFamily(std::string_view name) {
  for (const ScheduleFamily &family : scheduleFamilies())
    if (family.name == name)
      return &family;
  return nullptr;
}

std::vector<std::string> familyNames() {
  std::vector<std::string> names;
  for (const ScheduleFamily &family : scheduleFamilies())
    names.emplace_back(family.name);
  return names;
}

namespace {

std::string noSuchFamily(std::string_view name) {
  std::string names;
  for (const ScheduleFamily &family : scheduleFamilies())
    names += fmt::format("{}'{}'", names.empty() ? "" : ", ", family.name);
  return fmt::format("there is no schedule '{}', only {}", name, names);
}

std::optional<std::string> checkChunks(const ScheduleFamily &family,
                                       int32_t chunks) {
  if (chunks >= family.leastChunks && chunks <= family.mostChunks)
    return std::nullopt;
  const bool one = family.leastChunks == family.mostChunks;
  return fmt::format(
      "'{}' is made for {} stage{} a rank, not {}", family.name,
      one ? fmt::to_string(family.leastChunks)
          : fmt::format("{} to {}", family.leastChunks, family.mostChunks),
      one && family.leastChunks == 1 ? "" : "s", chunks);
}

std::optional<std::string> checkKind(const ScheduleFamily &family,
                                     const PipelineProblem &problem) {
  if (problem.chains != family.chains)
    return fmt::format("'{}' is made for {} chain{} of stages, not {}",
                       family.name, family.chains,
                       family.chains == 1 ? "" : "s", problem.chains);
  if (!problem.replicas.empty() && !family.replicated)
    return fmt::format("'{}' takes no replicas", family.name);
  if (problem.group > 0 && !family.grouped)
    return fmt::format("'{}' takes no group of micro-batches", family.name);
  return family.refuse ? family.refuse(problem) : std::nullopt;
}

/// Stages in their order, the replicas of each on ranks in a row.
std::vector<int32_t> placeReplicas(const std::vector<int32_t> &replicas) {
  std::vector<int32_t> rankOfStage;
  int32_t rank = 0;
  for (const int32_t count : replicas) {
    rankOfStage.push_back(rank);
    rank += count;
  }
  return rankOfStage;
}

/// When a micro-batch has reached the last stage of its chain, every stage
/// holds it; so each rank must have room for one, and one after the other
/// always run.
std::optional<std::string> checkRoom(const PipelineProblem &problem,
                                     const std::vector<int32_t> &rankOfStage) {
  const int32_t length = problem.stages() / problem.chains;
  std::vector<double> needed;
  for (int32_t stage = 0; stage < problem.stages(); ++stage) {
    if (stage % length == 0)
      needed.assign(problem.ranks, 0);
    const int32_t copies =
        problem.replicas.empty() ? 1 : problem.replicas[stage];
    for (int32_t i = 0; i < copies; ++i) {
      const int32_t rank = rankOfStage[stage] + i;
      needed[rank] += problem.at(stage).held;
      if (!problem.mostHeld.empty() &&
          !fitsLimit(needed[rank], problem.mostHeld[rank]))
        return fmt::format("no schedule fits: rank {} may hold {}, one "
                           "micro-batch needs {}",
                           rank, problem.mostHeld[rank], needed[rank]);
    }
  }
  return std::nullopt;
}

} // namespace

std::optional<Pipeline> generatePipeline(std::string_view name,
                                         const PipelineProblem &problem,
                                         std::string &why) {
  auto fails = [&](std::optional<std::string> fault) {
    if (fault)
      why = std::move(*fault);
    return fault.has_value();
  };
  const ScheduleFamily *family = findFamily(name);
  if (!family) {
    why = noSuchFamily(name);
    return std::nullopt;
  }
  if (fails(problem.check()) || fails(checkChunks(*family, problem.chunks)) ||
      fails(checkKind(*family, problem)))
    return std::nullopt;
  Pipeline pipeline;
  pipeline.rankOfStage =
      problem.replicas.empty()
          ? placeStages(family->placement, problem.ranks, problem.chunks)
          : placeReplicas(problem.replicas);
  if (fails(checkRoom(problem, pipeline.rankOfStage)))
    return std::nullopt;
  pipeline.schedule = family->generate(problem);
  pipeline.schedule.name = name;
  if (pipeline.schedule.roles.empty()) {
    why = fmt::format("'{}' has no order within the memory limits", name);
    return std::nullopt;
  }
  // Lists of a generator get the same treatment as a user's.
  if (fails(verifyPipeline(problem, pipeline)))
    return std::nullopt;
  return pipeline;
}

std::optional<std::string> verifyPipeline(const PipelineProblem &problem,
                                          const Pipeline &pipeline) {
  if (auto fault = problem.check())
    return fault;
  if (auto fault = verify(shapeOf(problem, pipeline), pipeline.schedule))
    return fault;
  const std::optional<PipelineTiming> timing = timePipeline(problem, pipeline);
  if (!timing)
    return "the lists are not of this many ranks";
  for (size_t rank = 0; rank < problem.mostHeld.size(); ++rank)
    if (!fitsLimit(timing->peakHeld[rank], problem.mostHeld[rank]))
      return fmt::format("'{}' holds {} on rank {}, which may hold {}",
                         pipeline.schedule.name, timing->peakHeld[rank], rank,
                         problem.mostHeld[rank]);
  return std::nullopt;
}

} // namespace takt
