//===- TimedPlan.cpp - a schedule with nothing but times ------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// One role a rank. Each boundary between stages on different ranks becomes a
// channel a direction, with a lane of its own at both ends, so that no message
// holds up one of another boundary. A message buffer has a slot for each
// micro-batch and so needs no credits; held activations share as few slots as
// the order of the calls allows.
//
//===----------------------------------------------------------------------===//
#include "takt/Lower/TimedPlan.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

using namespace takt;
using rt::BufferRef;
using rt::Bytes;

namespace {

constexpr uint16_t kNone = 0xffff;
constexpr size_t kKinds = 4;
enum { kForward, kInputGrad, kWeightGrad };

/// A boundary crossed by messages in one direction.
struct Crossing {
  uint16_t channel = kNone;
  uint16_t sendLane = kNone, recvLane = kNone; ///< of source and destination
  std::vector<int32_t> order;                  ///< micro-batches as sent
  std::vector<uint32_t> countOf;               ///< of each: messages up to it
};

class Builder {
public:
  explicit Builder(const TimedPlanProblem &problem) : problem(problem) {}
  rt::Plan build();

private:
  void placeStages();
  void orderMessages();
  void addStage(int32_t stage);
  void addProcedures(int32_t stage);
  void addCrossing(int32_t stage, bool forward);
  void addCalls(int32_t rank);
  BufferRef addPool(rt::Role &role, rt::PoolKind kind, const std::string &name,
                    Bytes bytes, std::vector<uint16_t> slotOf);
  std::vector<uint16_t> heldSlots(int32_t stage) const;
  uint16_t addLane(rt::Role &role, rt::LaneKind kind, int32_t stage);
  const ActionTimes &timesOf(int32_t stage) const {
    return problem.times[problem.times.size() == 1 ? 0 : stage];
  }

