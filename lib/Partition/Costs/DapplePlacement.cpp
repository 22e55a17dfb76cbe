//===- DapplePlacement.cpp - devices of a stage ---------------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// The three placements; of equal machines the first is taken.
//
//===----------------------------------------------------------------------===//
#include "DapplePlacement.h"

namespace takt::partition {

int64_t countOf(const Occupancy &used) {
  return std::accumulate(used.begin(), used.end(), int64_t(0));
}

std::set<int64_t> machinesOf(const DappleCluster &cluster,
                             const std::vector<int32_t> &devices) {
  std::set<int64_t> machines;
  for (const int32_t device : devices)
    machines.insert(device / cluster.devicesPerMachine);
  return machines;
}

bool mayReplicate(const DappleProblem &problem, int64_t replicas) {
  const auto &options = problem.replicaOptions;
  return options.empty() ||
         std::binary_search(options.begin(), options.end(), replicas);
}

} // namespace takt::partition

namespace takt {

using namespace partition;

std::vector<int32_t> takeDevices(const DappleCluster &cluster, Occupancy &used,
                                 DapplePlacement placement, int64_t count) {
  std::vector<int32_t> devices;
  auto take = [&](size_t machine) {
    devices.push_back(int32_t(int64_t(machine) * cluster.devicesPerMachine +
                              used[machine]++));
  };
  auto isFull = [&](size_t machine) {
    return used[machine] == cluster.devicesPerMachine;
  };
  if (placement == DapplePlacement::Scatter) {
    while (int64_t(devices.size()) < count)
      for (size_t m = 0; m < used.size() && int64_t(devices.size()) < count;
           ++m)
        if (!isFull(m))
          take(m);
  } else {
    std::vector<size_t> order(used.size());
    std::iota(order.begin(), order.end(), size_t(0));
    const bool empty = placement == DapplePlacement::Fresh;
    const Occupancy before = used;
    std::stable_partition(order.begin(), order.end(),
                          [&](size_t m) { return (before[m] == 0) == empty; });
    for (const size_t m : order)
      while (!isFull(m) && int64_t(devices.size()) < count)
        take(m);
  }
  std::sort(devices.begin(), devices.end());
  return devices;
}

} // namespace takt
