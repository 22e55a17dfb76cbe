//===- Instructions.cpp - slots, lanes and waits of a role ----------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Every dependence of an action on another lane becomes a `(lane, count)` wait:
// data that must have arrived, and slots that must have been given back. What
// the order within a lane implies is not waited for.
//
//===----------------------------------------------------------------------===//
#include "RoleBuilder.h"

#include <algorithm>
#include <numeric>

using namespace takt;
using rt::LaneKind;
using rt::Wait;

int32_t RoleBuilder::positionOf(int8_t phase, int32_t microBatch) const {
  return position[phase][microBatch];
}

void RoleBuilder::indexActions() {
  int32_t count = problem.training.microBatches;
  for (auto &p : position)
    p.assign(count, -1);
  bucketDone.resize(bucketCount(input));
  for (size_t l = 0; l < input.lanes.size(); ++l) {
    const LaneInput &lane = input.lanes[l];
    laneOf[lane.kind] = uint16_t(l);
    uint32_t instrs = 0;
    for (const CommAction &action : lane.actions) {
      if (action.wait)
        continue;
      int32_t at = int32_t(instrs);
      countAfter[toText(action)] = ++instrs;
      if (action.kind == CommKind::Reduce)
        bucketDone[std::max(action.part, 0)] = {uint16_t(l), instrs};
      if (action.kind != CommKind::Compute)
        continue;
      ++calls;
      int32_t m = action.microBatch;
      switch (action.compute) {
      case ActionKind::F:
        position[0][m] = at;
        break;
      case ActionKind::I:
        position[1][m] = at;
        break;
      case ActionKind::W:
        position[2][m] = at;
        break;
      case ActionKind::B:
        position[1][m] = position[2][m] = at;
        break;
      }
    }
  }
}

/// Slots for a buffer that is taken at a micro-batch's forward (or backward)
/// action and given back after `untilPhase`, and after its message has left if
/// it is `sent`. As many slots as are in use at once, and `extra` so that a
/// transfer can be under way while a call works.
RoleBuilder::SlotPlan RoleBuilder::assignSlots(bool byBackward,
                                               int8_t untilPhase, bool sent,
                                               int32_t extra) const {
  int32_t count = problem.training.microBatches;
  const std::vector<int32_t> &taken = position[byBackward ? 1 : 0];
  std::vector<int32_t> given(count);
  for (int32_t m = 0; m < count; ++m)
    given[m] =
        untilPhase < 0 ? taken[m] : std::max(taken[m], position[untilPhase][m]);
  std::vector<int32_t> order(count);
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(),
            [&](int32_t a, int32_t b) { return taken[a] < taken[b]; });

  // Most in use at once: sweep the takes and gives by position.
  std::vector<std::pair<int32_t, int32_t>> events;
  for (int32_t m = 0; m < count; ++m) {
    events.push_back({2 * taken[m], 1});
    events.push_back({2 * given[m] + 1, -1});
  }
  std::sort(events.begin(), events.end());
  int32_t live = 0, peak = 0;
  for (auto [at, change] : events)
    peak = std::max(peak, live += change);

  SlotPlan plan;
  plan.count = std::min(peak + extra, count);
  plan.slotOf.assign(count, 0);
  plan.before.resize(count);
  std::vector<int32_t> holder(plan.count, -1);
  for (int32_t m : order) {
    int32_t best = 0;
    auto key = [&](int32_t slot) {
      return holder[slot] < 0 ? -1 : given[holder[slot]];
    };
    for (int32_t slot = 1; slot < plan.count; ++slot)
      if (key(slot) < key(best))
        best = slot;
    int32_t earlier = holder[best];
    if (earlier >= 0) {
      plan.before[m].push_back(
          {laneOf.at(LaneKind::Compute), uint32_t(given[earlier] + 1)});
      if (sent) {
        CommAction send;
        send.kind = byBackward ? CommKind::SendB : CommKind::SendF;
        send.stage = index;
        send.microBatch = earlier;
        LaneKind lane = byBackward ? LaneKind::SendGrad : LaneKind::SendAct;
        plan.before[m].push_back(
            {laneOf.at(lane), countAfter.at(toText(send))});
      }
    }
    holder[best] = m;
    plan.slotOf[m] = uint16_t(best);
  }
  return plan;
}

