//===- Instructions.cpp - lanes and waits of a role -----------------------===//
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

using namespace takt;
using rt::LaneKind;
using rt::Wait;

RoleBuilder::ActionKey RoleBuilder::keyOf(const CommAction &a) {
  return {a.kind, a.stage, a.compute, a.microBatch, a.tie, a.peer, a.part};
}

/// Whether lanes of a kind carry transfers of one stage each.
static bool isOfStage(LaneKind kind) {
  return kind == LaneKind::RecvAct || kind == LaneKind::SendAct ||
         kind == LaneKind::RecvGrad || kind == LaneKind::SendGrad;
}

static bool isMessage(CommKind kind) {
  return kind == CommKind::SendF || kind == CommKind::RecvF ||
         kind == CommKind::SendB || kind == CommKind::RecvB;
}

/// Channels of the values that a message carries, each an instruction.
std::vector<uint16_t> RoleBuilder::channelsOf(const CommAction &a) const {
  const bool below = a.kind == CommKind::RecvF || a.kind == CommKind::SendB;
  const bool forward = a.kind == CommKind::SendF || a.kind == CommKind::RecvF;
  std::vector<uint16_t> result;
  for (int32_t channel :
       (forward ? channels.activation : channels.gradient)[a.stage - below])
    if (channel >= 0)
      result.push_back(uint16_t(channel));
  return result;
}

int32_t RoleBuilder::laneOf(LaneKind kind, int32_t stage) const {
  auto lane = lanes.find({kind, stage});
  return lane == lanes.end() ? -1 : lane->second;
}

Wait RoleBuilder::after(const CommAction &action) const {
  return done.at(keyOf(action));
}

