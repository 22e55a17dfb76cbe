//===- structure.cpp - failures that one instruction shows ------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// What the structural check refuses, put in terms of the two ends where it is a
// message that does not fit; capacity; and warnings.
//
//===----------------------------------------------------------------------===//
#include "program.h"

#include "../check.h"

#include "takt-rt/core/names.h"
#include "takt-rt/core/units.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace takt::rt::proof {

namespace {

/// The first instruction of a role that moves data of a channel. The plan may
/// be damaged: nothing is looked up that was not checked.
std::optional<ProofEnd> firstUse(const Role &role, InstrKind kind,
                                 size_t channel, std::string action) {
  for (const Lane &lane : role.lanes)
    for (size_t i = 0; i < lane.instrs.size(); ++i)
      if (lane.instrs[i].kind == kind && lane.instrs[i].target == channel)
        return ProofEnd{role.firstRank,    role.name,
                        lane.name,         static_cast<uint32_t>(i),
                        std::move(action), std::nullopt,
                        std::nullopt};
  return std::nullopt;
}

Bytes shareOf(const Channel &channel, const Role &role) {
  return channel.kind == ChannelKind::Tie
             ? channel.bytes
             : channel.bytes / std::max(role.replicas, 1);
}

std::optional<ProofFailure> sizeFault(const Plan &plan) {
  for (size_t c = 0; c < plan.channels.size(); ++c) {
    const Channel &channel = plan.channels[c];
    if (channel.srcRole >= plan.roles.size() ||
        channel.dstRole >= plan.roles.size() ||
        channel.srcRole == channel.dstRole)
      continue;
    const Role &from = plan.roles[channel.srcRole];
    const Role &to = plan.roles[channel.dstRole];
    auto sent = findEndpoint(from.channels, static_cast<uint16_t>(c));
    auto taken = findEndpoint(to.channels, static_cast<uint16_t>(c));
    if (!sent || !taken ||
        (sent->buffer.bytes == shareOf(channel, from) &&
         taken->buffer.bytes == shareOf(channel, to)))
      continue;
    ProofFailure failure{
        ProofRule::Matching,
        fmt::format("channel {}: role {} sends {} bytes of {} a micro-batch "
                    "and role {} receives {} of {}",
                    quoted(channel.name), quoted(from.name), sent->buffer.bytes,
                    shareOf(channel, from), quoted(to.name),
                    taken->buffer.bytes, shareOf(channel, to)),
        {},
        {}};
    if (auto end = firstUse(from, InstrKind::Send, c, "send"))
      failure.ends.push_back(*end);
    if (auto end = firstUse(to, InstrKind::Recv, c, "receive"))
      failure.ends.push_back(*end);
    return failure;
  }
  return std::nullopt;
}

/// A transfer whose role is not at that end of its channel.
std::optional<ProofFailure> peerFault(const Plan &plan) {
  for (size_t r = 0; r < plan.roles.size(); ++r)
    for (const Lane &lane : plan.roles[r].lanes)
      for (size_t i = 0; i < lane.instrs.size(); ++i) {
        const Instr &instr = lane.instrs[i];
        bool sends = instr.kind == InstrKind::Send;
        if (!sends && instr.kind != InstrKind::Recv)
          continue;
        bool exists = instr.target < plan.channels.size();
        if (exists && (sends ? plan.channels[instr.target].srcRole
                             : plan.channels[instr.target].dstRole) == r)
          continue;
        const Role &role = plan.roles[r];
        return ProofFailure{
            ProofRule::Matching,
            fmt::format("role {}, lane {}, instruction {} {} on {}, which "
                        "role {} does not {}",
                        quoted(role.name), quoted(lane.name), i,
                        sends ? "sends" : "receives",
                        exists ? "channel " +
                                     quoted(plan.channels[instr.target].name)
                               : fmt::format("no channel {}", instr.target),
                        quoted(role.name), sends ? "send on" : "receive on"),
            {{role.firstRank, role.name, lane.name, static_cast<uint32_t>(i),
              sends ? "send" : "receive", std::nullopt, std::nullopt}},
            {}};
      }
  return std::nullopt;
}

} // namespace

/// The action of an instruction whose target may be nothing.
static std::string safeText(const Plan &plan, const Role &role,
                            const Instr &instr) {
  size_t targets = instr.kind == InstrKind::Call        ? role.procedures.size()
                   : instr.kind == InstrKind::Load      ? 1
                   : instr.kind == InstrKind::AllReduce ? plan.groups.size()
                                                        : plan.channels.size();
  if (!isKnown(instr.kind) || instr.target >= targets)
    return "(unknown)";
  return actionText(plan, role, instr);
}

ProofFailure explainStructure(const Plan &plan, const Faults &faults) {
  if (auto fault = sizeFault(plan))
    return *fault;
  if (auto fault = peerFault(plan))
    return *fault;
  ProofFailure failure{ProofRule::Structure, faults.list.front(), {}, {}};
  if (faults.list.size() > 1)
    failure.text += fmt::format(" (and {} more)", faults.list.size() - 1);
  for (const FaultPlace &place : faults.places) {
    const Role &role = plan.roles[place.role];
    const Lane &lane = role.lanes[place.lane];
    failure.ends.push_back({role.firstRank, role.name, lane.name,
                            static_cast<uint32_t>(place.instr),
                            safeText(plan, role, lane.instrs[place.instr]),
                            std::nullopt, std::nullopt});
    if (failure.ends.size() == 2)
      break;
  }
  return failure;
}

std::optional<ProofFailure> checkCapacity(const Plan &plan) {
  for (const Role &role : plan.roles)
    if (role.capacity > 0 && role.arenaBytes > role.capacity)
      return ProofFailure{
          ProofRule::Capacity,
          fmt::format("the arena of role {} takes {} bytes of a device that "
                      "has {}",
                      quoted(role.name), role.arenaBytes, role.capacity),
          {},
          {}};
  return std::nullopt;
}

/// A lane is a stream. A group with members on several streams makes all of
/// them wait for its last member; a lane that mixes calls with transfers, or
/// the two directions of transfers, is held up in the same way.
std::vector<ProofFailure> findWarnings(const Program &program) {
  std::vector<ProofFailure> warnings;
  for (size_t r = 0; r < program.plan.roles.size(); ++r)
    for (size_t l = 0; l < program.plan.roles[r].lanes.size(); ++l) {
      const Lane &lane = program.plan.roles[r].lanes[l];
      if (lane.kind == LaneKind::Tie)
        continue; // a chain by nature: each message needs the one before
      auto kindOf = [](const Instr &instr) {
        return instr.kind == InstrKind::Load ? InstrKind::Call : instr.kind;
      };
      for (size_t i = 1; i < lane.instrs.size(); ++i) {
        if (kindOf(lane.instrs[i]) == kindOf(lane.instrs[0]))
          continue;
        Node first =
            program.node(static_cast<int32_t>(r), static_cast<int32_t>(l), 0);
        Node other = first + static_cast<Node>(i);
        warnings.push_back(program.failure(
            ProofRule::MixedStreams,
            fmt::format("{} and {} share a lane: a transfer that waits for "
                        "its peer holds up the other",
                        program.text(first), program.text(other)),
            first, other));
        break;
      }
    }
  return warnings;
}

} // namespace takt::rt::proof
