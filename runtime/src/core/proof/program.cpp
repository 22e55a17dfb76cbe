//===- program.cpp - the instructions of all roles as one graph -*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Numbering and matching. Messages of one channel are sent from one lane and
// received on one lane of each role, so that matching by count is the per-peer
// order of every piece: each piece of the n-th send meets the n-th receive.
//
//===----------------------------------------------------------------------===//
#include "program.h"

#include "../check.h"

#include "takt-rt/core/names.h"

#include <fmt/format.h>

#include <algorithm>

namespace takt::rt::proof {

Program::Program(const Plan &plan) : plan(plan) {
  size_t count = 0;
  for (const Role &role : plan.roles)
    for (const Lane &lane : role.lanes)
      count += lane.instrs.size();
  sites.reserve(count);
  for (size_t r = 0; r < plan.roles.size(); ++r) {
    const Role &role = plan.roles[r];
    std::vector<Node> starts;
    for (size_t l = 0; l < role.lanes.size(); ++l) {
      starts.push_back(static_cast<Node>(sites.size()));
      for (size_t i = 0; i < role.lanes[l].instrs.size(); ++i)
        sites.push_back({static_cast<uint16_t>(r), static_cast<uint16_t>(l),
                         static_cast<uint32_t>(i)});
    }
    bases.push_back(std::move(starts));
  }
  mates.assign(sites.size(), kNoNode);
}

ProofEnd Program::end(Node node) const {
  ProofEnd end;
  end.rank = role(node).firstRank;
  end.role = role(node).name;
  end.lane = lane(node).name;
  end.instr = sites[node].instr;
  end.action = actionText(plan, role(node), instr(node));
  return end;
}

ProofEnd Program::gap(const Role &role, const Instr &missing) const {
  ProofEnd end;
  end.rank = role.firstRank;
  end.role = role.name;
  end.action = "(no " + actionText(plan, role, missing) + ")";
  bool transfers =
      missing.kind == InstrKind::Send || missing.kind == InstrKind::Recv;
  for (const Lane &lane : role.lanes)
    for (const Instr &instr : lane.instrs)
      if (instr.kind == missing.kind &&
          (!transfers || instr.target == missing.target)) {
        end.lane = lane.name;
        end.instr = static_cast<uint32_t>(lane.instrs.size());
      }
  return end;
}

std::string Program::text(Node node) const {
  return fmt::format("'{}' (role {}, lane {}, instruction {})",
                     actionText(plan, role(node), instr(node)),
                     quoted(role(node).name), quoted(lane(node).name),
                     sites[node].instr);
}

Node Program::firstCall(size_t role, size_t procedure) const {
  for (Node n = 0; n < size(); ++n)
    if (sites[n].role == role && instr(n).kind == InstrKind::Call &&
        instr(n).target == procedure)
      return n;
  return kNoNode;
}

ProofFailure Program::kernelFailure(ProofRule rule, size_t role,
                                    size_t procedure, const Kernel *kernel,
                                    const std::string &what) const {
  const Role &own = plan.roles[role];
  std::string text =
      fmt::format("procedure '{}' of role {}: ", own.procedures[procedure].name,
                  quoted(own.name));
  if (kernel)
    text += fmt::format("kernel '{}'{} ", nameOf(kernel->kind),
                        kernel->layer < 0
                            ? ""
                            : " of layer " +
                                  quoted(plan.layers[kernel->layer].name));
  ProofFailure failure{rule, text + what, {}, {}};
  if (Node call = firstCall(role, procedure); call != kNoNode)
    failure.ends.push_back(end(call));
  return failure;
}

ProofFailure Program::failure(ProofRule rule, std::string text, Node one,
                              Node other) const {
  ProofFailure failure{rule, std::move(text), {}, {}};
  failure.ends.push_back(end(one));
  if (other != kNoNode && other != one)
    failure.ends.push_back(end(other));
  return failure;
}

std::optional<ProofFailure> Program::match() {
  std::vector<std::vector<Node>> sends(plan.channels.size());
  std::vector<std::vector<Node>> recvs(plan.channels.size());
  for (Node n = 0; n < size(); ++n) {
    const Instr &code = instr(n);
    if (code.kind == InstrKind::Send)
      sends[code.target].push_back(n);
    else if (code.kind == InstrKind::Recv)
      recvs[code.target].push_back(n);
  }
  for (size_t c = 0; c < plan.channels.size(); ++c) {
    const std::string name = quoted(plan.channels[c].name);
    size_t both = std::min(sends[c].size(), recvs[c].size());
    for (size_t i = 0; i < both; ++i) {
      Node send = sends[c][i], recv = recvs[c][i];
      if (instr(send).microBatch != instr(recv).microBatch)
        return failure(
            ProofRule::Matching,
            fmt::format("message {} of channel {} is sent by {} but received "
                        "by {}",
                        i, name, text(send), text(recv)),
            send, recv);
      mates[send] = recv;
      mates[recv] = send;
    }
    if (sends[c].size() == recvs[c].size())
      continue;
    bool lacksRecv = sends[c].size() > both;
    const std::vector<Node> &more = lacksRecv ? sends[c] : recvs[c];
    const std::vector<Node> &less = lacksRecv ? recvs[c] : sends[c];
    Node alone = more[both];
    const Role &other = plan.roles[lacksRecv ? plan.channels[c].dstRole
                                             : plan.channels[c].srcRole];
    Instr missing = instr(alone);
    missing.kind = lacksRecv ? InstrKind::Recv : InstrKind::Send;
    ProofFailure fault = failure(
        ProofRule::Matching,
        fmt::format("{} on channel {} is never {} by role {}: it has {} "
                    "messages, this one {}",
                    text(alone), name, lacksRecv ? "received" : "sent",
                    quoted(other.name), less.size(), more.size()),
        alone);
    fault.ends.push_back(gap(other, missing));
    return fault;
  }
  return std::nullopt;
}

int64_t Program::countMessages() const {
  std::vector<int64_t> pieces(plan.channels.size());
  for (size_t c = 0; c < plan.channels.size(); ++c) {
    const Channel &channel = plan.channels[c];
    int64_t from = plan.roles[channel.srcRole].replicas;
    int64_t to = plan.roles[channel.dstRole].replicas;
    // Shares of equal size overlap in from + to - gcd pieces.
    int64_t a = from, b = to;
    while (b != 0) {
      a %= b;
      std::swap(a, b);
    }
    pieces[c] = channel.kind == ChannelKind::Tie ? to : from + to - a;
  }
  int64_t count = 0;
  for (Node n = 0; n < size(); ++n) {
    const Instr &code = instr(n);
    if (code.kind == InstrKind::Send)
      count += pieces[code.target];
    else if (code.kind == InstrKind::AllReduce)
      ++count;
  }
  return count;
}

} // namespace takt::rt::proof