void RoleBuilder::planSlots() {
  auto lastPhase = [&](int32_t tensor) {
    return memory.lifetimes[tensor].lastPhase;
  };
  if (memory.savedBytes > 0)
    savedSlots = assignSlots(false, memory.savedUntil, false, 0);
  if (!stage.loads.empty()) {
    int8_t until = 0;
    for (auto &[name, tensor] : stage.loads)
      until = std::max(until, lastPhase(tensor));
    batchSlots = assignSlots(false, until, false, 1);
  }
  if (stage.input >= 0)
    inputSlots = assignSlots(false, lastPhase(stage.input), false, 1);
  if (stage.output >= 0)
    outputSlots = assignSlots(false, lastPhase(stage.output), true, 1);
  if (stage.outputGrad >= 0)
    outputGradSlots = assignSlots(
        true, std::max<int8_t>(lastPhase(stage.outputGrad), 1), false, 1);
  if (stage.inputGradient >= 0)
    inputGradSlots = assignSlots(true, lastPhase(stage.inputGradient), true, 1);
}

namespace {

/// Waits of one instruction: the largest count a lane, without the own lane.
std::vector<Wait> normalize(const std::vector<Wait> &waits, uint16_t own) {
  std::map<uint16_t, uint32_t> most;
  for (const Wait &wait : waits)
    if (wait.lane != own)
      most[wait.lane] = std::max(most[wait.lane], wait.count);
  std::vector<Wait> out;
  for (auto [lane, count] : most)
    out.push_back({lane, count});
  return out;
}

const char *laneName(LaneKind kind) {
  switch (kind) {
  case LaneKind::Compute:
    return "compute";
  case LaneKind::Load:
    return "load";
  case LaneKind::RecvAct:
    return "recv_act";
  case LaneKind::SendAct:
    return "send_act";
  case LaneKind::RecvGrad:
    return "recv_grad";
  case LaneKind::SendGrad:
    return "send_grad";
  case LaneKind::Reduce:
    return "reduce";
  case LaneKind::Tie:
    return "tie";
  }
  return "";
}

} // namespace

/// All-reduces of the buckets in which the accumulators of a tied parameter
/// lie.
std::vector<Wait> RoleBuilder::tiedBuckets(int32_t tie) const {
  std::vector<Wait> waits;
  for (int32_t l = input.layerBegin; l < input.layerEnd; ++l)
    for (int32_t param : graph.layers[l].params)
      if (param == problem.ties[tie].param)
        waits.push_back(bucketDone[bucketOf(input, l)]);
  return waits;
}

