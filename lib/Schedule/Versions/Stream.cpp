//===- Stream.cpp - steps with updates in action lists --------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "takt/Schedule/Versions.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

namespace takt {

namespace {

constexpr std::array<std::string_view, 8> kPolicyNames = {"sync",
                                                          "stash",
                                                          "2bw",
                                                          "vertical-sync",
                                                          "latest",
                                                          "blend",
                                                          "one-step-delayed",
                                                          "look-ahead"};

StreamAction::Kind kindOf(ActionKind kind) {
  switch (kind) {
  case ActionKind::F:
    return StreamAction::Kind::F;
  case ActionKind::I:
    return StreamAction::Kind::I;
  case ActionKind::W:
    return StreamAction::Kind::W;
  case ActionKind::B:
    break;
  }
  return StreamAction::Kind::B;
}

bool makesGradient(ActionKind kind) {
  return kind == ActionKind::B || kind == ActionKind::W;
}

} // namespace

std::string_view toText(WeightPolicy policy) {
  return kPolicyNames[size_t(policy)];
}

std::optional<WeightPolicy> parseWeightPolicy(std::string_view text) {
  const auto it = std::find(kPolicyNames.begin(), kPolicyNames.end(), text);
  if (it == kPolicyNames.end())
    return std::nullopt;
  return WeightPolicy(it - kPolicyNames.begin());
}

std::vector<std::string_view> weightPolicyNames() {
  return {kPolicyNames.begin(), kPolicyNames.end()};
}

std::string toText(const StreamAction &action) {
  std::string text = fmt::format("{}{}{}", action.stage,
                                 "FIWBU"[size_t(action.kind)], action.first);
  if (action.count > 1)
    text += fmt::format("-{}", int64_t(action.first) + action.count - 1);
  return text;
}

std::optional<std::string> StreamProblem::check() const {
  for (auto [name, value] :
       {std::pair("stages", stages), {"steps", steps}, {"perStep", perStep}})
    if (value < 1)
      return fmt::format("'{}' is {}, not at least 1", name, value);
  constexpr int64_t kMost = int64_t(1) << 24;
  // Two factors at a time: three of 2^31 do not fit into 64 bits.
  const int64_t perStage = int64_t(steps) * perStep;
  if (perStage > kMost || perStage * stages > kMost)
    return fmt::format("{} steps of {} micro-batches through {} stages are "
                       "more than {} passes",
                       steps, perStep, stages, kMost);
  if (!times.empty() && times.size() != size_t(stages))
    return fmt::format("'times' has {} entries for {} stages", times.size(),
                       stages);
  for (const StageTimes &stage : times)
    for (auto [name, value] : {std::pair("forward", stage.forward),
                               {"inputGrad", stage.inputGrad},
                               {"weightGrad", stage.weightGrad}})
      if (!(value >= 0) || !std::isfinite(value))
        return fmt::format("'{}' is {}, not a time", name, value);
  if (!(hop >= 0) || !std::isfinite(hop))
    return fmt::format("'hop' is {}, not a time", hop);
  return std::nullopt;
}

Schedule repeatSteps(const Schedule &step, int32_t microBatches,
                     int32_t steps) {
  Schedule all;
  all.name = step.name;
  all.roles.resize(step.roles.size());
  for (size_t role = 0; role < step.roles.size(); ++role)
    for (int32_t k = 0; k < steps; ++k)
      for (Action action : step.roles[role]) {
        action.microBatch += k * microBatches;
        all.roles[role].push_back(action);
      }
  return all;
}

UpdateStream withUpdates(const StreamProblem &problem, const Schedule &schedule,
                         int32_t putOff) {
  UpdateStream stream;
  stream.ranks.resize(schedule.roles.size());
  for (size_t rank = 0; rank < schedule.roles.size(); ++rank) {
    // Gradients of each stage and step that are still to come.
    std::vector<std::vector<int32_t>> left(
        problem.stages, std::vector<int32_t>(problem.steps, problem.perStep));
    std::vector<int32_t> done(problem.stages, 0), updates(problem.stages, 0);
    for (const Action &action : schedule.roles[rank]) {
      const int32_t stage = action.stage;
      stream.ranks[rank].push_back(
          {stage, kindOf(action.kind), action.microBatch, 1});
      // Strangers are left to the replay, which names them.
      if (!makesGradient(action.kind) || stage < 0 || stage >= problem.stages ||
          action.microBatch < 0 || action.microBatch >= problem.microBatches())
        continue;
      --left[stage][problem.stepOf(action.microBatch)];
      while (done[stage] < problem.steps && left[stage][done[stage]] <= 0)
        ++done[stage];
      const int32_t ready = done[stage] == problem.steps
                                ? problem.steps
                                : std::max(done[stage] - putOff, 0);
      while (updates[stage] < ready)
        stream.ranks[rank].push_back(
            {stage, StreamAction::Kind::Update, updates[stage]++, 1});
    }
  }
  return stream;
}

} // namespace takt
