//===- reach.cpp - what is sure to have happened before ---------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// A completed transfer tells that the other end has begun, and so that all the
// other end waited for has completed; not that the other end has completed.
//
//===----------------------------------------------------------------------===//
#include "reach.h"

#include <algorithm>

namespace takt::rt::proof {

/// Steps all searches of one plan may take together. A plan that asks for more
/// is not proven; those that compilers write ask for none.
static constexpr uint64_t kMostSteps = 200'000'000;

Reach::Reach(const Program &program, const Order &order)
    : program(program), order(order), symmetric(isSymmetric()) {
  places.resize(program.size());
  for (size_t i = 0; i < order.nodes.size(); ++i)
    places[order.nodes[i]] = static_cast<uint32_t>(i);
  size_t size = 0;
  for (const Role &role : program.plan.roles) {
    firstKnown.push_back(size);
    for (const Lane &lane : role.lanes)
      size += lane.instrs.size() * role.lanes.size();
  }
  known.assign(size, 0);
  auto row = [&](Node node) {
    const Site &site = program.sites[node];
    size_t lanes = program.plan.roles[site.role].lanes.size();
    Node first = program.bases[site.role][0];
    return known.data() + firstKnown[site.role] + (node - first) * lanes;
  };
  for (Node node : order.nodes) {
    const Site &site = program.sites[node];
    const Lane &lane = program.lane(node);
    size_t lanes = program.plan.roles[site.role].lanes.size();
    uint32_t *own = row(node);
    auto take = [&](Node done) {
      const uint32_t *other = row(done);
      for (size_t l = 0; l < lanes; ++l)
        own[l] = std::max(own[l], other[l]);
      const Site &at = program.sites[done];
      own[at.lane] = std::max(own[at.lane], at.instr + 1);
    };
    if (site.instr > 0)
      take(node - 1);
    const Instr &instr = lane.instrs[site.instr];
    for (uint32_t w = instr.waitBegin; w < instr.waitEnd; ++w)
      if (uint32_t count = lane.waits[w].count)
        take(program.node(site.role, lane.waits[w].lane, count - 1));
  }
}

/// Replica i of every role talks to replica i of the others only.
bool Reach::isSymmetric() const {
  const Plan &plan = program.plan;
  return std::all_of(plan.channels.begin(), plan.channels.end(),
                     [&](const Channel &channel) {
                       return plan.roles[channel.srcRole].replicas ==
                              plan.roles[channel.dstRole].replicas;
                     });
}

bool Reach::before(Node earlier, Node later) {
  const Site &from = program.sites[earlier], &to = program.sites[later];
  const Role &role = program.plan.roles[to.role];
  size_t row = firstKnown[to.role] +
               (later - program.bases[to.role][0]) * role.lanes.size();
  if (known[row + from.lane] > from.instr)
    return true;
  if (places[earlier] > places[later])
    return false;
  // One replica stands for all where they cannot be told apart.
  int32_t replicas = symmetric ? 1 : role.replicas;
  for (int32_t i = 0; i < replicas; ++i)
    if (!search(earlier, later, i))
      return false;
  return true;
}

const std::vector<Piece> &Reach::pieces(uint16_t channel, bool sending,
                                        int32_t replica) {
  auto [entry, isNew] =
      pieceTable.insert({{channel * 2 + int32_t(sending), replica}, {}});
  if (isNew)
    entry->second = transferPieces(program.plan, program.plan.channels[channel],
                                   sending, replica);
  return entry->second;
}

bool Reach::search(Node earlier, Node later, int32_t replica) {
  const Plan &plan = program.plan;
  const Site &target = program.sites[earlier];
  int32_t home = plan.roles[target.role].firstRank + replica;
  std::map<int32_t, std::vector<uint32_t>> counts; ///< by rank and lane
  std::vector<std::pair<int32_t, Node>> open; ///< completed, to be looked at
  bool found = false;
  auto completed = [&](int32_t rank, int32_t role, int32_t lane,
                       uint32_t count) {
    std::vector<uint32_t> &have = counts[rank];
    have.resize(plan.roles[role].lanes.size());
    for (uint32_t i = count; i > have[lane]; --i) {
      Node node = program.node(role, lane, i - 1);
      found = found || (rank == home && node == earlier);
      // What completes first in the order cannot come after `earlier`.
      if (places[node] < places[earlier] || ++steps > kMostSteps)
        break;
      open.push_back({rank, node});
    }
    have[lane] = std::max(have[lane], count);
  };
  auto begun = [&](int32_t rank, Node node) {
    const Site &site = program.sites[node];
    const Lane &lane = program.lane(node);
    const Instr &instr = lane.instrs[site.instr];
    completed(rank, site.role, site.lane, site.instr);
    for (uint32_t w = instr.waitBegin; w < instr.waitEnd; ++w)
      completed(rank, site.role, lane.waits[w].lane, lane.waits[w].count);
  };
  begun(home, later);
  while (!open.empty() && !found && steps <= kMostSteps) {
    auto [rank, node] = open.back();
    open.pop_back();
    begun(rank, node);
    const Role &role = program.role(node);
    const Instr &instr = program.instr(node);
    int32_t own = rank - role.firstRank;
    if (instr.kind == InstrKind::AllReduce)
      for (int32_t i = 0; i < role.replicas; ++i)
        begun(role.firstRank + i, node);
    else if (Node mate = program.mates[node]; mate != kNoNode)
      for (const Piece &piece :
           pieces(instr.target, instr.kind == InstrKind::Send, own))
        begun(piece.peer, mate);
  }
  return found;
}

} // namespace takt::rt::proof
