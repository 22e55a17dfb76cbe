//===- Problem.cpp - what an assignment to unequal devices costs ----------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// The definitions behind the solver, each computed from the segments.
//
//===----------------------------------------------------------------------===//
#include "takt/Partition/Mixed.h"

#include <fmt/format.h>

#include <algorithm>

namespace takt {

/// A million of the currency; sums over all devices stay far from the limit.
static constexpr int64_t kMostPrice = int64_t(1000000) * 1000000;

static std::optional<std::string> checkPool(const PartitionProblem &chain,
                                            const DevicePool &pool) {
  if (pool.devices < 1 || pool.devicesPerNode < 1 ||
      pool.devices % pool.devicesPerNode != 0)
    return fmt::format("'{}' has {} devices in nodes of {}", pool.kind,
                       pool.devices, pool.devicesPerNode);
  if (pool.memory < 0 || pool.price < 0 || pool.price > kMostPrice)
    return fmt::format("'{}' has a memory or a price that cannot be",
                       pool.kind);
  if (pool.intraNode.latency < 0 || !(pool.intraNode.bytesPerSecond >= 0))
    return fmt::format("link '{}' has a negative latency or bandwidth",
                       pool.intraNode.name);
  for (const auto *table : {&pool.time, &pool.update}) {
    if (table->size() != chain.segments.size())
      return fmt::format("'{}' has times of {} segments, there are {}",
                         pool.kind, table->size(), chain.segments.size());
    for (const std::vector<Nanos> &times : *table)
      if (times.size() != chain.replicaOptions.size() ||
          *std::min_element(times.begin(), times.end()) < 0)
        return fmt::format("'{}' has {} times for {} replica options, or a "
                           "negative one",
                           pool.kind, times.size(),
                           chain.replicaOptions.size());
  }
  return std::nullopt;
}

std::optional<std::string> MixedProblem::check() const {
  if (pools.empty() || pools.size() > size_t(kMaxPools))
    return fmt::format("{} pools of devices, from 1 to {} can be planned",
                       pools.size(), kMaxPools);
  if (!chain.rankOfStage.empty())
    return "several stages a rank need devices of one kind";
  if (chain.useAllDevices)
    return "unequal devices cannot all be insisted on";
  int64_t devices = 0;
  for (const DevicePool &pool : pools) {
    if (auto fault = checkPool(chain, pool))
      return fault;
    devices += pool.devices;
  }
  // Sums of each pool stay countable where those of the chain do.
  for (const DevicePool &pool : pools) {
    PartitionProblem one = chain;
    one.cluster.devices = devices;
    one.cluster.devicesPerNode = pool.devicesPerNode;
    one.cluster.intraNode = pool.intraNode;
    one.cluster.memory = pool.memory;
    for (size_t i = 0; i < one.segments.size(); ++i) {
      one.segments[i].time = pool.time[i];
      one.segments[i].update = pool.update[i];
    }
    if (auto fault = one.check())
      return fault;
  }
  if (maxTime < 0)
    return "the time of a step is limited to a negative one";
  return std::nullopt;
}

double priceOf(int64_t rate, Nanos nanos) {
  return double(rate) * double(nanos) / (1e6 * 3600e9);
}

double MixedPartition::price() const { return priceOf(rate, time); }

void evaluate(const MixedProblem &problem, MixedPartition &partition) {
  const PartitionProblem &chain = problem.chain;
  const int64_t count = int64_t(partition.stages.size());
  auto replicas = [&](const MixedStage &stage) {
    return chain.replicaOptions[stage.option];
  };
  /// Nodes of the first and the last device.
  auto link = [&](const DevicePool &pool, int64_t first,
                  int64_t last) -> const rt::Link & {
    return first / pool.devicesPerNode == last / pool.devicesPerNode
               ? pool.intraNode
               : chain.cluster.network;
  };
  Nanos sum = 0, slowest = 0, reduce = 0;
  partition.rate = 0;
  for (int64_t s = 0; s < count; ++s) {
    MixedStage &stage = partition.stages[s];
    const DevicePool &pool = problem.pools[stage.pool];
    const int64_t own = replicas(stage), last = stage.firstDevice + own - 1;
    Nanos update = 0;
    Bytes gradients = 0;
    stage.time = 0;
    for (int64_t i = stage.begin; i < stage.end; ++i) {
      stage.time += pool.time[i][stage.option];
      update += pool.update[i][stage.option];
      gradients += chain.segments[i].gradients;
    }
    stage.inFlight = chain.inFlight == InFlightPolicy::GPipe
                         ? chain.microBatches
                         : std::min(chain.microBatches, count - s);
    stage.memory = stageMemory(chain, stage.begin, stage.end, stage.option,
                               stage.inFlight);
    stage.allReduce =
        update + (gradients > 0
                      ? rt::allReduceTime(link(pool, stage.firstDevice, last),
                                          own, gradients)
                      : 0);
    stage.transfer = 0;
    if (s + 1 < count) {
      const MixedStage &next = partition.stages[s + 1];
      const SegmentCost &cut = chain.segments[stage.end - 1];
      const int64_t pairs = std::min(own, replicas(next));
      const int64_t ends[] = {stage.firstDevice, last, next.firstDevice,
                              next.firstDevice + replicas(next) - 1};
      const rt::Link &between =
          next.pool == stage.pool
              ? link(pool, *std::min_element(ends, ends + 4),
                     *std::max_element(ends, ends + 4))
              : chain.cluster.network;
      stage.transfer = (cut.gradientCrosses ? 2 : 1) *
                       between.time((cut.outputWhole + pairs - 1) / pairs);
    }
    sum += stage.time + stage.transfer;
    slowest = std::max({slowest, stage.time, stage.transfer});
    reduce = std::max(reduce, stage.allReduce);
    partition.rate += own * pool.price;
  }
  partition.time = sum + (chain.microBatches - 1) * slowest + reduce;
}

} // namespace takt
