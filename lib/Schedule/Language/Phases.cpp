//===- Phases.cpp - rows of actions, repeated -----------------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "Rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

namespace takt {

namespace {

/// As often as every step of the phase has an action left.
int64_t restOf(const Phase &phase, const RankWork &work) {
  int64_t times = std::numeric_limits<int64_t>::max();
  for (const Step &step : phase.steps) {
    const int64_t each =
        std::count(phase.steps.begin(), phase.steps.end(), step);
    times = std::min(times, work.left(step) / each);
  }
  return times;
}

/// A W before any I is left out.
void takeRow(const Phase &phase, RankWork &work, std::vector<Action> &list) {
  for (const Step &step : phase.steps)
    if (const std::optional<Action> action = work.next(step)) {
      list.push_back(*action);
      work.take(step);
    }
}

std::string firstLeft(const RankWork &work) {
  for (const ActionKind kind : {ActionKind::F, ActionKind::B, ActionKind::W})
    if (const auto action = work.next({kind, -1}))
      return toText(*action);
  return {};
}

} // namespace

bool expandPhases(const ScheduleRule &rule, std::vector<RankWork> &ranks,
                  const std::vector<FormulaNames> &names, Diagnostics &diags,
                  Schedule &schedule) {
  for (size_t rank = 0; rank < ranks.size(); ++rank) {
    RankWork &work = ranks[rank];
    for (const Phase &phase : rule.phases) {
      int64_t times = restOf(phase, work);
      if (!phase.times.empty()) {
        const auto value = valueOf(phase.times, names[rank], true, diags);
        if (!value)
          return false;
        times = std::min(times, int64_t(*value));
      }
      while (times-- > 0)
        takeRow(phase, work, schedule.roles[rank]);
    }
    if (!work.isDone()) {
      diags.error(rule.loc, fmt::format("the phases end on rank {} with "
                                        "actions left, '{}' first",
                                        rank, firstLeft(work)));
      return false;
    }
  }
  return true;
}

} // namespace takt
