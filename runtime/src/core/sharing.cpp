//===- sharing.cpp - flows that share resources -----------------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Progressive filling: raise the share of all flows together until a resource
// is full, fix the flows on it, go on with the others, up to full speed.
//
//===----------------------------------------------------------------------===//
#include "sharing.h"

#include "takt-rt/core/error.h"

#include <algorithm>
#include <cmath>
#include <set>

namespace takt::rt {

namespace {

constexpr int64_t kFull = int64_t(1) << 30;
constexpr Nanos kMostNanos = int64_t(1) << 62;
constexpr uint32_t kNoFlow = UINT32_MAX;
/// Sums of shares may differ from a capacity by rounding.
constexpr double kSlack = 1 + 1e-9;

} // namespace

uint32_t Sharing::addResource(double capacity) {
  resources.push_back({capacity, false, {}});
  return static_cast<uint32_t>(resources.size() - 1);
}

double Sharing::demand(const Resource &resource) const {
  double sum = 0;
  auto index = static_cast<uint32_t>(&resource - resources.data());
  for (uint32_t flow : resource.flows)
    for (const Use &use : flows[flow].uses)
      if (use.resource == index)
        sum += use.amount;
  return sum;
}

uint32_t Sharing::begin(Nanos now, Nanos alone, std::vector<Use> uses) {
  uint32_t number = static_cast<uint32_t>(flows.size());
  if (unused.empty()) {
    flows.emplace_back();
  } else {
    number = unused.back();
    unused.pop_back();
  }
  Flow &flow = flows[number];
  flow.running = true;
  flow.left = static_cast<__int128>(alone) * kFull;
  flow.speed = 0;
  flow.since = now;
  flow.uses = std::move(uses);
  for (const Use &use : flow.uses)
    resources[use.resource].flows.push_back(number);
  refresh(now, flow.uses, number);
  return number;
}

void Sharing::end(Nanos now, uint32_t number) {
  Flow &flow = flows[number];
  flow.running = false;
  ++flow.stamp;
  std::vector<Use> uses = std::move(flow.uses);
  flow.uses.clear();
  for (const Use &use : uses) {
    auto &list = resources[use.resource].flows;
    list.erase(std::find(list.begin(), list.end(), number));
  }
  unused.push_back(number);
  refresh(now, uses, kNoFlow);
}

/// Flows whose speed may change: those on resources of `uses` that are or were
/// scarce, and on from there.
std::vector<uint32_t> Sharing::reach(const std::vector<Use> &uses,
                                     uint32_t extra) {
  std::vector<uint32_t> group;
  std::set<uint32_t> seen, seenResources;
  auto visit = [&](const Use &use) {
    if (!seenResources.insert(use.resource).second)
      return;
    Resource &resource = resources[use.resource];
    bool was = resource.scarce;
    resource.scarce = demand(resource) > resource.capacity * kSlack;
    if (!was && !resource.scarce)
      return;
    for (uint32_t flow : resource.flows)
      if (seen.insert(flow).second)
        group.push_back(flow);
  };
  if (extra != kNoFlow && seen.insert(extra).second)
    group.push_back(extra);
  for (const Use &use : uses)
    visit(use);
  for (size_t i = 0; i < group.size(); ++i)
    for (const Use &use : flows[group[i]].uses)
      visit(use);
  std::sort(group.begin(), group.end());
  return group;
}

void Sharing::fill(const std::vector<uint32_t> &group) {
  std::set<uint32_t> open;
  for (uint32_t flow : group) {
    flows[flow].share = -1;
    for (const Use &use : flows[flow].uses)
      if (resources[use.resource].scarce)
        open.insert(use.resource);
  }
  while (true) {
    double level = 1;
    uint32_t full = UINT32_MAX;
    for (uint32_t index : open) {
      double left = resources[index].capacity, wanted = 0;
      for (uint32_t flow : resources[index].flows)
        for (const Use &use : flows[flow].uses)
          if (use.resource == index)
            (flows[flow].share < 0 ? wanted : left) +=
                flows[flow].share < 0 ? use.amount
                                      : -use.amount * flows[flow].share;
      if (wanted > 0 && left < level * wanted) {
        level = std::max(left, 0.0) / wanted;
        full = index;
      }
    }
    if (full == UINT32_MAX)
      break;
    for (uint32_t flow : resources[full].flows)
      if (flows[flow].share < 0)
        flows[flow].share = level;
    open.erase(full);
  }
  for (uint32_t flow : group)
    if (flows[flow].share < 0)
      flows[flow].share = 1;
}

void Sharing::setSpeed(Nanos now, uint32_t number) {
  Flow &flow = flows[number];
  // Never quite still: rounding must not stop the clock.
  int64_t speed = std::max<int64_t>(std::llround(flow.share * kFull), 1);
  if (speed == flow.speed)
    return;
  flow.left -= static_cast<__int128>(flow.speed) * (now - flow.since);
  flow.left = std::max<__int128>(flow.left, 0);
  flow.since = now;
  flow.speed = speed;
  __int128 end = now + (flow.left + speed / 2) / speed;
  if (end > kMostNanos)
    throw Error("resources are so scarce that a step takes longer than can be "
                "counted");
  changes.push_back({number, ++flow.stamp, static_cast<Nanos>(end)});
}

/// Nothing on the way is in short supply, nor was: nobody's speed changes.
bool Sharing::isAmple(const std::vector<Use> &uses) const {
  return std::all_of(uses.begin(), uses.end(), [&](const Use &use) {
    const Resource &resource = resources[use.resource];
    return !resource.scarce && demand(resource) <= resource.capacity * kSlack;
  });
}

void Sharing::refresh(Nanos now, const std::vector<Use> &uses, uint32_t extra) {
  if (isAmple(uses)) {
    if (extra != kNoFlow) {
      flows[extra].share = 1;
      setSpeed(now, extra);
    }
    return;
  }
  std::vector<uint32_t> group = reach(uses, extra);
  fill(group);
  for (uint32_t flow : group)
    setSpeed(now, flow);
}

std::vector<Sharing::Change> Sharing::takeChanges() {
  std::vector<Change> taken;
  taken.swap(changes);
  return taken;
}

} // namespace takt::rt
