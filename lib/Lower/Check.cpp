//===- Check.cpp - whether a lowering problem is whole --------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Stages cover the model, roles the stages; the lanes hold what the compute
// schedule calls for, in any order that can be lowered.
//
//===----------------------------------------------------------------------===//
#include "takt/Lower/Lower.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

using namespace takt;

namespace {

/// The compute actions of every role, taken back out of the lanes.
Schedule computeSchedule(const LoweringProblem &problem) {
  Schedule schedule{problem.schedule, {}};
  for (const RoleInput &role : problem.roles) {
    std::vector<Action> actions;
    for (const LaneInput &lane : role.lanes)
      for (const CommAction &a : lane.actions)
        if (a.kind == CommKind::Compute && a.part <= 0)
          actions.push_back({a.stage, a.compute, a.microBatch});
    schedule.roles.push_back(std::move(actions));
  }
  return schedule;
}

std::optional<std::string> checkStage(const LoweringProblem &problem,
                                      size_t index) {
  const StageInput &stage = problem.stages[index];
  int32_t expected = index ? problem.stages[index - 1].layerEnd : 0;
  if (stage.layerBegin != expected || stage.layerEnd <= stage.layerBegin)
    return fmt::format("stage {} holds layers [{}, {}), expected a range from "
                       "{}",
                       index, stage.layerBegin, stage.layerEnd, expected);
  if (stage.times.size() != size_t(stage.layerEnd - stage.layerBegin))
    return fmt::format("stage {} has times for {} of {} layers", index,
                       stage.times.size(), stage.layerEnd - stage.layerBegin);
  return std::nullopt;
}

/// Every stage in one role, and devices that can take their share.
std::optional<std::string> checkRoles(const LoweringProblem &problem) {
  const int32_t stages = int32_t(problem.stages.size());
  std::vector<int32_t> roleOf(stages, -1);
  for (size_t r = 0; r < problem.roles.size(); ++r) {
    const RoleInput &role = problem.roles[r];
    if (role.stages.empty())
      return fmt::format("role {} has no stage", r);
    int32_t last = -1;
    for (int32_t stage : role.stages) {
      if (stage <= last || stage >= stages)
        return fmt::format("role {} names stage {} of {} after stage {}", r,
                           stage, stages, last);
      if (roleOf[stage] >= 0)
        return fmt::format("roles {} and {} both have stage {}", roleOf[stage],
                           r, stage);
      roleOf[stage] = int32_t(r);
      last = stage;
    }
    int64_t share = problem.training.microBatchSize();
    if (role.replicas < 1 || share % role.replicas != 0)
      return fmt::format("role {}: {} replicas do not divide a micro-batch of "
                         "{} samples",
                         r, role.replicas, share);
    if (role.devices.size() != size_t(role.replicas))
      return fmt::format("role {} names {} devices for {} replicas", r,
                         role.devices.size(), role.replicas);
  }
  for (int32_t stage = 0; stage < stages; ++stage)
    if (roleOf[stage] < 0)
      return fmt::format("stage {} belongs to no role", stage);
  return std::nullopt;
}

/// Buckets divide the layers from the last to the first, and each has something
/// to reduce.
std::optional<std::string> checkBuckets(const LoweringProblem &problem,
                                        size_t index) {
  const StageInput &stage = problem.stages[index];
  const std::vector<int32_t> &begins = stage.bucketBegins;
  if (begins.empty())
    return std::nullopt;
  int32_t end = stage.layerEnd;
  for (int32_t begin : begins) {
    if (begin < stage.layerBegin || begin >= end)
      return fmt::format("stage {}: a gradient bucket begins at layer {}, "
                         "expected one of [{}, {})",
                         index, begin, stage.layerBegin, end);
    end = begin;
  }
  if (end != stage.layerBegin)
    return fmt::format("stage {}: the last gradient bucket begins at layer {}, "
                       "the stage at layer {}",
                       index, end, stage.layerBegin);
  if (begins.size() == 1)
    return std::nullopt;
  if (problem.roles[problem.roleOfStage()[index]].replicas < 2)
    return fmt::format("stage {} has {} gradient buckets and one replica, "
                       "which reduces nothing",
                       index, begins.size());
  std::vector<Bytes> bytes = bucketBytes(problem.graph, stage);
  for (size_t k = 0; k < bytes.size(); ++k)
    if (bytes[k] == 0)
      return fmt::format("stage {}: gradient bucket {} is empty", index, k);
  return std::nullopt;
}

/// The pieces of an action stand together and in order: what one leaves in the
/// workspace is there for the next.
std::optional<std::string> checkPieces(const LoweringProblem &problem,
                                       const LaneInput &lane, size_t role) {
  int32_t expected = 0;
  for (size_t i = 0; i < lane.actions.size(); ++i) {
    const CommAction &a = lane.actions[i];
    CommAction first = a;
    first.part = 0;
    bool follows = expected == 0 || (i > 0 && [&] {
                     CommAction before = lane.actions[i - 1];
                     before.part = 0;
                     return before == first;
                   }());
    int32_t part = a.kind == CommKind::Compute ? a.part : -1;
    if ((part < 0 && expected > 0) ||
        (part >= 0 && (part != expected || !follows)))
      return fmt::format("role {}: '{}' stands where piece {} of an action is "
                         "expected",
                         role, toText(a), expected);
    const bool isLast =
        part < 0 || part + 1 == bucketCount(problem.stages[a.stage]);
    expected = isLast ? 0 : part + 1;
  }
  if (expected > 0)
    return fmt::format("role {}: piece {} of its last action is missing", role,
                       expected);
  return std::nullopt;
}

/// What tells actions apart, in an order of its own.
using Key = std::tuple<rt::LaneKind, CommKind, int32_t, ActionKind, int32_t,
                       int32_t, int32_t, int32_t>;

std::map<Key, const CommAction *> actionsOf(const RoleInput &role,
                                            bool &doubled) {
  std::map<Key, const CommAction *> found;
  for (const LaneInput &lane : role.lanes)
    for (const CommAction &a : lane.actions)
      if (!a.wait)
        doubled |= !found
                        .insert({Key{lane.kind, a.kind, a.stage, a.compute,
                                     a.microBatch, a.tie, a.peer, a.part},
                                 &a})
                        .second;
  return found;
}

/// Whether a lane holds the transfers of one stage, each stage on one lane:
/// boundaries are channels of their own and must not wait for one another.
std::optional<std::string> checkTransferLanes(const RoleInput &role,
                                              size_t index) {
  std::map<std::pair<rt::LaneKind, int32_t>, int> seen;
  for (const LaneInput &lane : role.lanes) {
    if (lane.actions.empty())
      return fmt::format("role {} has an empty lane", index);
    switch (lane.kind) {
    case rt::LaneKind::RecvAct:
    case rt::LaneKind::SendAct:
    case rt::LaneKind::RecvGrad:
    case rt::LaneKind::SendGrad:
      break;
    default:
      continue;
    }
    const CommAction &first = lane.actions.front();
    for (const CommAction &a : lane.actions)
      if (a.stage != first.stage)
        return fmt::format("role {}: '{}' and '{}' share a lane, they are of "
                           "different boundaries",
                           index, toText(first), toText(a));
    if (seen[{lane.kind, first.stage}]++ > 0)
      return fmt::format("role {}: transfers like '{}' stand on two lanes",
                         index, toText(first));
  }
  return std::nullopt;
}

/// Devices are numbered through all nodes.
std::optional<std::string> checkResources(const LoweringProblem &problem) {
  if (problem.resources.empty())
    return std::nullopt;
  int64_t devices = 0;
  for (const rt::NodeResources &nodes : problem.resources)
    devices += int64_t(nodes.nodes) * nodes.devices;
  for (const RoleInput &role : problem.roles)
    for (int32_t device : role.devices)
      if (device < 0 || device >= devices)
        return fmt::format("device {} is not one of the {} of the nodes",
                           device, devices);
  return std::nullopt;
}

/// The lanes must hold the actions that the compute schedule calls for, in any
/// order that keeps step actions after the calls.
std::optional<std::string> checkLanes(const LoweringProblem &problem) {
  Schedule schedule = computeSchedule(problem);
  ScheduleProblem shape{int32_t(problem.stages.size()),
                        problem.training.microBatches, problem.roleOfStage()};
  shape.forwardOnly = problem.training.mode == rt::Mode::Inference;
  if (auto fault = verify(shape, schedule))
    return fault;
  LoweringProblem reference = problem;
  insertCommunication(reference, schedule);
  for (size_t r = 0; r < problem.roles.size(); ++r) {
    bool doubled = false;
    auto have = actionsOf(problem.roles[r], doubled);
    auto need = actionsOf(reference.roles[r], doubled);
    for (auto &[key, action] : need)
      if (!have.count(key))
        return fmt::format("role {} lacks the action '{}'", r, toText(*action));
    if (doubled || have.size() != need.size())
      return fmt::format("role {} has actions that its schedule does not call "
                         "for",
                         r);
    if (auto fault = checkTransferLanes(problem.roles[r], r))
      return fault;
    if (auto fault = checkWaits(problem.roles[r]))
      return fault;
    bool step = false;
    for (const LaneInput &lane : problem.roles[r].lanes) {
      if (lane.kind != rt::LaneKind::Compute)
        continue;
      if (auto fault = checkPieces(problem, lane, r))
        return fault;
      for (const CommAction &a : lane.actions) {
        if (a.kind == CommKind::Compute && step)
          return fmt::format("role {}: '{}' stands after the sums or the "
                             "update",
                             r, toText(a));
        step = a.kind != CommKind::Compute;
      }
    }
  }
  return std::nullopt;
}

} // namespace

