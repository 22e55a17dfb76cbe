//===- Verify.cpp - can these lists run, and do they do all the work ------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Checks a schedule from nothing but its lists; generators are not trusted and
// lists written by users get the same treatment. Three rules:
//
//   complete    F once and B once, or F, I and W once, for every stage and
//               micro-batch; all of a stage's actions in one role
//   in order    inside a list F before I or B, and I before W
//   executable  running every list from its head, an action once the same pass
//               of the neighbour stage is done, empties all lists
//
// When the lists get stuck, the heads wait for each other in a circle, since
// every missing action exists in some list. That circle is the message.
//
//===----------------------------------------------------------------------===//

#include "takt/Schedule/Schedule.h"

#include <fmt/format.h>

namespace takt {

namespace {

constexpr int32_t kNowhere = -1;

/// Where an action stands: list and place in it.
struct Place {
  int32_t role = kNowhere, index = kNowhere;
  bool found() const { return role != kNowhere; }
};

class Verifier {
public:
  Verifier(const ScheduleProblem &problem, const Schedule &schedule)
      : problem(problem), schedule(schedule),
        places(4 * size_t(problem.stages) * problem.microBatches),
        roleOfStage(problem.stages, kNowhere) {}

  std::optional<std::string> run() {
    if (auto fault = indexActions())
      return fault;
    if (auto fault = checkPassages())
      return fault;
    return execute();
  }

private:
  Place &place(const Action &a) {
    return places[(size_t(a.stage) * problem.microBatches + a.microBatch) * 4 +
                  static_cast<size_t>(a.kind)];
  }
  Place &place(int32_t stage, ActionKind kind, int32_t microBatch) {
    return place(Action{stage, kind, microBatch});
  }

  /// Notes where every action stands; finds strangers, doubles and stages that
  /// are spread over roles.
  std::optional<std::string> indexActions() {
    for (size_t role = 0; role < schedule.roles.size(); ++role) {
      const std::vector<Action> &actions = schedule.roles[role];
      if (actions.empty())
        return fmt::format("role {} has no actions", role);
      for (size_t i = 0; i < actions.size(); ++i)
        if (auto fault = indexAction(actions[i], role, i))
          return fault;
    }
    return std::nullopt;
  }

  std::optional<std::string> indexAction(const Action &action, int32_t role,
                                         int32_t index) {
    if (action.stage < 0 || action.stage >= problem.stages)
      return fmt::format("'{}' in role {}: there is no stage {}, only {} "
                         "stages",
                         toText(action), role, action.stage, problem.stages);
    if (action.microBatch < 0 || action.microBatch >= problem.microBatches)
      return fmt::format("'{}' in role {}: there is no micro-batch {}, only "
                         "{} micro-batches",
                         toText(action), role, action.microBatch,
                         problem.microBatches);
    int32_t &owner = roleOfStage[action.stage];
    if (owner != kNowhere && owner != role)
      return fmt::format("'{}' is in role {}, but stage {} belongs to role {}",
                         toText(action), role, action.stage, owner);
    owner = role;
    Place &spot = place(action);
    if (spot.found())
      return fmt::format("'{}' stands twice in role {}, at places {} and {}",
                         toText(action), role, spot.index, index);
    spot = {role, index};
    return std::nullopt;
  }

  /// Completeness and order of every stage's handling of every micro-batch.
  std::optional<std::string> checkPassages() {
    for (int32_t stage = 0; stage < problem.stages; ++stage)
      for (int32_t m = 0; m < problem.microBatches; ++m)
        if (auto fault = checkPassage(stage, m))
          return fault;
    return std::nullopt;
  }

  std::optional<std::string> checkPassage(int32_t stage, int32_t m) {
    const Place &whole = place(stage, ActionKind::B, m);
    const ActionKind first = whole.found() ? ActionKind::B : ActionKind::I;
    if (!place(stage, ActionKind::F, m).found())
      return fmt::format("'{}' is missing", toText({stage, ActionKind::F, m}));
    for (const ActionKind half : {ActionKind::I, ActionKind::W}) {
      const bool found = place(stage, half, m).found();
      if (whole.found() && found)
        return fmt::format("'{}' repeats work of '{}' in role {}",
                           toText({stage, half, m}),
                           toText({stage, ActionKind::B, m}), whole.role);
      if (!whole.found() && !found)
        return fmt::format("'{}' is missing, and there is no '{}' either",
                           toText({stage, half, m}),
                           toText({stage, ActionKind::B, m}));
    }
    if (auto fault = checkOrder({stage, ActionKind::F, m}, {stage, first, m}))
      return fault;
    if (whole.found())
      return std::nullopt;
    return checkOrder({stage, ActionKind::I, m}, {stage, ActionKind::W, m});
  }

