//===- Sends.cpp - what competes with the buckets of a stage --------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// The gradient of the last micro-batch leaves a stage while its own gradients
// are reduced. How long the stages before it still take afterwards is read off
// a simulated step.
//
//===----------------------------------------------------------------------===//
#include "takt/Overlap/Choose.h"

#include <algorithm>
#include <utility>

using namespace takt;
using rt::LaneKind;

namespace {

/// Places in the compute lane of the last action that makes gradients of
/// weights (of its first piece) and of the last that makes one of the input.
struct LastCalls {
  int32_t weights = -1, input = -1;
};

LastCalls lastCalls(const RoleInput &stage) {
  LastCalls last;
  for (const LaneInput &lane : stage.lanes) {
    if (lane.kind != LaneKind::Compute)
      continue;
    for (size_t i = 0; i < lane.actions.size(); ++i) {
      const CommAction &a = lane.actions[i];
      if (a.kind != CommKind::Compute || a.compute == ActionKind::F)
        continue;
      if (a.compute != ActionKind::I && a.part <= 0)
        last.weights = int32_t(i);
      if (a.compute != ActionKind::W)
        last.input = int32_t(i);
    }
  }
  return last;
}

} // namespace

std::optional<TailSend> takt::tailSend(const LoweringProblem &problem,
                                       int32_t index, const rt::Plan &plan,
                                       const rt::Simulation &run) {
  const int32_t number = problem.roleOfStage()[index];
  const RoleInput &stage = problem.roles[number];
  // With several stages a role others of it may wait for the send.
  if (index == 0 || problem.resources.empty() || stage.stages.size() > 1)
    return std::nullopt;
  const rt::Link &link = problem.boundaryLinks[index - 1];
  if (link.bytesPerSecond <= 0 || link.name != stage.groupLink.name)
    return std::nullopt;
  const rt::Role &role = plan.roles[number];
  // Lanes of problem and role are one to one, and so are their actions but for
  // waits, of which compute lanes have none.
  int32_t computeLane = -1, sendLane = -1;
  TailSend send;
  for (size_t l = 0; l < stage.lanes.size(); ++l) {
    if (stage.lanes[l].kind == LaneKind::Compute)
      computeLane = int32_t(l);
    if (stage.lanes[l].kind == LaneKind::SendGrad) {
      sendLane = int32_t(l);
      send.microBatch = stage.lanes[l].actions.back().microBatch;
    }
  }
  LastCalls last = lastCalls(stage);
  if (sendLane < 0 || computeLane < 0 || last.weights < 0 || last.input < 0)
    return std::nullopt;

  const rt::Lane &sends = role.lanes[sendLane];
  for (const rt::Instr &instr : sends.instrs) // a message may be several
    if (instr.microBatch == send.microBatch)
      send.time += rt::transferTime(plan, plan.channels[instr.target]);
  Nanos begin = 0, ready = 0, end = 0, others = 0;
  for (const rt::Record &record : run.records) {
    if (record.rank < role.firstRank)
      others = std::max(others, record.end);
    if (record.rank != role.firstRank)
      continue;
    if (record.lane == computeLane && int32_t(record.instr) == last.weights)
      begin = record.begin;
    if (record.lane == computeLane && int32_t(record.instr) == last.input)
      ready = record.end;
    if (record.lane == sendLane && record.instr + 1 == sends.instrs.size())
      end = record.end;
  }
  send.afterPieces = last.input >= last.weights;
  if (!send.afterPieces)
    send.release = std::max<Nanos>(ready - begin, 0);
  send.tail = std::max<Nanos>(others - end, 0);
  return send;
}

OverlapSolution
takt::placeSend(const OverlapProblem &problem,
                const std::vector<std::vector<int32_t>> &buckets,
                const OverlapLimits &limits) {
  int32_t update = int32_t(problem.actions.size()) - 1, send = update - 1;
  std::optional<OverlapSolution> best;
  for (size_t l = 0; l < buckets.size(); ++l)
    for (size_t place = 0; place <= buckets[l].size(); ++place) {
      std::vector<std::vector<int32_t>> lanes = buckets;
      lanes[l].insert(lanes[l].begin() + place, send);
      std::optional<OverlapSolution> other = inOrder(problem, lanes);
      if (other &&
          (!best || std::pair(other->makespan, other->start[update]) <
                        std::pair(best->makespan, best->start[update])))
        best = std::move(other);
    }
  Nanos bound = overlapBound(problem);
  if (best && best->makespan == bound) {
    best->bound = bound;
    return *best;
  }
  OverlapSolution solved = solveOverlap(problem, limits);
  if (!best || solved.makespan < best->makespan)
    return solved;
  // The same end in an order that changes less.
  best->bound = solved.bound;
  best->method = solved.method;
  best->work = solved.work;
  return *best;
}
