//===- hang.cpp - who waits for whom ----------------------------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// A lane that does not move waits either for a count of another lane of its
// rank, or, with a message or reduction under way, for a peer that has not come
// to its matching instruction. Following that from lane to lane gives a chain.
//
//===----------------------------------------------------------------------===//
#include "takt-rt/core/hang.h"

#include <fmt/format.h>

#include <algorithm>

namespace takt::rt {

namespace {

/// A lane of a rank; lane -1: nothing further to follow.
struct Place {
  int32_t rank = 0;
  int32_t lane = -1;
  bool operator==(const Place &o) const {
    return rank == o.rank && lane == o.lane;
  }
};

class Explainer {
public:
  Explainer(const Plan &plan, const std::vector<RankProgress> &ranks)
      : plan(plan), ranks(ranks) {}
  HangChain explain(Place at) const;

private:
  const Role &role(int32_t rank) const { return plan.roles[plan.roleOf(rank)]; }
  bool atEnd(Place at) const {
    return count(at) == role(at.rank).lanes[at.lane].instrs.size();
  }
  uint32_t count(Place at) const { return ranks[at.rank][at.lane].completed; }
  bool isRunning(Place at) const { return ranks[at.rank][at.lane].running; }
  /// Appends what the lane waits for to `text` and returns whom.
  Place follow(Place at, std::string &text) const;
  Place followWait(Place at, std::string &text) const;
  Place followPeer(Place at, const Instr &instr, std::string &text) const;
  size_t begun(Place at, InstrKind kind, uint16_t target) const;
  Place laneOf(int32_t rank, InstrKind kind, uint16_t target) const;