  std::optional<std::string> checkOrder(const Action &early,
                                        const Action &late) {
    const Place &a = place(early), &b = place(late);
    if (a.index < b.index)
      return std::nullopt;
    return fmt::format("'{}' at place {} of role {} needs '{}', which comes "
                       "later at place {}",
                       toText(late), b.index, b.role, toText(early), a.index);
  }

  /// The action of a neighbour stage that `action` needs, if any.
  std::optional<Action> needed(const Action &action) {
    const int32_t m = action.microBatch;
    if (action.kind == ActionKind::F) {
      if (action.stage == 0)
        return std::nullopt;
      return Action{action.stage - 1, ActionKind::F, m};
    }
    const int32_t next = action.stage + 1;
    if (action.kind == ActionKind::W || next == problem.stages)
      return std::nullopt; // W follows I in its own list
    const bool whole = place(next, ActionKind::B, m).found();
    return Action{next, whole ? ActionKind::B : ActionKind::I, m};
  }

  bool done(const Action &action) {
    const Place &spot = place(action);
    return spot.index < heads[spot.role];
  }

  /// Runs all lists. A role is looked at again only when a role that its head
  /// waits for has moved on, so the work is linear in the actions.
  std::optional<std::string> execute() {
    const size_t roles = schedule.roles.size();
    heads.assign(roles, 0);
    std::vector<std::vector<int32_t>> waiting(roles);
    std::vector<int32_t> work;
    for (size_t role = roles; role-- > 0;)
      work.push_back(role);
    while (!work.empty()) {
      const int32_t role = work.back();
      work.pop_back();
      const std::vector<Action> &actions = schedule.roles[role];
      const int32_t before = heads[role];
      while (heads[role] < int32_t(actions.size())) {
        const std::optional<Action> need = needed(actions[heads[role]]);
        if (need && !done(*need)) {
          waiting[place(*need).role].push_back(role);
          break;
        }
        ++heads[role];
      }
      if (heads[role] == before)
        continue;
      work.insert(work.end(), waiting[role].rbegin(), waiting[role].rend());
      waiting[role].clear();
    }
    for (size_t role = 0; role < roles; ++role)
      if (heads[role] < int32_t(schedule.roles[role].size()))
        return describeCircle(role);
    return std::nullopt;
  }

  /// Follows the waits of stuck heads from `role` until a role comes again.
  std::string describeCircle(int32_t role) {
    std::vector<bool> seen(schedule.roles.size(), false);
    while (!seen[role]) {
      seen[role] = true;
      role = place(*needed(schedule.roles[role][heads[role]])).role;
    }
    std::string text = "the lists wait for each other in a circle: ";
    const int32_t start = role;
    do {
      const Action &head = schedule.roles[role][heads[role]];
      const Action need = *needed(head);
      const Place &spot = place(need);
      text += fmt::format("{}'{}' of role {} needs '{}', but role {} is at "
                          "'{}'",
                          role == start ? "" : "; ", toText(head), role,
                          toText(need), spot.role,
                          toText(schedule.roles[spot.role][heads[spot.role]]));
      role = spot.role;
    } while (role != start);
    return text;
  }

  const ScheduleProblem &problem;
  const Schedule &schedule;
  std::vector<Place> places; ///< by stage, micro-batch, kind
  std::vector<int32_t> roleOfStage;
  std::vector<int32_t> heads; ///< next action of each role
};

} // namespace

std::optional<std::string> verify(const ScheduleProblem &problem,
                                  const Schedule &schedule) {
  if (auto fault = problem.check())
    return fault;
  return Verifier(problem, schedule).run();
}

} // namespace takt
