//===- Placement.cpp - where stages lie, and what is a problem
//--------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "takt/Schedule/Pipeline.h"

#include <cmath>
#include <fmt/format.h>

namespace takt {

std::vector<int32_t> placeStages(Placement placement, int32_t ranks,
                                 int32_t chunks) {
  std::vector<int32_t> rankOfStage;
  rankOfStage.reserve(size_t(ranks) * chunks);
  for (int32_t chunk = 0; chunk < chunks; ++chunk)
    for (int32_t place = 0; place < ranks; ++place) {
      const bool back = placement == Placement::VShape && chunk % 2 == 1;
      rankOfStage.push_back(back ? ranks - 1 - place : place);
    }
  return rankOfStage;
}

namespace {

/// Lists of more actions than this are a mistake, not a schedule.
constexpr int64_t kMostPasses = int64_t(1) << 24;

bool isAmount(double value) { return std::isfinite(value) && value >= 0; }

std::optional<std::string> checkStage(const StageTimes &t, int32_t stage) {
  const struct {
    const char *name;
    double value;
  } amounts[] = {{"forward", t.forward},
                 {"input gradient", t.inputGrad},
                 {"weight gradient", t.weightGrad},
                 {"held activations", t.held},
                 {"kept activations", t.kept}};
  for (const auto &amount : amounts)
    if (!isAmount(amount.value))
      return fmt::format("stage {}: {} must be finite and not negative, not {}",
                         stage, amount.name, amount.value);
  if (t.kept > t.held)
    return fmt::format("stage {}: keeps {} of {} held", stage, t.kept, t.held);
  return std::nullopt;
}

std::optional<std::string> checkCopies(const PipelineProblem &problem) {
  if (problem.group < 0)
    return fmt::format("a group cannot have {} micro-batches", problem.group);
  if (problem.chains < 1 || problem.stages() % problem.chains != 0)
    return fmt::format("{} stages cannot be {} chains of equal length",
                       problem.stages(), problem.chains);
  if (problem.replicas.empty())
    return std::nullopt;
  if (problem.chunks != 1)
    return fmt::format("ranks with {} stages each cannot be replicas",
                       problem.chunks);
  int64_t total = 0;
  for (size_t stage = 0; stage < problem.replicas.size(); ++stage) {
    if (problem.replicas[stage] < 1)
      return fmt::format("stage {} needs at least 1 replica, not {}", stage,
                         problem.replicas[stage]);
    total += problem.replicas[stage];
  }
  if (total != problem.ranks)
    return fmt::format("{} ranks cannot be {} replicas", problem.ranks, total);
  return std::nullopt;
}

} // namespace

std::optional<std::string> PipelineProblem::check() const {
  const struct {
    const char *name;
    int32_t value;
  } counts[] = {{"ranks", ranks},
                {"stages a rank", chunks},
                {"micro-batches", microBatches}};
  int64_t passes = 1;
  for (const auto &count : counts) {
    if (count.value < 1)
      return fmt::format("{} must be at least 1, not {}", count.name,
                         count.value);
    if (count.value > kMostPasses / passes)
      return fmt::format(
          "{} ranks x {} stages x {} micro-batches are more than "
          "the {} passes that a schedule may have",
          ranks, chunks, microBatches, kMostPasses);
    passes *= count.value;
  }
  if (auto fault = checkCopies(*this))
    return fault;
  if (!times.empty() && times.size() != size_t(stages()))
    return fmt::format("times of {} stages, but there are {}", times.size(),
                       stages());
  for (size_t stage = 0; stage < times.size(); ++stage)
    if (auto fault = checkStage(times[stage], stage))
      return fault;
  if (!isAmount(hop))
    return fmt::format("hop must be finite and not negative, not {}", hop);
  if (!mostHeld.empty() && mostHeld.size() != size_t(ranks))
    return fmt::format("memory limits of {} ranks, but there are {}",
                       mostHeld.size(), ranks);
  for (size_t rank = 0; rank < mostHeld.size(); ++rank)
    if (!isAmount(mostHeld[rank]))
      return fmt::format("the memory limit of rank {} must be finite and not "
                         "negative, not {}",
                         rank, mostHeld[rank]);
  return std::nullopt;
}

} // namespace takt