  const Plan &plan;
  const std::vector<RankProgress> &ranks;
};

/// Instructions of that kind and target that the lane has begun.
size_t Explainer::begun(Place at, InstrKind kind, uint16_t target) const {
  const Lane &lane = role(at.rank).lanes[at.lane];
  size_t end = count(at) + (isRunning(at) ? 1 : 0);
  return std::count_if(lane.instrs.begin(), lane.instrs.begin() + end,
                       [&](const Instr &instr) {
                         return instr.kind == kind && instr.target == target;
                       });
}

Place Explainer::laneOf(int32_t rank, InstrKind kind, uint16_t target) const {
  const Role &peer = role(rank);
  for (size_t lane = 0; lane < peer.lanes.size(); ++lane)
    for (const Instr &instr : peer.lanes[lane].instrs)
      if (instr.kind == kind && instr.target == target)
        return {rank, static_cast<int>(lane)};
  return {rank, -1};
}

Place Explainer::followWait(Place at, std::string &text) const {
  const Role &own = role(at.rank);
  const Lane &lane = own.lanes[at.lane];
  const Instr &instr = lane.instrs[count(at)];
  for (uint32_t w = instr.waitBegin; w < instr.waitEnd; ++w) {
    const Wait &wait = lane.waits[w];
    if (count({at.rank, wait.lane}) >= wait.count)
      continue;
    const Lane &awaited = own.lanes[wait.lane];
    text += fmt::format("waits for '{}' of lane '{}'",
                        actionText(plan, own, awaited.instrs[wait.count - 1]),
                        awaited.name);
    return {at.rank, wait.lane};
  }
  text += "is ready to begin";
  return {at.rank, -1};
}

Place Explainer::followPeer(Place at, const Instr &instr,
                            std::string &text) const {
  size_t mine = begun(at, instr.kind, instr.target);
  InstrKind other = instr.kind == InstrKind::Send   ? InstrKind::Recv
                    : instr.kind == InstrKind::Recv ? InstrKind::Send
                                                    : instr.kind;
  std::vector<int32_t> peers;
  const Role &own = role(at.rank);
  if (instr.kind == InstrKind::AllReduce) {
    for (int32_t i = 0; i < own.replicas; ++i)
      peers.push_back(own.firstRank + i);
  } else {
    for (const Piece &piece :
         transferPieces(plan, plan.channels[instr.target],
                        instr.kind == InstrKind::Send, at.rank - own.firstRank))
      peers.push_back(piece.peer);
  }
  const char *verb = other == InstrKind::Recv   ? "to receive"
                     : other == InstrKind::Send ? "to send"
                                                : "to join";
  for (int32_t peer : peers) {
    if (ranks[peer].empty()) {
      text += fmt::format("waits for rank {} {}, of which nothing is known",
                          peer, verb);
      return {peer, -1};
    }
    Place there = laneOf(peer, other, instr.target);
    if (there.lane >= 0 && begun(there, other, instr.target) >= mine)
      continue;
    if (there.lane < 0 || atEnd(there)) {
      text +=
          fmt::format("waits for rank {} {}, which it never does", peer, verb);
      return {peer, -1};
    }
    text += fmt::format("waits for rank {} {}", peer, verb);
    return there;
  }
  text += "is under way";
  return {at.rank, -1};
}

Place Explainer::follow(Place at, std::string &text) const {
  const Role &own = role(at.rank);
  const Lane &lane = own.lanes[at.lane];
  const Instr &instr = lane.instrs[count(at)];
  text += fmt::format("rank {}, lane '{}' at '{}' ", at.rank, lane.name,
                      actionText(plan, own, instr));
  if (!isRunning(at))
    return followWait(at, text);
  if (instr.kind == InstrKind::Call || instr.kind == InstrKind::Load) {
    text += "is under way";
    return {at.rank, -1};
  }
  return followPeer(at, instr, text);
}

HangChain Explainer::explain(Place at) const {
  std::vector<Place> seen;
  HangChain chain;
  while (at.lane >= 0) {
    auto before = std::find(seen.begin(), seen.end(), at);
    if (before != seen.end()) {
      chain.isCircle = true;
      chain.links.erase(chain.links.begin(),
                        chain.links.begin() + (before - seen.begin()));
      break;
    }
    seen.push_back(at);
    chain.links.push_back({at.rank, at.lane, count(at), ""});
    at = follow(at, chain.links.back().text);
  }
  if (!chain.isCircle && ranks[at.rank].empty())
    chain.unknown = at.rank;
  return chain;
}

} // namespace

HangChain followHang(const Plan &plan, const std::vector<RankProgress> &ranks,
                     int32_t rank, int32_t lane) {
  return Explainer(plan, ranks).explain({rank, lane});
}

int32_t heldLane(const Role &role, const RankProgress &rank) {
  int32_t held = -1;
  for (size_t lane = 0; lane < rank.size(); ++lane) {
    if (rank[lane].completed == role.lanes[lane].instrs.size())
      continue;
    if (role.lanes[lane].kind == LaneKind::Compute)
      return int32_t(lane);
    if (held < 0)
      held = int32_t(lane);
  }
  return held;
}

std::string explainHang(const Plan &plan,
                        const std::vector<const Interpreter *> &ranks) {
  auto stuck =
      std::find_if(ranks.begin(), ranks.end(),
                   [](const Interpreter *rank) { return !rank->finished(); });
  if (stuck == ranks.end())
    return "";
  std::vector<RankProgress> progress;
  for (const Interpreter *rank : ranks)
    progress.push_back(rank->progress());
  int32_t rank = static_cast<int32_t>(stuck - ranks.begin());
  const Role &role = plan.roles[plan.roleOf(rank)];
  int32_t lane = 0;
  while (progress[rank][lane].completed == role.lanes[lane].instrs.size())
    ++lane;
  HangChain chain = followHang(plan, progress, rank, lane);
  std::vector<std::string> links;
  for (const HangLink &link : chain.links)
    links.push_back(link.text);
  // The two ends tell most about a long chain.
  constexpr size_t kMost = 12;
  if (links.size() > kMost) {
    size_t cut = links.size() - kMost;
    links[kMost / 2] = fmt::format("({} more)", cut + 1);
    links.erase(links.begin() + kMost / 2 + 1,
                links.begin() + kMost / 2 + 1 + cut);
  }
  return fmt::format("{}{}", fmt::join(links, "; "),
                     chain.isCircle ? ", which closes the circle" : "");
}

} // namespace takt::rt
