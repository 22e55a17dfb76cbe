//===- virtual_clock.h - state of the simulator -----------------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// One heap of completions for all ranks. A completion wakes the ranks it
// concerns and no others; woken ranks advance until nothing moves, then time
// goes on to the next completion. Without `Plan::resources` nothing is shared
// and every duration is known at its begin; with them, calls and data on the
// move are flows whose ends move as others come and go.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "machine.h"
#include "sharing.h"

#include "takt-rt/core/clock.h"
#include "takt-rt/core/in_flight.h"

#include <deque>
#include <queue>

namespace takt::rt::virtual_clock {

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
  Bytes bytes = 0;
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

/// What ends together: one call, both ends of a piece, or a reduction.
struct Move {
  std::vector<Member> members;
  std::vector<Use> uses;
  Nanos wire = 0; ///< without latency, alone
};

/// The instruction under way on a lane of a rank.
struct LaneState {
  size_t pending = 0; ///< parts not complete
  bool started = false;
  Nanos begin = 0;
  Nanos delay = 0; ///< of the part that ended last
};

/// A part of an instruction that ends, or one of two things of transfers that
/// share resources: the latency is over, or the data has moved.
struct Completion {
  static constexpr int32_t kLatencyOver = -1; ///< in place of the rank
  static constexpr int32_t kFlowEnds = -2;

  Nanos time;
  uint64_t order;
  int32_t rank;
  int lane;           ///< of the rank; or number of the move or flow
  uint32_t stamp = 0; ///< of a flow's end
  bool operator>(const Completion &o) const {
    return time != o.time ? time > o.time : order > o.order;
  }
};

class Clock {
public:
  Clock(const Plan &plan, const SimulateOptions &options);
  Simulation run();

  void beginTimed(int32_t rank, int lane, Nanos duration);
  void beginCall(int32_t rank, int lane, const Procedure &procedure);
  void beginTransfer(int32_t rank, int lane, uint16_t channel,
                     int32_t microBatch, bool sending);
  void beginReduce(int32_t rank, int lane, uint16_t group);
  bool isDone(int32_t rank, int lane) const {
    return lanes[laneBase[rank] + lane].pending == 0;
  }

private:
  void setUpRanks();
  void setUpChannels();
  void setUpGroups();
  void start(int32_t rank, int lane);
  void finishIn(int32_t rank, int lane, Nanos duration);
  void finishPart(int32_t rank, int lane, Nanos delay = 0);
  void record(int32_t rank, int lane);
  void meet(const Channel &channel, ChannelState &state, Pair &pair);
  void move(Nanos latency, Move what);
  void startFlow(Move what);
  void pushFlowEnds();
  void complete(const Completion &next);
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
  Sharing sharing;
  Machine machine;
  std::vector<Move> delayed; ///< moves whose latency is not over, by number
  std::vector<int> freeDelayed;
  std::vector<std::vector<Member>> flowMembers; ///< by flow
  std::vector<Nanos> flowEnds; ///< by flow: when it would end by itself
  std::vector<std::vector<std::vector<FlightEdge>>> edges; ///< by role
  std::vector<int32_t> inFlight;
  std::deque<int32_t> woken;
  std::vector<bool> isWoken;
};

} // namespace takt::rt::virtual_clock