  const TimedPlanProblem &problem;
  rt::Plan plan;
  std::vector<int32_t> rankOf; ///< of each stage
  /// Of stage s: [0] activations from s to s + 1, [1] gradients from s + 1 to
  /// s.
  std::vector<Crossing> crossings[2];
  /// Buffers that a stage's forward, input and weight gradient read and write.
  std::vector<std::vector<BufferRef>> read[3], written[3];
  std::vector<uint16_t> procedureOf; ///< by stage and kind
};

//===----------------------------------------------------------------------===//
// What follows from the lists
//===----------------------------------------------------------------------===//

void Builder::placeStages() {
  rankOf.resize(problem.shape.stages);
  for (size_t rank = 0; rank < problem.schedule.roles.size(); ++rank)
    for (const Action &action : problem.schedule.roles[rank])
      rankOf[action.stage] = int32_t(rank);
}

void Builder::orderMessages() {
  int32_t boundaries = problem.shape.stages - 1;
  for (auto &direction : crossings)
    direction.resize(std::max(boundaries, 0));
  auto send = [&](Crossing &crossing, int32_t microBatch) {
    crossing.countOf.resize(problem.shape.microBatches);
    crossing.order.push_back(microBatch);
    crossing.countOf[microBatch] = uint32_t(crossing.order.size());
  };
  for (const std::vector<Action> &actions : problem.schedule.roles)
    for (const Action &action : actions) {
      int32_t s = action.stage;
      bool forward = action.kind == ActionKind::F;
      int32_t boundary = forward ? s : s - 1;
      if (action.kind == ActionKind::W || boundary < 0 ||
          boundary == boundaries || rankOf[boundary] == rankOf[boundary + 1])
        continue;
      send(crossings[!forward][boundary], action.microBatch);
    }
}

/// The lowest slot that is free when the forward call begins; calls of a rank
/// follow one another, so the order of the list protects the slots.
std::vector<uint16_t> Builder::heldSlots(int32_t stage) const {
  std::vector<uint16_t> slotOf(problem.shape.microBatches);
  std::set<uint16_t> free;
  uint16_t made = 0;
  for (const Action &action : problem.schedule.roles[rankOf[stage]]) {
    if (action.stage != stage)
      continue;
    uint16_t &slot = slotOf[action.microBatch];
    if (action.kind == ActionKind::F) {
      slot = free.empty() ? made++ : *free.begin();
      free.erase(slot);
    } else if (action.kind != ActionKind::I) {
      free.insert(slot);
    }
  }
  return slotOf;
}

//===----------------------------------------------------------------------===//
// Roles
//===----------------------------------------------------------------------===//

BufferRef Builder::addPool(rt::Role &role, rt::PoolKind kind,
                           const std::string &name, Bytes bytes,
                           std::vector<uint16_t> slotOf) {
  rt::Pool pool;
  pool.kind = kind;
  pool.name = name;
  pool.base = role.arenaBytes;
  pool.slotBytes = rt::alignUp(bytes);
  pool.count = 1 + *std::max_element(slotOf.begin(), slotOf.end());
  pool.slotOf = std::move(slotOf);
  role.arenaBytes += pool.bytes();
  role.pools.push_back(std::move(pool));
  return {uint16_t(role.pools.size() - 1), 0, bytes};
}

void Builder::addStage(int32_t stage) {
  rt::Role &role = plan.roles[rankOf[stage]];
  role.stages.push_back(stage);
  plan.layers.push_back({fmt::format("stage{}", stage), "profiled"});
  BufferRef held =
      addPool(role, rt::PoolKind::Saved, fmt::format("held{}", stage),
              problem.activationBytes, heldSlots(stage));
  written[kForward][stage].push_back(held);
  read[kInputGrad][stage].push_back(held);
  read[kWeightGrad][stage].push_back(held);
}

void Builder::addProcedures(int32_t stage) {
  rt::Role &role = plan.roles[rankOf[stage]];
  std::set<ActionKind> used;
  for (const Action &action : problem.schedule.roles[rankOf[stage]])
    if (action.stage == stage)
      used.insert(action.kind);
  const ActionTimes &times = timesOf(stage);
  using rt::Phase;
  auto add = [&](ActionKind kind, const char *name, rt::Nanos cost, Phase phase,
                 std::initializer_list<Phase> parts) {
    if (!used.count(kind))
      return;
    procedureOf[stage * kKinds + size_t(kind)] =
        uint16_t(role.procedures.size());
    rt::Procedure procedure{name, phase, stage, cost, {}};
    for (Phase part : parts) {
      rt::Kernel kernel;
      kernel.kind = rt::KernelKind::Profiled;
      kernel.phase = part;
      kernel.layer = stage;
      const int which = part == Phase::Forward     ? kForward
                        : part == Phase::InputGrad ? kInputGrad
                                                   : kWeightGrad;
      kernel.operands = read[which][stage];
      kernel.dims = {int64_t(kernel.operands.size())};
      const std::vector<BufferRef> &made = written[which][stage];
      kernel.operands.insert(kernel.operands.end(), made.begin(), made.end());
      procedure.kernels.push_back(kernel);
    }
    role.procedures.push_back(std::move(procedure));
  };
  add(ActionKind::F, "F", times.forward, Phase::Forward, {Phase::Forward});
  add(ActionKind::B, "B", times.whole(), Phase::Backward,
      {Phase::InputGrad, Phase::WeightGrad});
  add(ActionKind::I, "I", times.inputGrad, Phase::InputGrad,
      {Phase::InputGrad});
  add(ActionKind::W, "W", times.weightGrad, Phase::WeightGrad,
      {Phase::WeightGrad});
}

uint16_t Builder::addLane(rt::Role &role, rt::LaneKind kind, int32_t stage) {
  static const char *const names[] = {"compute",  "load",      "recv_act",
                                      "send_act", "recv_grad", "send_grad"};
  std::string name = names[size_t(kind)];
  if (stage >= 0)
    name += std::to_string(stage);
  role.lanes.push_back({kind, std::move(name), {}, {}});
  return uint16_t(role.lanes.size() - 1);
}

/// Channel, buffers and lanes of stage `stage`'s outputs (or its output
/// gradients, when not forward). Lanes are named by the stage at their end.
void Builder::addCrossing(int32_t stage, bool forward) {
  Crossing &crossing = crossings[!forward][stage];
  if (crossing.order.empty())
    return;
  int32_t from = forward ? stage : stage + 1, to = forward ? stage + 1 : stage;
  rt::Role &source = plan.roles[rankOf[from]];
  rt::Role &destination = plan.roles[rankOf[to]];
  rt::Channel channel;
  channel.name = fmt::format("{}{}", forward ? "act" : "grad", stage);
  channel.kind =
      forward ? rt::ChannelKind::Activation : rt::ChannelKind::Gradient;
  channel.srcRole = uint16_t(rankOf[from]);
  channel.dstRole = uint16_t(rankOf[to]);
  channel.bytes = problem.messageBytes;
  channel.link = {"transfer", problem.transfer, 0};
  crossing.channel = uint16_t(plan.channels.size());
  plan.channels.push_back(channel);

  std::vector<uint16_t> ownSlots(problem.shape.microBatches);
  for (size_t m = 0; m < ownSlots.size(); ++m)
    ownSlots[m] = uint16_t(m);
  BufferRef sent =
      addPool(source, forward ? rt::PoolKind::Output : rt::PoolKind::InputGrad,
              fmt::format("{}{}", forward ? "output" : "input_grad", from),
              problem.messageBytes, ownSlots);
  BufferRef received = addPool(
      destination, forward ? rt::PoolKind::Input : rt::PoolKind::OutputGrad,
      fmt::format("{}{}", forward ? "input" : "output_grad", to),
      problem.messageBytes, ownSlots);
  source.channels.push_back({crossing.channel, sent});
  destination.channels.push_back({crossing.channel, received});
  const int which = forward ? kForward : kInputGrad;
  written[which][from].push_back(sent);
  read[which][to].push_back(received);

  using rt::LaneKind;
  crossing.sendLane =
      addLane(source, forward ? LaneKind::SendAct : LaneKind::SendGrad, from);
  crossing.recvLane = addLane(
      destination, forward ? LaneKind::RecvAct : LaneKind::RecvGrad, to);
  std::vector<rt::Instr> &receives =
      destination.lanes[crossing.recvLane].instrs;
  for (int32_t m : crossing.order)
    receives.push_back({rt::InstrKind::Recv, crossing.channel, m, 0, 0});
}

/// The compute lane of a rank, and the sends that its calls set off.
void Builder::addCalls(int32_t rank) {
  rt::Role &role = plan.roles[rank];
  rt::Lane &compute = role.lanes[0];
  int32_t boundaries = problem.shape.stages - 1;
  for (const Action &action : problem.schedule.roles[rank]) {
    int32_t s = action.stage, m = action.microBatch;
    bool forward = action.kind == ActionKind::F;
    rt::Instr call;
    call.target = procedureOf[s * kKinds + size_t(action.kind)];
    call.microBatch = m;
    call.waitBegin = uint32_t(compute.waits.size());
    int32_t before = forward ? s - 1 : s, after = forward ? s : s - 1;
    auto crossed = [&](int32_t boundary) {
      return action.kind != ActionKind::W && boundary >= 0 &&
             boundary < boundaries &&
             crossings[!forward][boundary].channel != kNone;
    };
    if (crossed(before)) {
      const Crossing &in = crossings[!forward][before];
      compute.waits.push_back({in.recvLane, in.countOf[m]});
    }
    call.waitEnd = uint32_t(compute.waits.size());
    compute.instrs.push_back(call);
    if (crossed(after)) {
      const Crossing &out = crossings[!forward][after];
      rt::Lane &lane = role.lanes[out.sendLane];
      auto wait = uint32_t(lane.waits.size());
      lane.waits.push_back({0, uint32_t(compute.instrs.size())});
      lane.instrs.push_back(
          {rt::InstrKind::Send, out.channel, m, wait, wait + 1});
    }
  }
}

rt::Plan Builder::build() {
  const int32_t stages = problem.shape.stages;
  plan.model = fmt::format("{} stages", stages);
  plan.cluster = fmt::format("{} ranks", problem.schedule.roles.size());
  plan.schedule = problem.schedule.name;
  plan.costSource = "given times";
  plan.training.globalBatch = problem.shape.microBatches;
  plan.training.microBatches = problem.shape.microBatches;
  placeStages();
  orderMessages();
  procedureOf.resize(stages * kKinds);
  for (auto *touched : {read, written})
    for (int which = 0; which < 3; ++which)
      touched[which].resize(stages);
  for (size_t rank = 0; rank < problem.schedule.roles.size(); ++rank) {
    rt::Role role;
    role.name = fmt::format("rank{}", rank);
    role.firstRank = int32_t(rank);
    role.devices = {int32_t(rank)};
    role.peakInFlight = peakInFlight(problem.schedule.roles[rank]);
    addLane(role, rt::LaneKind::Compute, -1);
    plan.roles.push_back(std::move(role));
  }
  for (int32_t s = 0; s < stages; ++s)
    addStage(s);
  for (int32_t s = 0; s + 1 < stages; ++s) {
    addCrossing(s, true);
    addCrossing(s, false);
  }
  for (int32_t s = 0; s < stages; ++s)
    addProcedures(s);
  for (size_t rank = 0; rank < plan.roles.size(); ++rank) {
    addCalls(int32_t(rank));
    plan.roles[rank].livenessBytes = plan.roles[rank].arenaBytes;
  }
  return std::move(plan);
}

} // namespace