std::optional<std::string> LoweringProblem::check() const {
  if (auto fault = graph.check())
    return fault;
  if (!layerNumbers.empty()) {
    std::vector<int32_t> sorted = layerNumbers;
    std::sort(sorted.begin(), sorted.end());
    bool each = sorted.size() == graph.layers.size();
    for (size_t l = 0; each && l < sorted.size(); ++l)
      each = sorted[l] == int32_t(l);
    if (!each)
      return "the layers' numbers in the model are not each one once";
  }
  if (stages.empty())
    return "there are no stages";
  if (training.microBatches < 1 || training.globalBatch < 1 ||
      training.globalBatch % training.microBatches != 0)
    return fmt::format("a global batch of {} is not divisible into {} "
                       "micro-batches",
                       training.globalBatch, training.microBatches);
  for (size_t s = 0; s < stages.size(); ++s)
    if (auto fault = checkStage(*this, s))
      return fault;
  if (auto fault = checkRoles(*this))
    return fault;
  for (size_t s = 0; s < stages.size(); ++s)
    if (auto fault = checkBuckets(*this, s))
      return fault;
  if (stages.back().layerEnd != int32_t(graph.layers.size()))
    return fmt::format("the stages end at layer {} of {}",
                       stages.back().layerEnd, graph.layers.size());
  if (boundaryLinks.size() + 1 != stages.size())
    return fmt::format("{} links for {} boundaries", boundaryLinks.size(),
                       stages.size() - 1);
  std::vector<std::pair<int32_t, int32_t>> ranges;
  for (const StageInput &stage : stages)
    ranges.push_back({stage.layerBegin, stage.layerEnd});
  std::vector<TieInput> expected = findTies(graph, ranges);
  auto same = [](const TieInput &a, const TieInput &b) {
    return a.param == b.param && a.stages == b.stages;
  };
  if (!std::equal(ties.begin(), ties.end(), expected.begin(), expected.end(),
                  same))
    return "the ties are not those of the graph and its cuts";
  if (tieLinks.size() != ties.size())
    return fmt::format("{} links for {} ties", tieLinks.size(), ties.size());
  if (auto fault = checkResources(*this))
    return fault;
  return checkLanes(*this);
}
