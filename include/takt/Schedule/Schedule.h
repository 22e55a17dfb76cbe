//===- Schedule.h - action lists and their generators ------------*- C++
//-*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// A schedule is data: for each role the order of its compute actions. The text
// of an action is `sFm`, `sIm`, `sWm`, `sBm` (stage, kind, micro-batch), a
// subset of PyTorch's pipelining CSV. Generators return action lists and
// nothing else.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace takt {

/// F forward, I input gradient, W weight gradient, B both.
enum class ActionKind : uint8_t { F, I, W, B };

struct Action {
  int32_t stage = 0;
  ActionKind kind = ActionKind::F;
  int32_t microBatch = 0;
  bool operator==(const Action &o) const {
    return stage == o.stage && kind == o.kind && microBatch == o.microBatch;
  }
};

/// "2F0"
std::string toText(const Action &action);
/// Reads one action; nothing if the text is not one.
std::optional<Action> parseAction(const std::string &text);

struct ScheduleProblem {
  int32_t stages = 1;
  int32_t microBatches = 1;
  /// Role of every stage; empty: any placement is right as long as a stage
  /// stays within one role. Generators put stage s into role s.
  std::vector<int32_t> roleOfStage = {};
  /// Equal runs of stages that exchange nothing and have micro-batches of their
  /// own each: two are a pipeline and its copy in the other direction.
  int32_t chains = 1;
  /// Replicas of each stage that take micro-batches in turn, each a role with a
  /// list of its own; empty: one each. `roleOfStage` then names the first of
  /// them, the others follow it. Micro-batch m is with replica m mod replicas.
  std::vector<int32_t> replicas = {};
  bool forwardOnly = false; ///< inference: F and nothing else
  std::optional<std::string> check() const;

  int32_t stagesOfChain() const { return stages / chains; }
  /// Nothing comes before the first stage of a chain, or behind the last.
  bool isFirst(int32_t stage) const { return stage % stagesOfChain() == 0; }
  bool isLast(int32_t stage) const { return isFirst(stage + 1); }
  int32_t replicaOf(int32_t stage, int32_t microBatch) const {
    return replicas.empty() ? 0 : microBatch % replicas[stage];
  }
};

/// One action list a role; list r is executed in order by each replica of r.
struct Schedule {
  std::string name;
  std::vector<std::vector<Action>> roles;
};

Schedule generateGPipe(const ScheduleProblem &problem);
Schedule generateOneFOneB(const ScheduleProblem &problem);
Schedule generateForward(const ScheduleProblem &problem);

/// Generators by the name the user writes: "gpipe", "1f1b"; "forward" where
/// the problem is of forwards only.
std::optional<Schedule> generateSchedule(const std::string &name,
                                         const ScheduleProblem &problem);
std::vector<std::string> scheduleNames(bool forwardOnly = false);

/// What is wrong with a schedule and where: the action at fault and, where one
/// has to do with it, another (roles and places in them from 0, -1: none).
struct ScheduleFault {
  std::string message;
  int32_t role = -1, place = -1;
  int32_t otherRole = -1, otherPlace = -1;
};

/// `verify` with the place of the action that breaks the rule.
std::optional<ScheduleFault> findFault(const ScheduleProblem &problem,
                                       const Schedule &schedule);

/// Every micro-batch passes every stage forward once and, unless the problem is
/// of forwards only, backward once (B, or I and W), each action after those it
/// needs, and the lists can run to the end
/// (no wait in a circle). Names the action that breaks the rule.
std::optional<std::string> verify(const ScheduleProblem &problem,
                                  const Schedule &schedule);

/// Most micro-batches whose forward has begun and whose backward has not ended;
/// of several stages together. One without a backward is held by its forward
/// alone.
int32_t peakInFlight(const std::vector<Action> &actions);

/// The same of each stage alone.
std::vector<int32_t> heldByStage(const Schedule &schedule, int32_t stages);

/// Puts the roles of a valid schedule in the order of their first stages.
/// Returns the role of each stage.
std::vector<int32_t> sortRoles(Schedule &schedule, int32_t stages);

} // namespace takt
