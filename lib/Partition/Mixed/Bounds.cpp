//===- Bounds.cpp - what no assignment to unequal devices beats -----------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// The longest stage. Let y_k be any weights of the pools and w_ik the device
// time of segment i in pool k, at its best number of replicas. In a step's
// period P a device of pool k works at most P, so sum_i min_k y_k w_ik cannot
// be above P times the sum of y_k over all devices: linear duality. The weights
// are the pools' speeds, which makes it tight where times are in proportion.
//
//===----------------------------------------------------------------------===//
#include "Search.h"

#include <algorithm>
#include <cmath>

namespace takt::mixed {

/// Entries of the table of sums, and steps to fill it, at most.
static constexpr int64_t kMostEntries = int64_t(1) << 22;
static constexpr int64_t kMostSteps = int64_t(1) << 27;

/// Least device time of a segment in a pool.
static double deviceTime(const MixedProblem &problem, const DevicePool &pool,
                         size_t segment) {
  double least = HUGE_VAL;
  for (size_t o = 0; o < problem.chain.replicaOptions.size(); ++o)
    least = std::min(least, double(problem.chain.replicaOptions[o]) *
                                double(pool.time[segment][o]));
  return least;
}

MixedBounds::MixedBounds(const MixedProblem &problem) : problem(problem) {
  const size_t n = problem.chain.segments.size();
  for (const DevicePool &pool : problem.pools) {
    double all = 0;
    for (size_t i = 0; i < n; ++i)
      all += deviceTime(problem, pool, i);
    speed.push_back(all > 0 ? 1e9 / all : 1);
    widest = std::max(widest, speed.back() *
                                  double(problem.chain.replicaOptions.back()));
  }
  workSums.assign(n + 1, 0);
  paidSums.assign(n + 1, 0);
  largest.assign(n + 1, 0);
  for (size_t i = 0; i < n; ++i) {
    double work = HUGE_VAL, paid = HUGE_VAL;
    Nanos least = INT64_MAX;
    for (size_t k = 0; k < problem.pools.size(); ++k) {
      const DevicePool &pool = problem.pools[k];
      const double time = deviceTime(problem, pool, i);
      work = std::min(work, speed[k] * time);
      paid = std::min(paid, double(pool.price) * time);
      least = std::min(
          least, *std::min_element(pool.time[i].begin(), pool.time[i].end()));
    }
    workSums[i + 1] = workSums[i] + work;
    paidSums[i + 1] = paidSums[i] + double(problem.chain.microBatches) * paid;
    largest[i + 1] = std::max(largest[i], least);
  }
  fillSums();
}

/// Least sums without memory, places and all that joins stages but the fastest
/// link.
void MixedBounds::fillSums() {
  const PartitionProblem &chain = problem.chain;
  const int64_t n = int64_t(chain.segments.size());
  const int64_t options = int64_t(chain.replicaOptions.size());
  int64_t devices = 0;
  for (const DevicePool &pool : problem.pools)
    devices += pool.devices;
  devices = std::min(devices, n * chain.replicaOptions.back());
  const bool whole = (n + 1) * (devices + 1) <= kMostEntries &&
                     n * n / 2 * (devices + 1) * options <= kMostSteps;
  auto across = [&](int64_t at) {
    const SegmentCost &cut = chain.segments[at - 1];
    const int64_t pairs = chain.replicaOptions.back();
    const Bytes part = (cut.outputWhole + pairs - 1) / pairs;
    Nanos least = chain.cluster.network.time(part);
    for (const DevicePool &pool : problem.pools) {
      if (pool.devices == pool.devicesPerNode && problem.pools.size() == 1)
        least = pool.intraNode.time(part);
      else if (pool.devicesPerNode > 1)
        least = std::min(least, pool.intraNode.time(part));
    }
    return (cut.gradientCrosses ? 2 : 1) * least;
  };
  std::vector<std::vector<Nanos>> least(n, std::vector<Nanos>(options));
  for (int64_t i = 0; i < n; ++i)
    for (int64_t o = 0; o < options; ++o) {
      least[i][o] = INT64_MAX;
      for (const DevicePool &pool : problem.pools)
        least[i][o] = std::min(least[i][o], pool.time[i][o]);
    }
  sums.assign(n + 1, std::vector<Nanos>(whole ? devices + 1 : 1, 0));
  if (!whole) {
    for (int64_t i = 0; i < n; ++i)
      sums[i + 1][0] =
          sums[i][0] + *std::min_element(least[i].begin(), least[i].end());
    return;
  }
  constexpr Nanos kNone = INT64_MAX / 8;
  for (int64_t end = 1; end <= n; ++end) {
    std::fill(sums[end].begin(), sums[end].end(), kNone);
    for (int64_t o = 0; o < options; ++o) {
      const int64_t own = chain.replicaOptions[o];
      Nanos time = 0;
      for (int64_t begin = end - 1; begin >= 0; --begin) {
        time += least[begin][o];
        const Nanos joint = begin > 0 ? across(begin) : 0;
        for (int64_t d = own; d <= devices; ++d)
          sums[end][d] =
              std::min(sums[end][d], sums[begin][d - own] + time + joint);
      }
    }
  }
}

Nanos MixedBounds::sum(int64_t begin, int64_t devices) const {
  const std::vector<Nanos> &row = sums[begin];
  return row[std::clamp<int64_t>(devices, 0, int64_t(row.size()) - 1)];
}

Nanos MixedBounds::longest(int64_t begin, const Taken &taken,
                           int64_t stages) const {
  double capacity = 0;
  for (size_t k = 0; k < problem.pools.size(); ++k)
    capacity += speed[k] * double(problem.pools[k].devices - taken[k]);
  capacity = std::min(capacity, widest * double(stages));
  if (capacity <= 0)
    return begin > 0 ? INT64_MAX / 8 : 0;
  // Rounding must not lift it above what can be had.
  const double average = workSums[begin] / capacity * (1 - 1e-9);
  return std::max(largest[begin], Nanos(std::ceil(average - 1e-6)));
}

} // namespace takt::mixed
