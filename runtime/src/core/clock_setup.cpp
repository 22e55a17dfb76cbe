//===- clock_setup.cpp - ranks, channels and groups -------------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// What the virtual clock knows before time begins.
//
//===----------------------------------------------------------------------===//
#include "virtual_clock.h"

namespace takt::rt::virtual_clock {

Clock::Clock(const Plan &plan, const SimulateOptions &options)
    : plan(plan), options(options), machine(plan, sharing) {
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
        state.pairs.back().bytes = piece.bytes;
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

} // namespace takt::rt::virtual_clock
