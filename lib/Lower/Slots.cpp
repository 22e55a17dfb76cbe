//===- Slots.cpp - which micro-batch holds which slot ---------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// A slot is held from when a buffer may be written to the last action that
// reads it; as many slots as are held at once, one more where a transfer fills
// or empties them beside the calls.
//
// Received buffers. Counted by the role's own calls, a message may have to wait
// for a slot until a call of the receiver has run. In a pipeline of one stage a
// role all that this call needs was sent earlier on the same channel, so it
// runs. With several stages a role the call may need, through other stages,
// what the sender does only later: the run would stop. Then buffers are counted
// along a run that exists (`takeTurns`), in which no message waits for a slot;
// where that run can go on, so can every other.
//
//===----------------------------------------------------------------------===//
#include "RoleBuilder.h"

#include <algorithm>
#include <limits>
#include <numeric>

using namespace takt;
using rt::LaneKind;
using rt::Wait;

Turns takt::takeTurns(const LoweringProblem &problem) {
  constexpr int32_t kNever = std::numeric_limits<int32_t>::max();
  const size_t roles = problem.roles.size(), stages = problem.stages.size();
  Turns turns;
  turns.ofLane.resize(roles);
  for (auto *made : {&turns.forward, &turns.backward})
    made->assign(stages,
                 std::vector<int32_t>(problem.training.microBatches, kNever));
  auto computeOf = [&](size_t role) -> const std::vector<CommAction> & {
    for (const LaneInput &lane : problem.roles[role].lanes)
      if (lane.kind == LaneKind::Compute)
        return lane.actions;
    static const std::vector<CommAction> none;
    return none;
  };
  // True if the action can run in this turn: what it needs came before.
  auto mayRun = [&](const CommAction &a, int32_t turn) {
    if (a.compute == ActionKind::F)
      return a.stage == 0 || turns.forward[a.stage - 1][a.microBatch] < turn;
    return a.compute == ActionKind::W || size_t(a.stage) + 1 == stages ||
           turns.backward[a.stage + 1][a.microBatch] < turn;
  };
  bool moved = true;
  for (int32_t turn = 0; moved; ++turn) {
    moved = false;
    for (size_t r = 0; r < roles; ++r) {
      const std::vector<CommAction> &actions = computeOf(r);
      std::vector<int32_t> &done = turns.ofLane[r];
      if (done.size() == actions.size())
        continue;
      const CommAction &next = actions[done.size()];
      if (next.kind == CommKind::Compute && !mayRun(next, turn))
        continue;
      moved = true;
      done.push_back(turn);
      // Pieces are one action.
      while (done.size() < actions.size() && actions[done.size()].part > 0 &&
             actions[done.size()].kind == CommKind::Compute)
        done.push_back(turn);
      if (next.kind != CommKind::Compute)
        continue;
      if (next.compute == ActionKind::F)
        turns.forward[next.stage][next.microBatch] = turn;
      else if (next.compute != ActionKind::W)
        turns.backward[next.stage][next.microBatch] = turn;
    }
  }
  return turns;
}

/// Slots by micro-batch, given when each begins and ends to be held; both ends
/// count. They are taken in `order`, in which the beginnings ascend. `earlier`
/// becomes the holder of the slot before each, or -1.
SlotPlan RoleBuilder::assignSlots(const std::vector<int32_t> &begins,
                                  const std::vector<int32_t> &ends,
                                  const std::vector<int32_t> &order,
                                  int32_t extra,
                                  std::vector<int32_t> &earlier) const {
  const int32_t count = int32_t(begins.size());
  std::vector<std::pair<int64_t, int32_t>> events;
  for (int32_t m = 0; m < count; ++m) {
    events.push_back({2 * int64_t(begins[m]), 1});
    events.push_back({2 * int64_t(ends[m]) + 1, -1});
  }
  std::sort(events.begin(), events.end());
  int32_t live = 0, peak = 0;
  for (auto [at, change] : events)
    peak = std::max(peak, live += change);

  SlotPlan plan;
  plan.count = std::min(peak + extra, count);
  plan.slotOf.assign(count, 0);
  plan.before.resize(count);
  earlier.assign(count, -1);
  std::vector<int32_t> holder(plan.count, -1);
  for (int32_t m : order) {
    int32_t best = 0;
    auto key = [&](int32_t slot) {
      return holder[slot] < 0 ? -1 : ends[holder[slot]];
    };
    for (int32_t slot = 1; slot < plan.count; ++slot)
      if (key(slot) < key(best))
        best = slot;
    earlier[m] = holder[best];
    holder[best] = m;
    plan.slotOf[m] = uint16_t(best);
  }
  return plan;
}

