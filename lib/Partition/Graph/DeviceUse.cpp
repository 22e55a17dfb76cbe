//===- DeviceUse.cpp - how many devices later blocks have taken -----------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// States are the sums of choices that can be reached, in the order found.
//
//===----------------------------------------------------------------------===//

#include "DeviceUse.h"

#include <algorithm>
#include <map>

namespace takt::graphcut {

DeviceUse::DeviceUse(const GraphProblem &problem) : problem(problem) {
  const int64_t kinds = problem.devices.size();
  int64_t devices = 0;
  for (int64_t kind = 0; kind < kinds; ++kind) {
    devices += problem.devices[kind].count;
    for (const int64_t replicas : problem.replicaOptions)
      if (replicas <= problem.devices[kind].count)
        ways.push_back({int32_t(kind), replicas});
  }
  const int64_t most =
      problem.maxBlocks > 0 ? std::min(problem.maxBlocks, devices) : devices;
  // The number of blocks matters only if it can run out before the devices do.
  const bool count =
      problem.exactBlocks || most < devices / problem.replicaOptions.front();
  using Key = std::vector<int64_t>; // used of each kind, then blocks
  std::map<Key, int32_t> known;
  std::vector<Key> keys{Key(kinds + 1, 0)};
  known[keys[0]] = 0;
  for (size_t s = 0; s < keys.size() && keys.size() <= kMostStates; ++s)
    for (const Choice &way : ways) {
      Key key = keys[s];
      key[way.device] += way.replicas;
      key[kinds] += count;
      const bool fits = key[way.device] <= problem.devices[way.device].count &&
                        key[kinds] <= most;
      if (!fits) {
        following.push_back(-1);
        continue;
      }
      const auto [at, isNew] = known.try_emplace(key, int32_t(keys.size()));
      following.push_back(at->second);
      if (isNew)
        keys.push_back(key);
    }
  const int64_t widest = ways.empty() ? 0 : problem.replicaOptions.back();
  for (const Key &key : keys) {
    State state;
    for (int64_t kind = 0; kind < kinds; ++kind)
      state.used += key[kind];
    state.left = devices - state.used;
    if (count)
      state.left = std::min(state.left, (most - key[kinds]) * widest);
    state.complete = !problem.exactBlocks || key[kinds] == problem.maxBlocks;
    states.push_back(state);
  }
}

int64_t DeviceUse::inFlight(int32_t after, const Choice &choice) const {
  const int64_t r = choice.replicas;
  if (problem.inFlight == InFlightPolicy::GPipe)
    return (problem.microBatches + r - 1) / r;
  return std::min(problem.microBatches, (states[after].used + r - 1) / r);
}

} // namespace takt::graphcut
