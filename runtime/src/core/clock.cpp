//===- clock.cpp - the virtual clock: the simulator -------------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Equal times are taken in order of insertion, so that the order of records
// does not depend on the heap.
//
//===----------------------------------------------------------------------===//
#include "virtual_clock.h"

#include "takt-rt/core/error.h"
#include "takt-rt/core/hang.h"

#include <fmt/format.h>

#include <algorithm>

namespace takt::rt {

namespace virtual_clock {

//===----------------------------------------------------------------------===//
// Instructions
//===----------------------------------------------------------------------===//

void Clock::wake(int32_t rank) {
  if (isWoken[rank])
    return;
  isWoken[rank] = true;
  woken.push_back(rank);
}

void Clock::start(int32_t rank, int lane) {
  LaneState &state = lanes[laneBase[rank] + lane];
  if (state.started)
    return;
  state.started = true;
  state.begin = now;
  const Interpreter &interpreter = interpreters[rank];
  if (edges[roleOf[rank]][lane][interpreter.count(lane)] == FlightEdge::Begin)
    result.peakInFlight[rank] =
        std::max(result.peakInFlight[rank], ++inFlight[rank]);
}

void Clock::record(int32_t rank, int lane) {
  LaneState &state = lanes[laneBase[rank] + lane];
  uint32_t instr = interpreters[rank].count(lane);
  if (options.keepRecords)
    result.records.push_back(
        {rank, static_cast<uint16_t>(lane), instr, state.begin, now});
  if (options.keepRecords && machine.isShared())
    result.delays.push_back(state.delay);
  const Lane &code = plan.roles[roleOf[rank]].lanes[lane];
  if (code.kind == LaneKind::Compute)
    result.busy[rank] += now - state.begin;
  if (edges[roleOf[rank]][lane][instr] == FlightEdge::End)
    --inFlight[rank];
  result.makespan = std::max(result.makespan, now);
  state.started = false;
}

void Clock::finishPart(int32_t rank, int lane, Nanos delay) {
  LaneState &state = lanes[laneBase[rank] + lane];
  state.delay = delay;
  if (--state.pending > 0)
    return;
  record(rank, lane);
  wake(rank);
}

void Clock::finishIn(int32_t rank, int lane, Nanos duration) {
  if (duration == 0)
    finishPart(rank, lane);
  else
    completions.push({now + duration, order++, rank, lane});
}

void Clock::beginTimed(int32_t rank, int lane, Nanos duration) {
  lanes[laneBase[rank] + lane].pending = 1;
  start(rank, lane);
  finishIn(rank, lane, duration);
}

void Clock::beginCall(int32_t rank, int lane, const Procedure &procedure) {
  if (!machine.isShared() || procedure.cost == 0)
    return beginTimed(rank, lane, procedure.cost);
  lanes[laneBase[rank] + lane].pending = 1;
  start(rank, lane);
  move(0, {{{rank, lane}}, machine.ofCall(rank, procedure), procedure.cost});
}

/// Ends all members after the latency and the time that the data then takes.
void Clock::move(Nanos latency, Move what) {
  if (what.wire == 0 || what.uses.empty()) {
    for (const Member &member : what.members)
      finishIn(member.rank, member.lane, latency + what.wire);
    return;
  }
  if (latency == 0)
    return startFlow(std::move(what));
  int number = static_cast<int>(delayed.size());
  if (freeDelayed.empty()) {
    delayed.emplace_back();
  } else {
    number = freeDelayed.back();
    freeDelayed.pop_back();
  }
  delayed[number] = std::move(what);
  completions.push({now + latency, order++, Completion::kLatencyOver, number});
}

void Clock::startFlow(Move what) {
  uint32_t flow = sharing.begin(now, what.wire, std::move(what.uses));
  if (flowMembers.size() <= flow) {
    flowMembers.resize(flow + 1);
    flowEnds.resize(flow + 1);
  }
  flowMembers[flow] = std::move(what.members);
  flowEnds[flow] = now + what.wire;
  pushFlowEnds();
}

void Clock::pushFlowEnds() {
  for (const Sharing::Change &change : sharing.takeChanges())
    completions.push({change.end, order++, Completion::kFlowEnds,
                      static_cast<int>(change.flow), change.stamp});
}

void Clock::complete(const Completion &next) {
  if (next.rank >= 0)
    return finishPart(next.rank, next.lane);
  if (next.rank == Completion::kLatencyOver) {
    freeDelayed.push_back(next.lane);
    return startFlow(std::move(delayed[next.lane]));
  }
  auto flow = static_cast<uint32_t>(next.lane);
  if (!sharing.isCurrent(flow, next.stamp))
    return;
  sharing.end(now, flow);
  pushFlowEnds();
  std::vector<Member> members = std::move(flowMembers[flow]);
  Nanos delay = std::max<Nanos>(now - flowEnds[flow], 0);
  for (const Member &member : members)
    finishPart(member.rank, member.lane, delay);
}

void Clock::meet(const Channel &channel, ChannelState &state, Pair &pair) {
  const auto &[receiver, sender] = pair.ends;
  if (sender.microBatch != receiver.microBatch)
    throw Error(fmt::format(
        "channel '{}': rank {} sends micro-batch {} where rank {} receives {}",
        channel.name, sender.rank, sender.microBatch, receiver.rank,
        receiver.microBatch));
  for (Pair::End &end : pair.ends) {
    end.posted = false;
    start(end.rank, end.lane);
  }
  if (!machine.isShared()) {
    for (const Pair::End &end : pair.ends)
      finishIn(end.rank, end.lane, state.time);
    return;
  }
  // Pieces that leave or reach a rank together share its port.
  Nanos latency = channel.link.latency;
  move(latency, {{{receiver.rank, receiver.lane}, {sender.rank, sender.lane}},
                 machine.ofPiece(sender.rank, receiver.rank, channel.link),
                 channel.link.time(pair.bytes) - latency});
}

void Clock::beginTransfer(int32_t rank, int lane, uint16_t channel,
                          int32_t microBatch, bool sending) {
  ChannelState &state = channels[channel];
  const Channel &declared = plan.channels[channel];
  const Role &role = plan.roles[roleOf[rank]];
  const std::vector<size_t> &mine =
      state.pairsOf[sending][rank - role.firstRank];
  // The source replicas of a tie that serve no destination have nothing to do.
  if (mine.empty())
    return beginTimed(rank, lane, 0);
  lanes[laneBase[rank] + lane].pending = mine.size();
  for (size_t index : mine) {
    Pair &pair = state.pairs[index];
    pair.ends[sending] = {true, lane, rank, microBatch};
    if (pair.ends[!sending].posted)
      meet(declared, state, pair);
  }
}

void Clock::beginReduce(int32_t rank, int lane, uint16_t group) {
  GroupState &state = groups[group];
  lanes[laneBase[rank] + lane].pending = 1;
  state.arrived.push_back({rank, lane});
  const Role &role = plan.roles[plan.groups[group].role];
  if (state.arrived.size() < static_cast<size_t>(role.replicas))
    return;
  for (const Member &member : state.arrived)
    start(member.rank, member.lane);
  std::vector<Member> members;
  members.swap(state.arrived);
  if (!machine.isShared()) {
    for (const Member &member : members)
      finishIn(member.rank, member.lane, state.time);
    return;
  }
  const Group &declared = plan.groups[group];
  Nanos latency = allReduceTime(declared.link, role.replicas, 0);
  move(latency, {std::move(members), machine.ofAllReduce(declared),
                 state.time - latency});
}

//===----------------------------------------------------------------------===//
// Time
//===----------------------------------------------------------------------===//

Simulation Clock::run() {
  for (int32_t rank = 0; rank < plan.numRanks(); ++rank)
    wake(rank);
  while (true) {
    while (!woken.empty()) {
      int32_t rank = woken.front();
      woken.pop_front();
      isWoken[rank] = false;
      interpreters[rank].advance();
    }
    if (completions.empty())
      break;
    now = completions.top().time;
    while (!completions.empty() && completions.top().time == now) {
      Completion next = completions.top();
      completions.pop();
      complete(next);
    }
  }
  std::vector<const Interpreter *> ranks;
  for (const Interpreter &interpreter : interpreters)
    ranks.push_back(&interpreter);
  std::string hang = explainHang(plan, ranks);
  if (!hang.empty())
    throw Error("the plan cannot run to its end: " + hang);
  return std::move(result);
}

//===----------------------------------------------------------------------===//
// A rank's device
//===----------------------------------------------------------------------===//

void ClockDevice::call(int lane, const Procedure &procedure, int32_t) {
  clock.beginCall(rank, lane, procedure);
}

void ClockDevice::load(int lane, int32_t) { clock.beginTimed(rank, lane, 0); }

void ClockDevice::send(int lane, uint16_t channel, int32_t microBatch) {
  clock.beginTransfer(rank, lane, channel, microBatch, true);
}

void ClockDevice::recv(int lane, uint16_t channel, int32_t microBatch) {
  clock.beginTransfer(rank, lane, channel, microBatch, false);
}

void ClockDevice::allReduce(int lane, uint16_t group) {
  clock.beginReduce(rank, lane, group);
}

bool ClockDevice::done(int lane) { return clock.isDone(rank, lane); }

} // namespace virtual_clock

Simulation simulate(const Plan &plan, const SimulateOptions &options) {
  return virtual_clock::Clock(plan, options).run();
}

} // namespace takt::rt
