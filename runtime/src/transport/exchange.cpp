//===- exchange.cpp - all mailboxes of a plan -----------------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// The order of the specifications is part of what processes agree on: they lay
// out shared memory by it.
//
//===----------------------------------------------------------------------===//

#include "takt-rt/transport/exchange.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

namespace takt::rt {

/// A message of the team that is longer goes in parts.
constexpr Bytes kTeamWindow = 64 << 10;

bool operator<(const BoxKey &a, const BoxKey &b) {
  return std::tie(a.owner, a.index, a.from, a.to) <
         std::tie(b.owner, b.index, b.from, b.to);
}

static void addChannel(const Plan &plan, uint16_t index,
                       std::map<BoxKey, BoxSpec> &specs) {
  const Channel &channel = plan.channels[index];
  const Role &from = plan.roles[channel.srcRole];
  Emulation link{channel.link, 1, 0};
  // Without ports to share, the virtual clock gives every piece the time of the
  // whole transfer.
  if (plan.resources.empty())
    link.fixed = transferTime(plan, channel);
  for (int32_t replica = 0; replica < from.replicas; ++replica)
    for (const Piece &piece : transferPieces(plan, channel, true, replica)) {
      BoxKey key{BoxOwner::Channel, index, from.firstRank + replica,
                 piece.peer};
      BoxSpec &spec =
          specs.try_emplace(key, BoxSpec{key, 0, link}).first->second;
      spec.most = std::max(spec.most, piece.bytes);
    }
}

static void addGroup(const Plan &plan, uint16_t index,
                     std::map<BoxKey, BoxSpec> &specs) {
  const Role &role = plan.roles[plan.groups[index].role];
  const Endpoint *end = findEndpoint(role.groups, index);
  int32_t n = role.replicas;
  if (n < 2 || !end)
    return;
  Bytes elements = end->buffer.bytes / Bytes(sizeof(float));
  Bytes chunk = (elements + n - 1) / n * Bytes(sizeof(float));
  // The host's ring sums every element in the order of ranks, for which it
  // sends three messages where the predicted one sends two.
  Emulation link{plan.groups[index].link, 2.0 / 3.0, 0};
  for (int32_t i = 0; i < n; ++i) {
    BoxKey key{BoxOwner::Group, index, role.firstRank + i,
               role.firstRank + (i + 1) % n};
    specs.try_emplace(key, BoxSpec{key, chunk, link});
  }
}

std::vector<BoxSpec> boxesOf(const Plan &plan, bool team) {
  std::map<BoxKey, BoxSpec> specs;
  for (size_t c = 0; c < plan.channels.size(); ++c)
    addChannel(plan, c, specs);
  for (size_t g = 0; g < plan.groups.size(); ++g)
    addGroup(plan, g, specs);
  for (int32_t r = 1; team && r < plan.numRanks(); ++r)
    for (BoxKey key :
         {BoxKey{BoxOwner::Team, 0, r, 0}, BoxKey{BoxOwner::Team, 0, 0, r}})
      specs.try_emplace(key, BoxSpec{key, kTeamWindow, {}});
  std::vector<BoxSpec> all;
  for (const auto &[key, spec] : specs)
    all.push_back(spec);
  return all;
}

std::string boxName(const Plan &plan, const BoxKey &key) {
  std::string owner = "team";
  if (key.owner == BoxOwner::Channel)
    owner = fmt::format("channel '{}'", plan.channels[key.index].name);
  if (key.owner == BoxOwner::Group)
    owner = fmt::format("group '{}'", plan.groups[key.index].name);
  return fmt::format("{} from rank {} to rank {}", owner, key.from, key.to);
}

void Exchange::emulateLinks(const Plan &plan) {
  for (const BoxSpec &spec : boxesOf(plan, false)) {
    auto box = boxes.find(spec.key);
    if (box != boxes.end())
      box->second->emulate(links[spec.key] = spec.link);
  }
}

} // namespace takt::rt