/// Position of the last action that uses a buffer which is taken in `phase`.
std::vector<int32_t> RoleBuilder::givenBack(const StagePart &part, int8_t phase,
                                            int8_t untilPhase) const {
  std::vector<int32_t> given = part.position[phase];
  for (size_t m = 0; untilPhase >= 0 && m < given.size(); ++m)
    given[m] = std::max(given[m], part.position[untilPhase][m]);
  return given;
}

/// Micro-batches by ascending position.
static std::vector<int32_t> inOrderOf(const std::vector<int32_t> &positions) {
  std::vector<int32_t> order(positions.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(),
            [&](int32_t a, int32_t b) { return positions[a] < positions[b]; });
  return order;
}

/// Slots for a buffer that is taken at a micro-batch's forward (or backward)
/// action and given back after `untilPhase`, and after its message has left if
/// it is `sent`.
SlotPlan RoleBuilder::ownSlots(const StagePart &part, bool byBackward,
                               int8_t untilPhase, bool sent,
                               int32_t extra) const {
  const int8_t phase = byBackward ? 1 : 0;
  const std::vector<int32_t> &taken = part.position[phase];
  std::vector<int32_t> given = givenBack(part, phase, untilPhase), earlier;
  SlotPlan plan = assignSlots(taken, given, inOrderOf(taken), extra, earlier);
  for (size_t m = 0; m < taken.size(); ++m) {
    if (earlier[m] < 0)
      continue;
    plan.before[m].push_back(
        {uint16_t(laneOf(LaneKind::Compute)), uint32_t(given[earlier[m]] + 1)});
    if (!sent)
      continue;
    CommAction send;
    send.kind = byBackward ? CommKind::SendB : CommKind::SendF;
    send.stage = part.index;
    send.microBatch = earlier[m];
    plan.before[m].push_back(after(send));
  }
  return plan;
}

/// Slots for a buffer that a message fills for a micro-batch's forward (or
/// backward) action, in the order of the messages: one must have its slot
/// before any later one is needed.
SlotPlan RoleBuilder::receivedSlots(const StagePart &part, bool byBackward,
                                    int8_t untilPhase) const {
  const int8_t phase = byBackward ? 1 : 0;
  const LaneKind kind = byBackward ? LaneKind::RecvGrad : LaneKind::RecvAct;
  std::vector<int32_t> order;
  for (const CommAction &action : input.lanes[laneOf(kind, part.index)].actions)
    order.push_back(action.microBatch);
  const std::vector<int32_t> given = givenBack(part, phase, untilPhase);
  std::vector<int32_t> begins, ends = given, earlier;
  if (turns) {
    begins = byBackward ? turns->backward[part.index + 1]
                        : turns->forward[part.index - 1];
    for (int32_t &end : ends)
      end = turns->ofLane[index][end];
  } else {
    begins = part.position[phase];
    for (size_t i = order.size() - 1; i-- > 0;)
      begins[order[i]] = std::min(begins[order[i]], begins[order[i + 1]]);
  }
  SlotPlan plan = assignSlots(begins, ends, order, 1, earlier);
  for (size_t m = 0; m < given.size(); ++m)
    if (earlier[m] >= 0)
      plan.before[m].push_back({uint16_t(laneOf(LaneKind::Compute)),
                                uint32_t(given[earlier[m]] + 1)});
  return plan;
}

