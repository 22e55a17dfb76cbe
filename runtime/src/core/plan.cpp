//===- plan.cpp - questions asked of a plan ---------------------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Who exchanges what with whom, how long it takes, and what an instruction is
// called. Everything here is a pure function of a sound plan.
//
//===----------------------------------------------------------------------===//
#include "takt-rt/core/plan.h"

#include "channel_stage.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

namespace takt::rt {

int32_t Plan::roleOf(int32_t rank) const {
  auto next = std::upper_bound(
      roles.begin(), roles.end(), rank,
      [](int32_t r, const Role &role) { return r < role.firstRank; });
  return static_cast<int32_t>(next - roles.begin()) - 1;
}

double learningRateAt(const Training &training, int64_t step) {
  double peak = training.learningRate;
  if (step < training.warmupSteps)
    return peak * static_cast<double>(step + 1) /
           static_cast<double>(training.warmupSteps);
  if (training.schedule == LrSchedule::Constant)
    return peak;

  int64_t length = training.totalSteps - training.warmupSteps;
  int64_t past = step - training.warmupSteps;
  double progress =
      past >= length ? 1.0
                     : static_cast<double>(past) / static_cast<double>(length);
  double above = training.schedule == LrSchedule::Linear
                     ? 1.0 - progress
                     : 0.5 * (1.0 + std::cos(M_PI * progress));
  return training.minLearningRate + (peak - training.minLearningRate) * above;
}

//===----------------------------------------------------------------------===//
// Transfers
//===----------------------------------------------------------------------===//

/// Each replica holds an equal, contiguous share of the micro-batch; a piece is
/// the overlap of one share of either end.
static std::vector<Piece> splitPieces(const Channel &channel, const Role &own,
                                      const Role &peer, int32_t replica) {
  std::vector<Piece> pieces;
  Bytes ownShare = channel.bytes / own.replicas;
  Bytes peerShare = channel.bytes / peer.replicas;
  if (ownShare <= 0 || peerShare <= 0)
    return pieces;
  Bytes begin = replica * ownShare, end = begin + ownShare;
  for (Bytes at = begin; at < end;) {
    Bytes index = at / peerShare;
    Bytes until = std::min(end, (index + 1) * peerShare);
    pieces.push_back(
        {peer.firstRank + static_cast<int32_t>(index), at - begin, until - at});
    at = until;
  }
  return pieces;
}

/// The whole buffer goes from source replica j mod sources to each destination
/// replica j.
static std::vector<Piece> tiePieces(const Channel &channel, const Role &own,
                                    const Role &peer, bool sending,
                                    int32_t replica) {
  if (!sending)
    return {{peer.firstRank + replica % peer.replicas, 0, channel.bytes}};
  std::vector<Piece> pieces;
  for (int64_t j = replica; j < peer.replicas; j += own.replicas)
    pieces.push_back(
        {peer.firstRank + static_cast<int32_t>(j), 0, channel.bytes});
  return pieces;
}

std::vector<Piece> transferPieces(const Plan &plan, const Channel &channel,
                                  bool sending, int32_t replica) {
  const Role &own = plan.roles[sending ? channel.srcRole : channel.dstRole];
  const Role &peer = plan.roles[sending ? channel.dstRole : channel.srcRole];
  return channel.kind == ChannelKind::Tie
             ? tiePieces(channel, own, peer, sending, replica)
             : splitPieces(channel, own, peer, replica);
}

const Endpoint *findEndpoint(const std::vector<Endpoint> &ends,
                             uint16_t target) {
  auto end = std::lower_bound(
      ends.begin(), ends.end(), target,
      [](const Endpoint &e, uint16_t t) { return e.target < t; });
  return end != ends.end() && end->target == target ? &*end : nullptr;
}

Nanos transferTime(const Plan &plan, const Channel &channel) {
  Bytes largest = 0;
  for (bool sending : {true, false}) {
    uint16_t role = sending ? channel.srcRole : channel.dstRole;
    for (int32_t i = 0; i < plan.roles[role].replicas; ++i) {
      Bytes sum = 0;
      for (const Piece &piece : transferPieces(plan, channel, sending, i))
        sum += piece.bytes;
      largest = std::max(largest, sum);
    }
  }
  return channel.link.time(largest);
}

Nanos allReduceTime(const Link &link, int32_t n, Bytes bytes) {
  if (n < 2)
    return 0;
  double chunk = static_cast<double>(bytes) / n;
  double wire =
      link.bytesPerSecond > 0 ? chunk * 1e9 / link.bytesPerSecond : 0.0;
  double steps = 2.0 * (n - 1);
  return static_cast<Nanos>(steps * (static_cast<double>(link.latency) + wire) +
                            0.5);
}

//===----------------------------------------------------------------------===//
// Action text
//===----------------------------------------------------------------------===//

int32_t pieceOf(const Procedure &procedure) {
  const std::string &name = procedure.name;
  size_t dot = name.find('.');
  int32_t piece = -1;
  if (dot == std::string::npos)
    return -1;
  auto [end, error] =
      std::from_chars(name.data() + dot + 1, name.data() + name.size(), piece);
  bool isNumber = error == std::errc() && end == name.data() + name.size();
  return isNumber && piece >= 0 ? piece : -1;
}

static int32_t firstStage(const Role &role) {
  return role.stages.empty() ? 0 : role.stages.front();
}

static std::string callText(const Procedure &procedure, int32_t microBatch) {
  if (procedure.phase == Phase::Update && procedure.name == "U")
    return fmt::format("{}UPDATE", procedure.stage);
  if (procedure.name.size() > 1 && procedure.name[0] == 'T')
    return fmt::format("{}TIE_SUM{}", procedure.stage,
                       procedure.name.substr(1));
  int32_t piece = pieceOf(procedure);
  if (piece >= 0 && microBatch >= 0)
    return fmt::format("{}{}{}.{}", procedure.stage,
                       procedure.name.substr(0, procedure.name.find('.')),
                       microBatch, piece);
  std::string text = fmt::format("{}{}", procedure.stage, procedure.name);
  return microBatch < 0 ? text : text + std::to_string(microBatch);
}

/// Numbers in the name of a channel or group, in their order: of "tie0_2_5" 0,
/// 2 and 5.
static std::vector<int32_t> numbersIn(const std::string &name) {
  std::vector<int32_t> numbers;
  const char *at = name.data(), *end = at + name.size();
  while (at != end) {
    int32_t number = 0;
    auto [next, error] = std::from_chars(at, end, number);
    if (error == std::errc() && number >= 0)
      numbers.push_back(number);
    at = next == at ? at + 1 : next;
  }
  return numbers;
}

static bool hasStage(const Role &role, int32_t stage) {
  return std::find(role.stages.begin(), role.stages.end(), stage) !=
         role.stages.end();
}

/// A tie's number is the digits in its channel's name ("tie0.1-2"); a channel
/// without any counts by its index.
static std::string tieNumber(const Channel &channel, uint16_t index) {
  auto isDigit = [](char c) { return c >= '0' && c <= '9'; };
  auto begin = std::find_if(channel.name.begin(), channel.name.end(), isDigit);
  auto end = std::find_if_not(begin, channel.name.end(), isDigit);
  return begin == end ? std::to_string(index) : std::string(begin, end);
}

int32_t stageAtEnd(const Role &role, const Channel &channel, bool sending) {
  if (role.stages.size() < 2)
    return firstStage(role);
  std::vector<int32_t> numbers = numbersIn(channel.name);
  int32_t stage = -1;
  if (channel.kind == ChannelKind::Tie && numbers.size() == 3) {
    stage = numbers[sending ? 1 : 2];
  } else if (channel.kind != ChannelKind::Tie && !numbers.empty() &&
             numbers.size() < 3) {
    bool lower = (channel.kind == ChannelKind::Activation) == sending;
    stage = numbers[0] + (lower ? 0 : 1);
  }
  return hasStage(role, stage) ? stage : firstStage(role);
}

static std::string transferText(const Plan &plan, const Role &role,
                                const Instr &instr) {
  const Channel &channel = plan.channels[instr.target];
  bool sending = instr.kind == InstrKind::Send;
  const char *verb = sending ? "SEND" : "RECV";
  int32_t stage = stageAtEnd(role, channel, sending);
  if (channel.kind == ChannelKind::Tie) {
    const Role &peer = plan.roles[sending ? channel.dstRole : channel.srcRole];
    return fmt::format("{}TIE_{}{}_{}", stage, verb,
                       tieNumber(channel, instr.target),
                       stageAtEnd(peer, channel, !sending));
  }
  char what = channel.kind == ChannelKind::Activation ? 'F' : 'B';
  // One of several values over a boundary has a number of its own.
  std::vector<int32_t> numbers = numbersIn(channel.name);
  return fmt::format("{}{}_{}{}{}", stage, verb, what, instr.microBatch,
                     numbers.size() == 2 ? fmt::format(".{}", numbers[1]) : "");
}

/// Buckets count by their group's place among those of the role. A role of
/// several stages knows stage and bucket from the name: "dp3", or "dp3_1".
static std::string reduceText(const Plan &plan, const Role &role,
                              const Instr &instr) {
  std::vector<int32_t> numbers;
  if (role.stages.size() > 1)
    numbers = numbersIn(plan.groups[instr.target].name);
  if (!numbers.empty() && hasStage(role, numbers[0]))
    return fmt::format("{}REDUCE_GRAD{}", numbers[0],
                       numbers.size() > 1 ? std::to_string(numbers[1]) : "");
  std::string text = fmt::format("{}REDUCE_GRAD", firstStage(role));
  const Endpoint *end = findEndpoint(role.groups, instr.target);
  if (role.groups.size() < 2 || !end)
    return text;
  return text + std::to_string(end - role.groups.data());
}

std::string actionText(const Plan &plan, const Role &role, const Instr &instr) {
  switch (instr.kind) {
  case InstrKind::Call:
    return callText(role.procedures[instr.target], instr.microBatch);
  case InstrKind::Load:
    return fmt::format("{}LOAD{}", firstStage(role), instr.microBatch);
  case InstrKind::Send:
  case InstrKind::Recv:
    return transferText(plan, role, instr);
  case InstrKind::AllReduce:
    return reduceText(plan, role, instr);
  }
  return "?";
}

} // namespace takt::rt
