//===- machine.cpp - what calls and transfers of a plan share ---*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Resource 0 stands for "not shared" and is never used.
//
//===----------------------------------------------------------------------===//
#include "machine.h"

#include <algorithm>
#include <map>

namespace takt::rt {

Machine::Machine(const Plan &plan, Sharing &sharing) : plan(plan) {
  if (plan.resources.empty())
    return;
  sharing.addResource(0);
  auto make = [&](double capacity) {
    return capacity > 0 ? sharing.addResource(capacity) : 0;
  };
  auto placeOf = [&](int64_t number) {
    int64_t first = 0, firstNode = 0;
    auto kind = plan.resources.begin();
    while (number >= first + int64_t(kind->nodes) * kind->devices) {
      first += int64_t(kind->nodes) * kind->devices;
      firstNode += kind->nodes;
      ++kind;
    }
    return std::pair(firstNode + (number - first) / kind->devices, &*kind);
  };
  // Calls of a node that can run at once: where it has a core for each, cores
  // slow nobody and need not be watched.
  std::map<int64_t, int64_t> callers;
  for (const Role &role : plan.roles)
    for (int32_t number : role.devices)
      callers[placeOf(number).first] += std::count_if(
          role.lanes.begin(), role.lanes.end(),
          [](const Lane &lane) { return lane.kind == LaneKind::Compute; });
  // Only for devices that have a rank: a cluster may have many more.
  std::map<int64_t, uint32_t> nodeIndex;
  auto nodeOf = [&](int64_t number, const NodeResources &kind) {
    auto [known, isNew] =
        nodeIndex.emplace(number, static_cast<uint32_t>(nodes.size()));
    if (!isNew)
      return known->second;
    NodeShares node;
    node.kind = &kind;
    node.cores = callers[number] > kind.cores ? make(kind.cores) : 0;
    // With a port for each device the devices' own ports say it all.
    bool fewer = kind.networkPorts > 0 && kind.networkPorts < kind.devices;
    for (uint32_t &direction : node.network)
      direction =
          make(fewer ? kind.networkPorts * kind.networkBytesPerSecond : 0);
    nodes.push_back(node);
    return known->second;
  };
  std::map<int32_t, uint32_t> deviceIndex;
  for (const Role &role : plan.roles)
    for (int32_t number : role.devices) {
      auto [known, isNew] =
          deviceIndex.emplace(number, static_cast<uint32_t>(devices.size()));
      deviceOf.push_back(known->second);
      if (!isNew)
        continue;
      auto [node, kind] = placeOf(number);
      Device device;
      device.node = nodeOf(node, *kind);
      device.sm = make(kind->transferShare > 0 ? 1 : 0);
      device.engines = make(kind->copyEngines);
      device.memory = make(kind->memoryBytesPerSecond);
      for (int in : {0, 1}) {
        device.port[in] = make(kind->portBytesPerSecond);
        device.network[in] = make(kind->networkBytesPerSecond);
      }
      devices.push_back(device);
    }
}

static void add(std::vector<Use> &uses, uint32_t resource, double amount) {
  if (resource == 0 || amount <= 0)
    return;
  for (Use &use : uses)
    if (use.resource == resource) {
      use.amount += amount;
      return;
    }
  uses.push_back({resource, amount});
}

/// A call reads and writes each operand once.
std::vector<Use> Machine::ofCall(int32_t rank,
                                 const Procedure &procedure) const {
  std::vector<Use> uses;
  const Device &device = devices[deviceOf[rank]];
  add(uses, nodes[device.node].cores, 1);
  add(uses, device.sm, 1);
  Bytes traffic = 0;
  for (const Kernel &kernel : procedure.kernels)
    for (const BufferRef &operand : kernel.operands)
      traffic += operand.bytes;
  double rate =
      static_cast<double>(traffic) * 1e9 / static_cast<double>(procedure.cost);
  // A call by itself is as fast as its cost says, whatever its traffic.
  add(uses, device.memory,
      std::min(rate, nodes[device.node].kind->memoryBytesPerSecond));
  return uses;
}

/// `rate`: bytes a second when alone.
void Machine::addEnd(std::vector<Use> &uses, const Device &device, bool in,
                     bool sameNode, double rate) const {
  const NodeShares &node = nodes[device.node];
  add(uses, sameNode ? device.port[in] : device.network[in], rate);
  if (!sameNode)
    add(uses, node.network[in], rate);
  add(uses, device.memory, rate);
  add(uses, device.engines, 1);
  add(uses, device.sm, node.kind->transferShare);
}

std::vector<Use> Machine::ofPiece(int32_t from, int32_t to,
                                  const Link &link) const {
  std::vector<Use> uses;
  const Device &source = devices[deviceOf[from]];
  const Device &destination = devices[deviceOf[to]];
  bool sameNode = source.node == destination.node;
  addEnd(uses, source, false, sameNode, link.bytesPerSecond);
  addEnd(uses, destination, true, sameNode, link.bytesPerSecond);
  return uses;
}

/// Every member sends to the next one all the time.
std::vector<Use> Machine::ofAllReduce(const Group &group) const {
  std::vector<Use> uses;
  const Role &role = plan.roles[group.role];
  for (int32_t i = 0; i < role.replicas; ++i) {
    const Device &source = devices[deviceOf[role.firstRank + i]];
    const Device &next =
        devices[deviceOf[role.firstRank + (i + 1) % role.replicas]];
    bool sameNode = source.node == next.node;
    addEnd(uses, source, false, sameNode, group.link.bytesPerSecond);
    addEnd(uses, next, true, sameNode, group.link.bytesPerSecond);
  }
  return uses;
}

} // namespace takt::rt
