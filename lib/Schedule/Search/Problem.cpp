//===- Problem.cpp - what a small schedule must keep and takes ------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Check, bound and verification, none of which the search's own code enters.
//
//===----------------------------------------------------------------------===//
#include "takt/Schedule/Search.h"

#include <fmt/format.h>

#include <algorithm>

using namespace takt;

namespace {

/// Sums of all times of a small schedule stay inside the solver's gaps.
constexpr Nanos kLongest = int64_t(1) << 32;

Nanos backward(const SearchProblem &problem, const SearchStage &stage) {
  return problem.split ? stage.inputGrad : stage.inputGrad + stage.weightGrad;
}

} // namespace

std::optional<std::string> SearchProblem::check() const {
  if (stages.empty() || microBatches < 1)
    return "a schedule needs at least 1 stage and 1 micro-batch";
  if (numActions() > kMostSearchActions)
    return fmt::format(
        "{} stages and {} micro-batches make {} actions; the shortest schedule "
        "is searched for up to {} ('--schedule=1f1b' has no such limit)",
        stages.size(), microBatches, numActions(), kMostSearchActions);
  for (size_t s = 0; s < stages.size(); ++s) {
    const SearchStage &stage = stages[s];
    if (std::min({stage.forward, stage.inputGrad, stage.weightGrad}) < 1)
      return fmt::format("the actions of stage {} must take time", s);
    if (std::min({stage.toNext, stage.toPrevious, stage.tail}) < 0 ||
        stage.mostInFlight < 0)
      return fmt::format("stage {} has a negative time or limit", s);
    if (std::min(stage.outputGradHeld, stage.inputGradHeld) <
        HeldUntil::InputGrad)
      return fmt::format("a gradient of stage {} is given back before its "
                         "backward",
                         s);
    if (std::max({stage.forward, stage.inputGrad, stage.weightGrad,
                  stage.toNext, stage.toPrevious, stage.tail}) > kLongest)
      return fmt::format("a time of stage {} is above 4 seconds, too long for "
                         "the search",
                         s);
  }
  return std::nullopt;
}

Nanos takt::leastMakespan(const SearchProblem &problem) {
  const int64_t p = problem.stages.size(), m = problem.microBatches;
  // A micro-batch from its first forward up to stage s, and back below it.
  std::vector<Nanos> before(p, 0), after(p, 0), round(p, 0);
  for (int64_t s = 1; s < p; ++s) {
    const SearchStage &low = problem.stages[s - 1], &own = problem.stages[s];
    before[s] = before[s - 1] + low.forward + low.toNext;
    after[s] = after[s - 1] + own.toPrevious + backward(problem, low);
  }
  for (int64_t s = p - 1; s >= 0; --s) {
    const SearchStage &own = problem.stages[s];
    round[s] = own.forward + backward(problem, own);
    if (s + 1 < p)
      round[s] +=
          own.toNext + round[s + 1] + problem.stages[s + 1].toPrevious;
  }
  const SearchStage &first = problem.stages.front();
  const Nanos firstTail = first.tail + (problem.split ? first.weightGrad : 0);
  Nanos bound = 0;
  for (int64_t s = 0; s < p; ++s) {
    const SearchStage &own = problem.stages[s];
    const Nanos weight = problem.split ? own.weightGrad : 0;
    // The last backward here still has to reach the first stage.
    const Nanos behind =
        s == 0 ? firstTail : std::max(own.tail + weight, after[s] + firstTail);
    const Nanos work = own.forward + backward(problem, own);
    bound = std::max({bound, before[s] + m * work + behind,
                      before[s] + m * (work + weight) + own.tail});
    if (own.mostInFlight == 0)
      continue;
    // One set after the other: each stays for a whole round at least.
    const int64_t sets = (m - 1) / own.mostInFlight + 1;
    bound = std::max(bound, before[s] + sets * round[s] +
                                (sets - 1) * weight + behind);
  }
  return bound;
}

std::optional<std::string> takt::verify(const SearchProblem &problem,
                                        const SearchResult &result) {
  if (auto fault = problem.check())
    return fault;
  ScheduleProblem sizes;
  sizes.stages = int32_t(problem.stages.size());
  sizes.microBatches = problem.microBatches;
  if (auto fault = verify(sizes, result.schedule))
    return fault;
  for (const std::vector<Action> &actions : result.schedule.roles) {
    const int32_t stage = actions.front().stage;
    for (const Action &action : actions)
      if (action.stage != stage)
        return fmt::format("'{}' stands among the actions of stage {}",
                           toText(action), stage);
      else if (action.kind != ActionKind::F &&
               (action.kind == ActionKind::B) == problem.split)
        return fmt::format("'{}' is of the wrong kind", toText(action));
    const int32_t most = problem.stages[stage].mostInFlight;
    const int32_t peak = peakInFlight(actions);
    if (most != 0 && peak > most)
      return fmt::format("stage {} holds {} micro-batches, {} are allowed",
                         stage, peak, most);
  }
  const std::optional<Nanos> time = makespan(problem, result.schedule);
  if (!time || *time != result.makespan)
    return fmt::format("the makespan is stated as {}, recomputed {}",
                       result.makespan, time.value_or(-1));
  if (result.bound > result.makespan)
    return fmt::format("the bound {} lies above the makespan {}", result.bound,
                       result.makespan);
  return std::nullopt;
}