void RoleBuilder::makeLanes() {
  auto has = [&](LaneKind kind) { return laneOf.count(kind) != 0; };
  auto done = [&](CommKind kind, LaneKind lane, const CommAction &like) {
    CommAction other = like;
    other.kind = kind;
    other.wait = false;
    return Wait{laneOf.at(lane), countAfter.at(toText(other))};
  };
  uint16_t compute = laneOf.at(LaneKind::Compute);
  auto append = [](std::vector<Wait> &to, const std::vector<Wait> &from) {
    to.insert(to.end(), from.begin(), from.end());
  };
  auto called = [&](int8_t phase, int32_t m) {
    return Wait{compute, uint32_t(positionOf(phase, m) + 1)};
  };
  Wait allCalls{compute, uint32_t(calls)};
  std::vector<Wait> pieceDone(bucketDone.size());
  for (const CommAction &a : input.lanes[compute].actions)
    if (a.kind == CommKind::Compute && a.part >= 0)
      pieceDone[a.part] = {compute, countAfter.at(toText(a))};
  /// Waits before a slot is written, or none if the pool does not exist.
  auto slotFree = [&](const SlotPlan &slots, int32_t m) {
    return slots.before.empty() ? std::vector<Wait>{} : slots.before[m];
  };

  auto waitsOf = [&](const CommAction &a) {
    std::vector<Wait> waits;
    switch (a.kind) {
    case CommKind::Compute:
      if (a.part > 0)
        break; // what a piece needs the first one has waited for
      if (a.compute == ActionKind::F) {
        if (has(LaneKind::Load))
          waits.push_back(done(CommKind::Load, LaneKind::Load, a));
        if (has(LaneKind::RecvAct))
          waits.push_back(done(CommKind::RecvF, LaneKind::RecvAct, a));
        append(waits, slotFree(outputSlots, a.microBatch));
      } else if (a.compute != ActionKind::W) {
        if (has(LaneKind::RecvGrad))
          waits.push_back(done(CommKind::RecvB, LaneKind::RecvGrad, a));
        append(waits, slotFree(inputGradSlots, a.microBatch));
      }
      break;
    case CommKind::Load:
      append(waits, slotFree(batchSlots, a.microBatch));
      break;
    case CommKind::RecvF:
      append(waits, slotFree(inputSlots, a.microBatch));
      break;
    case CommKind::RecvB:
      append(waits, slotFree(outputGradSlots, a.microBatch));
      break;
    case CommKind::SendF:
      waits.push_back(called(0, a.microBatch));
      break;
    case CommKind::SendB:
      waits.push_back(called(1, a.microBatch));
      break;
    case CommKind::Reduce:
      waits.push_back(a.part < 0 ? allCalls : pieceDone[a.part]);
      break;
    case CommKind::TieSum: {
      const auto &stages = problem.ties[a.tie].stages;
      if (has(LaneKind::Reduce))
        append(waits, tiedBuckets(a.tie));
      if (stages.front() != index) {
        auto self = std::find(stages.begin(), stages.end(), index);
        CommAction partial = a;
        partial.peer = *(self - 1);
        waits.push_back(done(CommKind::TieRecv, LaneKind::Tie, partial));
      }
      break;
    }
    case CommKind::TieSend: {
      CommAction sum = a;
      sum.peer = -1;
      waits.push_back(done(CommKind::TieSum, LaneKind::Compute, sum));
      break;
    }
    case CommKind::TieRecv:
      waits.push_back(allCalls);
      break;
    case CommKind::Update:
      if (has(LaneKind::Reduce))
        append(waits, bucketDone);
      if (has(LaneKind::Tie)) {
        uint16_t tie = laneOf.at(LaneKind::Tie);
        waits.push_back({tie, uint32_t(input.lanes[tie].actions.size())});
      }
      break;
    }
    return waits;
  };

  auto instrOf = [&](const CommAction &a) {
    rt::Instr instr;
    instr.microBatch = a.microBatch;
    auto set = [&](rt::InstrKind kind, int32_t target) {
      instr.kind = kind;
      instr.target = uint16_t(target);
    };
    using rt::InstrKind;
    static const char *const computeNames[] = {"F", "I", "W", "B"};
    switch (a.kind) {
    case CommKind::Compute:
      set(InstrKind::Call,
          procedureOf.at(
              computeNames[int(a.compute)] +
              (a.part < 0 ? std::string() : "." + std::to_string(a.part))));
      break;
    case CommKind::TieSum:
      set(InstrKind::Call, procedureOf.at("T" + std::to_string(a.tie)));
      break;
    case CommKind::Update:
      set(InstrKind::Call, procedureOf.at("U"));
      break;
    case CommKind::Load:
      set(InstrKind::Load, 0);
      break;
    case CommKind::SendF:
      set(InstrKind::Send, channels.activation[index]);
      break;
    case CommKind::RecvF:
      set(InstrKind::Recv, channels.activation[index - 1]);
      break;
    case CommKind::SendB:
      set(InstrKind::Send, channels.gradient[index - 1]);
      break;
    case CommKind::RecvB:
      set(InstrKind::Recv, channels.gradient[index]);
      break;
    case CommKind::Reduce:
      set(InstrKind::AllReduce, channels.group[index][std::max(a.part, 0)]);
      break;
    case CommKind::TieSend:
      set(InstrKind::Send, channels.tie.at({a.tie, index, a.peer}));
      break;
    case CommKind::TieRecv:
      set(InstrKind::Recv, channels.tie.at({a.tie, a.peer, index}));
      break;
    }
    return instr;
  };

  for (size_t l = 0; l < input.lanes.size(); ++l) {
    rt::Lane lane;
    lane.kind = input.lanes[l].kind;
    lane.name = laneName(lane.kind);
    for (size_t other = 0, same = 0; other < l; ++other)
      if (input.lanes[other].kind == lane.kind)
        lane.name = laneName(lane.kind) + std::to_string(++same);
    std::vector<Wait> ordered; // before the next action of the lane
    for (const CommAction &action : input.lanes[l].actions) {
      if (action.wait) {
        ordered.push_back(action.kind == CommKind::Reduce
                              ? bucketDone[std::max(action.part, 0)]
                              : done(action.kind, LaneKind::SendGrad, action));
        continue;
      }
      rt::Instr instr = instrOf(action);
      instr.waitBegin = uint32_t(lane.waits.size());
      append(ordered, waitsOf(action));
      append(lane.waits, normalize(ordered, uint16_t(l)));
      ordered.clear();
      instr.waitEnd = uint32_t(lane.waits.size());
      lane.instrs.push_back(instr);
    }
    role.lanes.push_back(std::move(lane));
  }
}
