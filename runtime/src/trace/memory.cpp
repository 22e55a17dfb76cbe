//===- memory.cpp - memory in use over a step -------------------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Instructions that touch the same pools share one list of them, as a plan has
// many instructions and few kinds.
//
//===----------------------------------------------------------------------===//
#include "takt-rt/trace/memory.h"

#include <algorithm>
#include <map>
#include <utility>

namespace takt::rt {

namespace {

bool isPersistent(PoolKind kind) {
  return kind == PoolKind::Weights || kind == PoolKind::Gradients ||
         kind == PoolKind::OptimizerState || kind == PoolKind::Loss;
}

struct Life {
  Nanos begin = 0, end = 0;
};

class RankMemory {
public:
  explicit RankMemory(const Role &role) : role(role) {
    for (const Pool &pool : role.pools)
      if (isPersistent(pool.kind))
        always += pool.bytes();
  }

  void add(const Record &record) {
    const Instr &instr = role.lanes[record.lane].instrs[record.instr];
    for (uint16_t index : poolsOf(instr)) {
      const Pool &pool = role.pools[index];
      if (isPersistent(pool.kind))
        continue;
      if (pool.kind == PoolKind::Workspace) { // of one call at a time
        edges.push_back({record.begin, pool.slotBytes});
        edges.push_back({record.end, -pool.slotBytes});
        continue;
      }
      auto [known, isNew] = lives.emplace(std::pair(index, instr.microBatch),
                                          Life{record.begin, record.end});
      if (isNew)
        continue;
      known->second.begin = std::min(known->second.begin, record.begin);
      known->second.end = std::max(known->second.end, record.end);
    }
  }

  std::vector<MemoryPoint> curve() {
    for (const auto &[slot, life] : lives) {
      edges.push_back({life.begin, role.pools[slot.first].slotBytes});
      edges.push_back({life.end, -role.pools[slot.first].slotBytes});
    }
    std::sort(edges.begin(), edges.end());
    std::vector<MemoryPoint> points = {{0, always}};
    Bytes bytes = always;
    for (size_t i = 0; i < edges.size();) {
      Nanos at = edges[i].first;
      // What ends and what begins at one moment are not in use together.
      for (; i < edges.size() && edges[i].first == at; ++i)
        bytes += edges[i].second;
      if (points.back().time == at)
        points.back().bytes = bytes;
      else if (points.back().bytes != bytes)
        points.push_back({at, bytes});
    }
    return points;
  }

private:
  const std::vector<uint16_t> &poolsOf(const Instr &instr) {
    auto [known, isNew] = touched.try_emplace({instr.kind, instr.target});
    if (isNew)
      known->second = touchedPools(role, instr);
    return known->second;
  }

  const Role &role;
  Bytes always = 0;
  std::map<std::pair<InstrKind, uint16_t>, std::vector<uint16_t>> touched;
  std::map<std::pair<uint16_t, int32_t>, Life> lives;
  std::vector<std::pair<Nanos, Bytes>> edges;
};

} // namespace

std::vector<uint16_t> touchedPools(const Role &role, const Instr &instr) {
  std::vector<uint16_t> pools;
  switch (instr.kind) {
  case InstrKind::Call:
    for (const Kernel &kernel : role.procedures[instr.target].kernels)
      for (const BufferRef &operand : kernel.operands)
        pools.push_back(operand.pool);
    break;
  case InstrKind::Load:
    for (const LoadField &field : role.loads)
      pools.push_back(field.buffer.pool);
    break;
  case InstrKind::Send:
  case InstrKind::Recv:
    if (const Endpoint *end = findEndpoint(role.channels, instr.target))
      pools.push_back(end->buffer.pool);
    break;
  case InstrKind::AllReduce:
    if (const Endpoint *end = findEndpoint(role.groups, instr.target))
      pools.push_back(end->buffer.pool);
    break;
  }
  std::sort(pools.begin(), pools.end());
  pools.erase(std::unique(pools.begin(), pools.end()), pools.end());
  return pools;
}

std::vector<std::vector<MemoryPoint>>
memoryOverTime(const Plan &plan, const std::vector<Record> &run) {
  std::vector<RankMemory> ranks;
  for (const Role &role : plan.roles)
    for (int32_t i = 0; i < role.replicas; ++i)
      ranks.emplace_back(role);
  for (const Record &record : run)
    ranks[record.rank].add(record);
  std::vector<std::vector<MemoryPoint>> curves;
  for (RankMemory &rank : ranks)
    curves.push_back(rank.curve());
  return curves;
}

Bytes peakOf(const std::vector<MemoryPoint> &curve) {
  Bytes peak = 0;
  for (const MemoryPoint &point : curve)
    peak = std::max(peak, point.bytes);
  return peak;
}

} // namespace takt::rt
