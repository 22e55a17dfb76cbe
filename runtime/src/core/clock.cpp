//===- clock.cpp - the virtual clock: the simulator -------------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// One heap of completions for all ranks. A completion wakes the ranks it
// concerns and no others; woken ranks advance until nothing moves, then time
// goes on to the next completion. No resource is shared, so the order of equal
// times does not matter to any time; it is fixed anyway, by order of insertion.
//
//===----------------------------------------------------------------------===//
#include "takt-rt/core/clock.h"

#include "takt-rt/core/error.h"
#include "takt-rt/core/hang.h"
#include "takt-rt/core/in_flight.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <queue>

namespace takt::rt {

namespace {

class Clock;

/// A rank's device: passes everything on to the clock.
class ClockDevice final : public Device {
public:
  ClockDevice(Clock &clock, int32_t rank) : clock(clock), rank(rank) {}
  void call(int lane, const Procedure &procedure, int32_t microBatch) override;
  void load(int lane, int32_t microBatch) override;
  void send(int lane, uint16_t channel, int32_t microBatch) override;
  void recv(int lane, uint16_t channel, int32_t microBatch) override;
  void allReduce(int lane, uint16_t group) override;
  bool done(int lane) override;

private:
  Clock &clock;
  int32_t rank;
};

/// Two ranks that exchange one piece of a channel: each has at most one message
/// posted, as one lane gives a channel's messages their order.
struct Pair {
  struct End {
    bool posted = false;
    int lane = 0;
    int32_t rank = 0;
    int32_t microBatch = 0;
  };
  End ends[2]; ///< receiver, sender
};

struct ChannelState {
  Nanos time = 0;
  std::vector<Pair> pairs;
  /// Pairs of each replica: [0] by receiver, [1] by sender.
  std::vector<std::vector<size_t>> pairsOf[2];
};

struct Member {
  int32_t rank;
  int lane;
};

struct GroupState {
  Nanos time = 0;
  std::vector<Member> arrived;
};

/// The instruction under way on a lane of a rank.
struct LaneState {
  size_t pending = 0; ///< parts not complete
  bool started = false;
  Nanos begin = 0;
};

struct Completion {
  Nanos time;
  uint64_t order;
  int32_t rank;
  int lane;
  bool operator>(const Completion &o) const {
    return time != o.time ? time > o.time : order > o.order;
  }
};

class Clock {
public:
  Clock(const Plan &plan, const SimulateOptions &options);
  Simulation run();

  void beginTimed(int32_t rank, int lane, Nanos duration);
  void beginTransfer(int32_t rank, int lane, uint16_t channel,
                     int32_t microBatch, bool sending);
  void beginReduce(int32_t rank, int lane, uint16_t group);
  bool isDone(int32_t rank, int lane) const {
    return lanes[laneBase[rank] + lane].pending == 0;
  }
  void countBusy(int32_t rank, int lane, Nanos duration);

private:
  void setUpRanks();
  void setUpChannels();
  void setUpGroups();
  void start(int32_t rank, int lane);
  void finishIn(int32_t rank, int lane, Nanos duration);
  void finishPart(int32_t rank, int lane);
  void record(int32_t rank, int lane);
  void meet(const Channel &channel, ChannelState &state, Pair &pair);
  void wake(int32_t rank);

  const Plan &plan;
  const SimulateOptions &options;
  Simulation result;
  Nanos now = 0;
  uint64_t order = 0;
  std::priority_queue<Completion, std::vector<Completion>,
                      std::greater<Completion>>
      completions;
  std::vector<ClockDevice> devices;
  std::vector<Interpreter> interpreters;
  std::vector<int32_t> roleOf;
  std::vector<size_t> laneBase; ///< of each rank, into `lanes`
  std::vector<LaneState> lanes;
  std::vector<ChannelState> channels;
  std::vector<GroupState> groups;
  std::vector<std::vector<std::vector<FlightEdge>>> edges; ///< by role
  std::vector<int32_t> inFlight;
  std::deque<int32_t> woken;
  std::vector<bool> isWoken;
};

//===----------------------------------------------------------------------===//
// Set-up
//===----------------------------------------------------------------------===//

Clock::Clock(const Plan &plan, const SimulateOptions &options)
    : plan(plan), options(options) {
  setUpRanks();
  setUpChannels();
  setUpGroups();
}

void Clock::setUpRanks() {
  int32_t ranks = plan.numRanks();
  devices.reserve(ranks);
  interpreters.reserve(ranks);
  size_t instrs = 0;
  for (const Role &role : plan.roles) {
    edges.push_back(flightEdges(role));
    for (const Lane &lane : role.lanes)
      instrs += lane.instrs.size() * role.replicas;
  }
  if (options.keepRecords)
    result.records.reserve(instrs);
  for (int32_t rank = 0; rank < ranks; ++rank) {
    roleOf.push_back(plan.roleOf(rank));
    laneBase.push_back(lanes.size());
    lanes.resize(lanes.size() + plan.roles[roleOf.back()].lanes.size());
    devices.emplace_back(*this, rank);
    interpreters.emplace_back(plan, rank, devices.back());
  }
  result.busy.resize(ranks);
  result.peakInFlight.resize(ranks);
  inFlight.resize(ranks);
  isWoken.resize(ranks);
}

void Clock::setUpChannels() {
  for (const Channel &channel : plan.channels) {
    ChannelState state;
    state.time = transferTime(plan, channel);
    const Role &source = plan.roles[channel.srcRole];
    const Role &destination = plan.roles[channel.dstRole];
    state.pairsOf[0].resize(destination.replicas);
    state.pairsOf[1].resize(source.replicas);
    for (int32_t i = 0; i < source.replicas; ++i) {
      for (const Piece &piece : transferPieces(plan, channel, true, i)) {
        state.pairsOf[0][piece.peer - destination.firstRank].push_back(
            state.pairs.size());
        state.pairsOf[1][i].push_back(state.pairs.size());
        state.pairs.emplace_back();
      }
    }
    channels.push_back(std::move(state));
  }
}

void Clock::setUpGroups() {
  for (size_t i = 0; i < plan.groups.size(); ++i) {
    const Group &group = plan.groups[i];
    const Role &role = plan.roles[group.role];
    const Endpoint *end = findEndpoint(role.groups, static_cast<uint16_t>(i));
    GroupState state;
    if (end)
      state.time = allReduceTime(group.link, role.replicas, end->buffer.bytes);
    groups.push_back(std::move(state));
  }
}

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
  if (edges[roleOf[rank]][lane][instr] == FlightEdge::End)
    --inFlight[rank];
  result.makespan = std::max(result.makespan, now);
  state.started = false;
}

void Clock::finishPart(int32_t rank, int lane) {
  if (--lanes[laneBase[rank] + lane].pending > 0)
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

void Clock::countBusy(int32_t rank, int lane, Nanos duration) {
  const Role &role = plan.roles[roleOf[rank]];
  if (role.lanes[lane].kind == LaneKind::Compute)
    result.busy[rank] += duration;
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
  for (const Pair::End &end : pair.ends)
    finishIn(end.rank, end.lane, state.time);
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
  for (const Member &member : state.arrived)
    finishIn(member.rank, member.lane, state.time);
  state.arrived.clear();
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
      finishPart(next.rank, next.lane);
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

void ClockDevice::call(int lane, const Procedure &procedure, int32_t) {
  clock.countBusy(rank, lane, procedure.cost);
  clock.beginTimed(rank, lane, procedure.cost);
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

} // namespace

Simulation simulate(const Plan &plan, const SimulateOptions &options) {
  return Clock(plan, options).run();
}

} // namespace takt::rt
