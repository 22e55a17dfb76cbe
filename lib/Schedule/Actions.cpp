//===- Actions.cpp - the text of actions and what follows from lists ------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Text form of an action, the check of a schedule's sizes, and the count of
// micro-batches in flight. The reader is strict: exactly what the writer writes
// is accepted, so that text and action are one to one.
//
//===----------------------------------------------------------------------===//

#include "takt/Schedule/Schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <set>
#include <utility>

namespace takt {

namespace {

constexpr char kKindLetters[] = {'F', 'I', 'W', 'B'};

/// More actions than this are refused rather than listed: the lists are held in
/// memory one by one.
constexpr int64_t kMaxActions = int64_t(1) << 26;

/// Reads a number without sign or leading zeros from `text` at `pos`, which
/// moves behind it.
std::optional<int32_t> readNumber(const std::string &text, size_t &pos) {
  const size_t first = pos;
  int64_t number = 0;
  while (pos < text.size() && text[pos] >= '0' && text[pos] <= '9') {
    number = number * 10 + (text[pos] - '0');
    if (number > std::numeric_limits<int32_t>::max())
      return std::nullopt;
    ++pos;
  }
  const bool leadingZero = pos - first > 1 && text[first] == '0';
  if (pos == first || leadingZero)
    return std::nullopt;
  return static_cast<int32_t>(number);
}

std::optional<ActionKind> readKind(char letter) {
  for (size_t i = 0; i < std::size(kKindLetters); ++i)
    if (kKindLetters[i] == letter)
      return static_cast<ActionKind>(i);
  return std::nullopt;
}

} // namespace

std::string toText(const Action &action) {
  return fmt::format("{}{}{}", action.stage,
                     kKindLetters[static_cast<size_t>(action.kind)],
                     action.microBatch);
}

std::optional<Action> parseAction(const std::string &text) {
  size_t pos = 0;
  const std::optional<int32_t> stage = readNumber(text, pos);
  if (!stage || pos == text.size())
    return std::nullopt;
  const std::optional<ActionKind> kind = readKind(text[pos++]);
  if (!kind)
    return std::nullopt;
  const std::optional<int32_t> microBatch = readNumber(text, pos);
  if (!microBatch || pos != text.size())
    return std::nullopt;
  return Action{*stage, *kind, *microBatch};
}

std::optional<std::string> ScheduleProblem::check() const {
  if (stages < 1)
    return fmt::format("a schedule needs at least 1 stage, not {}", stages);
  if (microBatches < 1)
    return fmt::format("a schedule needs at least 1 micro-batch, not {}",
                       microBatches);
  const int64_t actions = 2 * int64_t(stages) * microBatches;
  if (actions > kMaxActions)
    return fmt::format("{} stages and {} micro-batches make {} actions, at "
                       "most {} are possible",
                       stages, microBatches, actions, kMaxActions);
  if (!roleOfStage.empty() && roleOfStage.size() != size_t(stages))
    return fmt::format("the placement names {} stages of {}",
                       roleOfStage.size(), stages);
  if (chains < 1 || stages % chains != 0)
    return fmt::format("{} stages cannot be {} chains of equal length", stages,
                       chains);
  if (!replicas.empty() && replicas.size() != size_t(stages))
    return fmt::format("there are numbers of replicas for {} stages of {}",
                       replicas.size(), stages);
  for (size_t stage = 0; stage < replicas.size(); ++stage)
    if (replicas[stage] < 1)
      return fmt::format("stage {} needs at least 1 replica, not {}", stage,
                         replicas[stage]);
  return std::nullopt;
}

int32_t peakInFlight(const std::vector<Action> &actions) {
  using Passage = std::pair<int32_t, int32_t>; // stage, micro-batch
  std::set<Passage> open;
  std::set<Passage> halfDone; // one of I and W is done
  std::set<Passage> goesBack;
  for (const Action &action : actions)
    if (action.kind != ActionKind::F)
      goesBack.insert({action.stage, action.microBatch});
  size_t peak = 0;
  for (const Action &action : actions) {
    const Passage passage{action.stage, action.microBatch};
    if (action.kind == ActionKind::F) {
      open.insert(passage);
      peak = std::max(peak, open.size());
      if (!goesBack.count(passage))
        open.erase(passage);
    } else if (action.kind == ActionKind::B ||
               !halfDone.insert(passage).second) {
      open.erase(passage);
    }
  }
  return static_cast<int32_t>(peak);
}

std::vector<int32_t> heldByStage(const Schedule &schedule, int32_t stages) {
  std::vector<std::vector<Action>> ofStage(stages);
  for (const std::vector<Action> &role : schedule.roles)
    for (const Action &action : role)
      ofStage[action.stage].push_back(action);
  std::vector<int32_t> held;
  for (const std::vector<Action> &actions : ofStage)
    held.push_back(peakInFlight(actions));
  return held;
}

std::vector<int32_t> sortRoles(Schedule &schedule, int32_t stages) {
  auto firstStage = [](const std::vector<Action> &role) {
    return std::min_element(role.begin(), role.end(),
                            [](const Action &a, const Action &b) {
                              return a.stage < b.stage;
                            })
        ->stage;
  };
  std::stable_sort(schedule.roles.begin(), schedule.roles.end(),
                   [&](const auto &a, const auto &b) {
                     return firstStage(a) < firstStage(b);
                   });
  std::vector<int32_t> roleOf(stages, -1);
  for (size_t r = 0; r < schedule.roles.size(); ++r)
    for (const Action &action : schedule.roles[r])
      roleOf[action.stage] = static_cast<int32_t>(r);
  return roleOf;
}

} // namespace takt