/// The buffers between two neighbouring stages of the role.
void RoleBuilder::planHandover(StagePart &from, StagePart &to) {
  auto plan = [&](StagePart &reader, TensorRole what, Bytes bytes,
                  const std::vector<int32_t> &begins,
                  const std::vector<int32_t> &one,
                  const std::vector<int32_t> &other) {
    std::vector<int32_t> ends = one, earlier;
    for (size_t m = 0; m < ends.size(); ++m)
      ends[m] = std::max(ends[m], other[m]);
    SlotPlan slots = assignSlots(begins, ends, inOrderOf(begins), 0, earlier);
    handovers.push_back({reader.index, what, bytes, begins, std::move(ends)});
    return slots;
  };
  if (Bytes bytes = messageBytes(to.stage, to.stage.inputs, false))
    to.inputSlots = plan(
        to, TensorRole::Input, bytes, from.position[0],
        givenBack(from, 0, lastPhase(from.memory, from.stage.outputs, false)),
        givenBack(to, 0, lastPhase(to.memory, to.stage.inputs, false)));
  if (Bytes bytes = messageBytes(from.stage, from.stage.outputs, true))
    from.outputGradSlots = plan(
        from, TensorRole::OutputGrad, bytes, to.position[1],
        givenBack(to, 1, lastPhase(to.memory, to.stage.inputs, true)),
        givenBack(from, 1, lastPhase(from.memory, from.stage.outputs, true)));
}

/// One load fills the buffers of all stages that have inputs: each is taken
/// when the first of the stages runs.
void RoleBuilder::planLoads() {
  const int32_t lane = laneOf(LaneKind::Load);
  if (lane < 0)
    return;
  std::vector<int32_t> order, begins(problem.training.microBatches,
                                     std::numeric_limits<int32_t>::max());
  for (const CommAction &action : input.lanes[lane].actions)
    order.push_back(action.microBatch);
  for (const StagePart &part : parts)
    for (size_t m = 0; !part.stage.loads.empty() && m < begins.size(); ++m)
      begins[m] = std::min(begins[m], part.position[0][m]);
  for (StagePart &part : parts) {
    if (part.stage.loads.empty())
      continue;
    int8_t until = 0;
    for (auto &[name, tensor] : part.stage.loads)
      until = std::max(until, part.memory.lifetimes[tensor].lastPhase);
    std::vector<int32_t> given = givenBack(part, 0, until), earlier;
    part.batchSlots = assignSlots(begins, given, order, 1, earlier);
    for (size_t m = 0; m < given.size(); ++m)
      if (earlier[m] >= 0)
        part.batchSlots.before[m].push_back(
            {uint16_t(laneOf(LaneKind::Compute)),
             uint32_t(given[earlier[m]] + 1)});
  }
}

void RoleBuilder::planSlots() {
  planLoads();
  for (StagePart &part : parts) {
    const Stage &stage = part.stage;
    const int8_t input = lastPhase(part.memory, stage.inputs, false);
    const int8_t output = lastPhase(part.memory, stage.outputs, false);
    const int8_t outputGrad = lastPhase(part.memory, stage.outputs, true);
    const int8_t inputGrad = lastPhase(part.memory, stage.inputs, true);
    const bool sendsOn = !isHandover(part.index);
    const bool sendsBack = !isHandover(part.index - 1);
    if (part.memory.savedBytes > 0)
      part.savedSlots = ownSlots(part, false, part.memory.savedUntil, false, 0);
    if (input >= 0 && sendsBack)
      part.inputSlots = receivedSlots(part, false, input);
    if (output >= 0 && sendsOn)
      part.outputSlots = ownSlots(part, false, output, true, 1);
    if (outputGrad >= 0 && sendsOn)
      part.outputGradSlots = receivedSlots(part, true, outputGrad);
    if (inputGrad >= 0 && sendsBack)
      part.inputGradSlots = ownSlots(part, true, inputGrad, true, 1);
    if (!sendsBack)
      planHandover(*(&part - 1), part);
  }
}