void RoleBuilder::indexActions() {
  int32_t count = problem.training.microBatches;
  for (StagePart &part : parts) {
    for (auto &p : part.position)
      p.assign(count, -1);
    part.bucketDone.resize(bucketCount(inputOf(part)));
  }
  for (size_t l = 0; l < input.lanes.size(); ++l) {
    const LaneInput &lane = input.lanes[l];
    if (lane.actions.empty())
      continue;
    lanes.insert(
        {{lane.kind, isOfStage(lane.kind) ? lane.actions[0].stage : -1},
         uint16_t(l)});
    uint32_t instrs = 0;
    for (const CommAction &action : lane.actions) {
      if (action.wait)
        continue;
      const int32_t at = int32_t(instrs);
      instrs += isMessage(action.kind) ? channelsOf(action).size() : 1;
      const Wait completed{uint16_t(l), instrs};
      done[keyOf(action)] = completed;
      if (action.kind == CommKind::Reduce)
        partOf(action.stage).bucketDone[std::max(action.part, 0)] = completed;
      if (action.kind != CommKind::Compute)
        continue;
      ++calls;
      StagePart &part = partOf(action.stage);
      int32_t m = action.microBatch;
      switch (action.compute) {
      case ActionKind::F:
        part.position[0][m] = at;
        break;
      case ActionKind::I:
        part.position[1][m] = at;
        break;
      case ActionKind::W:
        part.position[2][m] = at;
        break;
      case ActionKind::B:
        part.position[1][m] = part.position[2][m] = at;
        break;
      }
    }
  }
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

/// All-reduces of the buckets in which the accumulators of a run lie.
std::vector<Wait> RoleBuilder::tiedBuckets(const TieRun &run,
                                           int32_t tie) const {
  std::vector<Wait> waits;
  for (int32_t index : run.stages) {
    const StageInput &stage = problem.stages[index];
    for (int32_t l = stage.layerBegin; l < stage.layerEnd; ++l)
      for (int32_t param : graph.layers[l].params)
        if (param == problem.ties[tie].param)
          waits.push_back(partOf(index).bucketDone[bucketOf(stage, l)]);
  }
  return waits;
}

std::vector<Wait> RoleBuilder::waitsOf(const CommAction &a) {
  std::vector<Wait> waits;
  StagePart &part = partOf(a.stage);
  const uint16_t compute = uint16_t(laneOf(LaneKind::Compute));
  const Wait allCalls{compute, uint32_t(calls)};
  auto append = [&](const std::vector<Wait> &from) {
    waits.insert(waits.end(), from.begin(), from.end());
  };
  // Before a slot is written; nothing if the pool does not exist.
  auto slotFree = [&](const SlotPlan &slots) {
    if (!slots.before.empty())
      append(slots.before[a.microBatch]);
  };
  auto afterCall = [&](int8_t phase) {
    waits.push_back(
        {compute, uint32_t(part.position[phase][a.microBatch] + 1)});
  };
  auto afterLike = [&](CommKind kind, int32_t stage) {
    CommAction other;
    other.kind = kind;
    other.stage = stage;
    other.microBatch = a.microBatch;
    waits.push_back(after(other));
  };
  switch (a.kind) {
  case CommKind::Compute:
    if (a.part > 0)
      break; // what a piece needs the first one has waited for
    if (a.compute == ActionKind::F) {
      if (!part.stage.loads.empty())
        afterLike(CommKind::Load, input.stages.front());
      if (laneOf(LaneKind::RecvAct, a.stage) >= 0)
        afterLike(CommKind::RecvF, a.stage);
      slotFree(part.outputSlots);
    } else if (a.compute != ActionKind::W) {
      if (laneOf(LaneKind::RecvGrad, a.stage) >= 0)
        afterLike(CommKind::RecvB, a.stage);
      slotFree(part.inputGradSlots);
    }
    break;
  case CommKind::Load:
    for (const StagePart &own : parts)
      slotFree(own.batchSlots);
    break;
  case CommKind::RecvF:
    slotFree(part.inputSlots);
    break;
  case CommKind::RecvB:
    slotFree(part.outputGradSlots);
    break;
  case CommKind::SendF:
    afterCall(0);
    break;
  case CommKind::SendB:
    afterCall(1);
    break;
  case CommKind::Reduce: {
    const std::vector<CommAction> &actions = input.lanes[compute].actions;
    for (size_t i = 0; i < actions.size(); ++i) {
      const CommAction &call = actions[i];
      bool adds =
          call.kind == CommKind::Compute && call.stage == a.stage &&
          (call.compute == ActionKind::B || call.compute == ActionKind::W);
      if (adds && (a.part < 0 || call.part == a.part))
        waits.push_back({compute, uint32_t(i + 1)});
    }
    break;
  }
  case CommKind::TieSum: {
    const std::vector<TieRun> runs = tieRuns(problem.ties[a.tie], roleOf);
    for (size_t i = 0; i < runs.size(); ++i) {
      if (runs[i].stages.front() != a.stage)
        continue;
      if (laneOf(LaneKind::Reduce) >= 0)
        append(tiedBuckets(runs[i], a.tie));
      if (i == 0)
        continue;
      CommAction partial = a;
      partial.kind = CommKind::TieRecv;
      partial.peer = runs[i - 1].stages.front();
      waits.push_back(after(partial));
    }
    break;
  }
  case CommKind::TieSend: {
    CommAction sum = a;
    sum.kind = CommKind::TieSum;
    sum.peer = -1;
    waits.push_back(after(sum));
    break;
  }
  case CommKind::TieRecv:
    waits.push_back(allCalls);
    break;
  case CommKind::Update:
    if (laneOf(LaneKind::Reduce) >= 0)
      append(part.bucketDone);
    if (int32_t tie = laneOf(LaneKind::Tie); tie >= 0)
      waits.push_back(
          {uint16_t(tie), uint32_t(input.lanes[tie].actions.size())});
    break;
  }
  return waits;
}

rt::Instr RoleBuilder::instrOf(const CommAction &a) const {
  rt::Instr instr;
  instr.microBatch = a.microBatch;
  auto set = [&](rt::InstrKind kind, int32_t target) {
    instr.kind = kind;
    instr.target = uint16_t(target);
  };
  auto call = [&](const std::string &name) {
    set(rt::InstrKind::Call, procedureOf.at({a.stage, name}));
  };
  using rt::InstrKind;
  static const char *const computeNames[] = {"F", "I", "W", "B"};
  switch (a.kind) {
  case CommKind::Compute:
    call(computeNames[int(a.compute)] +
         (a.part < 0 ? std::string() : "." + std::to_string(a.part)));
    break;
  case CommKind::TieSum:
    call("T" + std::to_string(a.tie));
    break;
  case CommKind::Update:
    call("U");
    break;
  case CommKind::Load:
    set(InstrKind::Load, 0);
    break;
  case CommKind::SendF:
  case CommKind::SendB:
    set(InstrKind::Send, channelsOf(a).front());
    break;
  case CommKind::RecvF:
  case CommKind::RecvB:
    set(InstrKind::Recv, channelsOf(a).front());
    break;
  case CommKind::Reduce:
    set(InstrKind::AllReduce, channels.group[a.stage][std::max(a.part, 0)]);
    break;
  case CommKind::TieSend:
    set(InstrKind::Send, channels.tie.at({a.tie, a.stage, a.peer}));
    break;
  case CommKind::TieRecv:
    set(InstrKind::Recv, channels.tie.at({a.tie, a.peer, a.stage}));
    break;
  }
  return instr;
}

void RoleBuilder::makeLanes() {
  for (size_t l = 0; l < input.lanes.size(); ++l) {
    const LaneInput &from = input.lanes[l];
    rt::Lane lane;
    lane.kind = from.kind;
    lane.name = laneName(lane.kind);
    if (isOfStage(lane.kind)) {
      if (isMany())
        lane.name += std::to_string(from.actions.front().stage);
    } else {
      for (size_t other = 0, same = 0; other < l; ++other)
        if (input.lanes[other].kind == lane.kind)
          lane.name = laneName(lane.kind) + std::to_string(++same);
    }
    std::vector<Wait> ordered; // before the next action of the lane
    for (const CommAction &action : from.actions) {
      if (action.wait) {
        CommAction named = action;
        named.wait = false;
        ordered.push_back(
            action.kind == CommKind::Reduce
                ? partOf(action.stage).bucketDone[std::max(action.part, 0)]
                : after(named));
        continue;
      }
      rt::Instr instr = instrOf(action);
      instr.waitBegin = uint32_t(lane.waits.size());
      const std::vector<Wait> own = waitsOf(action);
      ordered.insert(ordered.end(), own.begin(), own.end());
      std::vector<Wait> waits = normalize(ordered, uint16_t(l));
      ordered.clear();
      lane.waits.insert(lane.waits.end(), waits.begin(), waits.end());
      instr.waitEnd = uint32_t(lane.waits.size());
      lane.instrs.push_back(instr);
      if (!isMessage(action.kind))
        continue;
      const std::vector<uint16_t> values = channelsOf(action);
      for (size_t k = 1; k < values.size(); ++k) {
        instr.target = values[k];
        instr.waitBegin = instr.waitEnd;
        lane.instrs.push_back(instr);
      }
    }
    role.lanes.push_back(std::move(lane));
  }
}