std::optional<std::string> TimedPlanProblem::check() const {
  if (auto fault = shape.check())
    return fault;
  if (times.size() != 1 && times.size() != size_t(shape.stages))
    return fmt::format("times of {} stages are given, the schedule has {}",
                       times.size(), shape.stages);
  for (size_t s = 0; s < times.size(); ++s)
    if (times[s].forward < 0 || times[s].inputGrad < 0 ||
        times[s].weightGrad < 0)
      return fmt::format("stage {} has a time below 0 ns", s);
  if (transfer < 0)
    return fmt::format("a transfer of {} ns is below 0 ns", transfer);
  if (activationBytes < 1 || messageBytes < 1)
    return fmt::format("activations of {} bytes and messages of {} bytes must "
                       "be above 0",
                       activationBytes, messageBytes);
  // Lanes, channels and slots are 16-bit (lanes 8-bit) indices of the plan.
  if (shape.stages > 0x4000 || shape.microBatches > 0xffff)
    return fmt::format("{} stages and {} micro-batches are more than the "
                       "16384 and 65535 a plan can hold",
                       shape.stages, shape.microBatches);
  if (auto fault = verify(shape, schedule))
    return fault;
  std::vector<int32_t> stagesOf(schedule.roles.size());
  std::vector<bool> seen(shape.stages);
  for (size_t rank = 0; rank < schedule.roles.size(); ++rank)
    for (const Action &action : schedule.roles[rank])
      if (!seen[action.stage]) {
        seen[action.stage] = true;
        if (++stagesOf[rank] > 63)
          return fmt::format("rank {} holds more than 63 stages, the most a plan "
                             "can say of one rank",
                             rank);
      }
  return std::nullopt;
}

rt::Plan takt::timedPlan(const TimedPlanProblem &problem) {
  return Builder(problem).build();
}
