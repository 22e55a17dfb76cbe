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
//               micro-batch, or F alone in inference; all of a stage's actions
//               in one role, or all of a replica's where stages have several
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

using Fault = std::optional<ScheduleFault>;

/// Where an action stands: list and place in it.
struct Place {
  int32_t role = kNowhere, index = kNowhere;
  bool found() const { return role != kNowhere; }
};

class Verifier {
public:
  Verifier(const ScheduleProblem &problem, const Schedule &schedule)
      : problem(problem), schedule(schedule),
        places(4 * size_t(problem.stages) * problem.microBatches) {
    for (int32_t stage = 0; stage < problem.stages; ++stage) {
      firstReplica.push_back(int32_t(owners.size()));
      const int32_t count =
          problem.replicas.empty() ? 1 : problem.replicas[stage];
      for (int32_t i = 0; i < count; ++i)
        owners.push_back(problem.roleOfStage.empty()
                             ? kNowhere
                             : problem.roleOfStage[stage] + i);
    }
  }

  Fault run() {
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
  int32_t &ownerOf(int32_t stage, int32_t microBatch) {
    return owners[firstReplica[stage] + problem.replicaOf(stage, microBatch)];
  }

  /// Notes where every action stands; finds strangers, doubles and stages that
  /// are spread over roles.
  Fault indexActions() {
    for (size_t role = 0; role < schedule.roles.size(); ++role) {
      const std::vector<Action> &actions = schedule.roles[role];
      // A replica has nothing to do if there are more than micro-batches.
      if (actions.empty() && problem.replicas.empty())
        return ScheduleFault{fmt::format("role {} has no actions", role),
                             int32_t(role)};
      for (size_t i = 0; i < actions.size(); ++i)
        if (auto fault = indexAction(actions[i], role, i))
          return fault;
    }
    return std::nullopt;
  }

  Fault indexAction(const Action &action, int32_t role, int32_t index) {
    if (action.stage < 0 || action.stage >= problem.stages)
      return ScheduleFault{
          fmt::format("'{}' in role {}: there is no stage {}, only {} stages",
                      toText(action), role, action.stage, problem.stages),
          role, index};
    if (action.microBatch < 0 || action.microBatch >= problem.microBatches)
      return ScheduleFault{
          fmt::format("'{}' in role {}: there is no micro-batch {}, only {} "
                      "micro-batches",
                      toText(action), role, action.microBatch,
                      problem.microBatches),
          role, index};
    int32_t &owner = ownerOf(action.stage, action.microBatch);
    if (owner != kNowhere && owner != role)
      return ScheduleFault{
          fmt::format("'{}' is in role {}, but stage {}{} belongs to role {}",
                      toText(action), role, action.stage,
                      problem.replicas.empty() ? "" : ", this replica,", owner),
          role, index};
    owner = role;
    Place &spot = place(action);
    if (spot.found())
      return ScheduleFault{
          fmt::format("'{}' stands twice in role {}, at places {} and {}",
                      toText(action), role, spot.index, index),
          role, index, role, spot.index};
    spot = {role, index};
    return std::nullopt;
  }

  /// Completeness and order of every stage's handling of every micro-batch.
  Fault checkPassages() {
    for (int32_t stage = 0; stage < problem.stages; ++stage)
      for (int32_t m = 0; m < problem.microBatches; ++m)
        if (auto fault = checkPassage(stage, m))
          return fault;
    return std::nullopt;
  }

  Fault checkPassage(int32_t stage, int32_t m) {
    const Place &whole = place(stage, ActionKind::B, m);
    const ActionKind first = whole.found() ? ActionKind::B : ActionKind::I;
    if (!place(stage, ActionKind::F, m).found())
      return missing(
          stage, m,
          fmt::format("'{}' is missing", toText({stage, ActionKind::F, m})));
    if (problem.forwardOnly)
      return checkNoBackward(stage, m);
    for (const ActionKind half : {ActionKind::I, ActionKind::W}) {
      const bool found = place(stage, half, m).found();
      if (whole.found() && found)
        return faultAt(place(stage, half, m),
                       fmt::format("'{}' repeats work of '{}' in role {}",
                                   toText({stage, half, m}),
                                   toText({stage, ActionKind::B, m}),
                                   whole.role),
                       whole);
      if (!whole.found() && !found)
        return missing(
            stage, m,
            fmt::format("'{}' is missing, and there is no '{}' either",
                        toText({stage, half, m}),
                        toText({stage, ActionKind::B, m})));
    }
    if (auto fault = checkOrder({stage, ActionKind::F, m}, {stage, first, m}))
      return fault;
    if (whole.found())
      return std::nullopt;
    return checkOrder({stage, ActionKind::I, m}, {stage, ActionKind::W, m});
  }

  Fault checkNoBackward(int32_t stage, int32_t m) {
    for (const ActionKind kind : {ActionKind::I, ActionKind::W, ActionKind::B})
      if (const Place &spot = place(stage, kind, m); spot.found())
        return faultAt(spot,
                       fmt::format("'{}' in role {} goes backward, and there "
                                   "is nothing to train",
                                   toText({stage, kind, m}), spot.role),
                       place(stage, ActionKind::F, m));
    return std::nullopt;
  }

  Fault checkOrder(const Action &early, const Action &late) {
    const Place &a = place(early), &b = place(late);
    if (a.index < b.index)
      return std::nullopt;
    return faultAt(b,
                   fmt::format("'{}' at place {} of role {} needs '{}', which "
                               "comes later at place {}",
                               toText(late), b.index, b.role, toText(early),
                               a.index),
                   a);
  }

  static ScheduleFault faultAt(const Place &at, std::string message,
                               const Place &other) {
    return {std::move(message), at.role, at.index, other.role, other.index};
  }
  ScheduleFault missing(int32_t stage, int32_t m, std::string message) {
    return {std::move(message), ownerOf(stage, m)};
  }

  /// The action of a neighbour stage that `action` needs, if any.
  std::optional<Action> needed(const Action &action) {
    const int32_t m = action.microBatch;
    if (action.kind == ActionKind::F) {
      if (problem.isFirst(action.stage))
        return std::nullopt;
      return Action{action.stage - 1, ActionKind::F, m};
    }
    const int32_t next = action.stage + 1;
    if (action.kind == ActionKind::W || problem.isLast(action.stage))
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
  Fault execute() {
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
  ScheduleFault describeCircle(int32_t role) {
    std::vector<bool> seen(schedule.roles.size(), false);
    while (!seen[role]) {
      seen[role] = true;
      role = place(*needed(schedule.roles[role][heads[role]])).role;
    }
    const int32_t start = role;
    const Place first{start, heads[start]};
    const Action early = *needed(schedule.roles[start][first.index]);
    const Place &awaited = place(early);
    // Several stages on one role can also be out of order among themselves.
    if (awaited.role == start)
      return *checkOrder(early, schedule.roles[start][first.index]);
    std::string text = "the lists wait for each other in a circle: ";
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
    return faultAt(first, std::move(text), awaited);
  }

  const ScheduleProblem &problem;
  const Schedule &schedule;
  std::vector<Place> places;         ///< by stage, micro-batch, kind
  std::vector<int32_t> owners;       ///< role of each replica of each stage
  std::vector<int32_t> firstReplica; ///< of a stage, in owners
  std::vector<int32_t> heads;        ///< next action of each role
};

} // namespace

std::optional<ScheduleFault> findFault(const ScheduleProblem &problem,
                                       const Schedule &schedule) {
  if (auto fault = problem.check())
    return ScheduleFault{std::move(*fault)};
  return Verifier(problem, schedule).run();
}

std::optional<std::string> verify(const ScheduleProblem &problem,
                                  const Schedule &schedule) {
  if (auto fault = findFault(problem, schedule))
    return std::move(fault->message);
  return std::nullopt;
}

} // namespace takt
