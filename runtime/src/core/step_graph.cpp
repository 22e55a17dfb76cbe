//===- step_graph.cpp - what each instruction of a step needs ---*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Messages of a channel are matched in order, and all replicas of a role run
// the same program: the k-th send of the source role meets the k-th receive of
// the destination role.
//
//===----------------------------------------------------------------------===//
#include "step_graph.h"

namespace takt::rt {

StepGraph::StepGraph(const Plan &plan) : plan(plan) {
  for (auto &side : ends)
    side.resize(plan.channels.size());
  for (size_t r = 0; r < plan.roles.size(); ++r) {
    const Role &role = plan.roles[r];
    turn.emplace_back(role.lanes.size());
    for (uint16_t l = 0; l < role.lanes.size(); ++l) {
      const std::vector<Instr> &instrs = role.lanes[l].instrs;
      turn[r][l].resize(instrs.size());
      for (uint32_t i = 0; i < instrs.size(); ++i) {
        InstrKind kind = instrs[i].kind;
        if (kind != InstrKind::Send && kind != InstrKind::Recv)
          continue;
        End &end = ends[kind == InstrKind::Send][instrs[i].target];
        turn[r][l][i] = static_cast<uint32_t>(end.spots.size());
        end.spots.emplace_back(l, i);
      }
    }
    for (int32_t replica = 0; replica < role.replicas; ++replica) {
      roleOf.push_back(static_cast<int32_t>(r));
      base.emplace_back();
      for (const Lane &lane : role.lanes) {
        base.back().push_back(total);
        total += lane.instrs.size();
      }
    }
  }
  for (size_t c = 0; c < plan.channels.size(); ++c)
    for (bool sending : {false, true}) {
      const Channel &channel = plan.channels[c];
      const Role &role =
          plan.roles[sending ? channel.srcRole : channel.dstRole];
      for (int32_t replica = 0; replica < role.replicas; ++replica) {
        auto &ranks = ends[sending][c].ranks.emplace_back();
        for (const Piece &piece :
             transferPieces(plan, channel, sending, replica))
          ranks.push_back(piece.peer);
      }
    }
}

void StepGraph::local(const Node &node, std::vector<Node> &out) const {
  const Lane &lane = role(node.rank).lanes[node.lane];
  if (node.instr > 0)
    out.push_back({node.rank, node.lane, node.instr - 1});
  const Instr &code = lane.instrs[node.instr];
  for (uint32_t w = code.waitBegin; w < code.waitEnd; ++w)
    if (lane.waits[w].count > 0)
      out.push_back({node.rank, lane.waits[w].lane, lane.waits[w].count - 1});
}

void StepGraph::peers(const Node &node, std::vector<Node> &out) const {
  const Instr &code = instr(node);
  const Role &own = role(node.rank);
  if (code.kind == InstrKind::AllReduce) {
    for (int32_t i = 0; i < own.replicas; ++i)
      if (own.firstRank + i != node.rank)
        out.push_back({own.firstRank + i, node.lane, node.instr});
    return;
  }
  if (code.kind != InstrKind::Send && code.kind != InstrKind::Recv)
    return;
  bool sending = code.kind == InstrKind::Send;
  uint32_t k = turn[roleOf[node.rank]][node.lane][node.instr];
  const End &other = ends[!sending][code.target];
  if (k >= other.spots.size())
    return;
  auto [lane, instr] = other.spots[k];
  for (int32_t rank :
       ends[sending][code.target].ranks[node.rank - own.firstRank])
    out.push_back({rank, lane, instr});
}

} // namespace takt::rt
