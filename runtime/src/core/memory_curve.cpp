//===- memory_curve.cpp - which memory is held when -------------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// One pass over the records finds, for each pool and micro-batch, the first
// begin and the last end of what touches the slot; the holds are then added up
// in the order of time, at equal times the ends first.
//
//===----------------------------------------------------------------------===//
#include "takt-rt/core/analysis.h"

#include <algorithm>

namespace takt::rt {

namespace {

/// Pools whose slots come and go with micro-batches.
bool isPassing(PoolKind kind) {
  switch (kind) {
  case PoolKind::Batch:
  case PoolKind::Saved:
  case PoolKind::Input:
  case PoolKind::Output:
  case PoolKind::OutputGrad:
  case PoolKind::InputGrad:
    return true;
  default:
    return false;
  }
}

/// Whether a call of that phase uses such a buffer, where kernels do not say.
bool usesByPhase(PoolKind kind, Phase phase) {
  bool forward = phase == Phase::Forward;
  bool inputGrad = phase == Phase::InputGrad || phase == Phase::Backward;
  switch (kind) {
  case PoolKind::Batch:
  case PoolKind::Saved:
  case PoolKind::Input:
    return phase != Phase::Update;
  case PoolKind::Output:
    return forward;
  case PoolKind::OutputGrad:
    return !forward && phase != Phase::Update;
  case PoolKind::InputGrad:
    return inputGrad;
  default:
    return false;
  }
}

/// Pools that the procedures and loads of a role touch: passing ones, and those
/// that a call holds only while it runs.
struct Touches {
  std::vector<std::vector<uint16_t>> procedures;
  std::vector<std::vector<uint16_t>> workspaces; ///< of each procedure
  std::vector<uint16_t> loads;

  explicit Touches(const Role &role);
};

void addOnce(std::vector<uint16_t> &pools, uint16_t pool) {
  if (std::find(pools.begin(), pools.end(), pool) == pools.end())
    pools.push_back(pool);
}

Touches::Touches(const Role &role) {
  std::vector<bool> named(role.pools.size());
  bool profiled = false;
  for (const Procedure &procedure : role.procedures) {
    auto &pools = procedures.emplace_back();
    auto &workspace = workspaces.emplace_back();
    for (const Kernel &kernel : procedure.kernels) {
      profiled = profiled || (kernel.kind == KernelKind::Profiled &&
                              kernel.operands.empty());
      for (const BufferRef &operand : kernel.operands) {
        PoolKind kind = role.pools[operand.pool].kind;
        if (isPassing(kind))
          addOnce(pools, operand.pool);
        else if (kind == PoolKind::Workspace)
          addOnce(workspace, operand.pool);
        named[operand.pool] = true;
      }
    }
  }
  for (const LoadField &load : role.loads)
    if (isPassing(role.pools[load.buffer.pool].kind))
      addOnce(loads, load.buffer.pool);
  if (!profiled)
    return;
  for (uint16_t pool = 0; pool < role.pools.size(); ++pool)
    for (size_t p = 0; p < procedures.size() && !named[pool]; ++p)
      if (usesByPhase(role.pools[pool].kind, role.procedures[p].phase))
        addOnce(procedures[p], pool);
}

struct Hold {
  Nanos begin = -1, end = 0;
};

class CurveBuilder {
public:
  explicit CurveBuilder(const Plan &plan);
  void add(const Record &record);
  std::vector<MemoryCurve> finish();

private:
  void touch(int32_t rank, uint16_t pool, int32_t microBatch,
             const Record &record);
  MemoryCurve curveOf(int32_t rank);

  const Plan &plan;
  std::vector<Touches> touches; ///< by role
  std::vector<int32_t> roleOf;
  std::vector<std::vector<Hold>> holds; ///< by rank: pool, then micro-batch
  using Change = std::pair<Nanos, Bytes>;
  std::vector<std::vector<Change>> changes; ///< by rank: of workspaces
};

CurveBuilder::CurveBuilder(const Plan &plan) : plan(plan) {
  changes.resize(plan.numRanks());
  for (size_t r = 0; r < plan.roles.size(); ++r) {
    touches.emplace_back(plan.roles[r]);
    for (int32_t i = 0; i < plan.roles[r].replicas; ++i) {
      roleOf.push_back(static_cast<int32_t>(r));
      holds.emplace_back(plan.roles[r].pools.size() *
                         plan.training.microBatches);
    }
  }
}

void CurveBuilder::touch(int32_t rank, uint16_t pool, int32_t microBatch,
                         const Record &record) {
  Hold &hold =
      holds[rank][size_t(pool) * plan.training.microBatches + microBatch];
  hold.begin =
      hold.begin < 0 ? record.begin : std::min(hold.begin, record.begin);
  hold.end = std::max(hold.end, record.end);
}

void CurveBuilder::add(const Record &record) {
  const Role &role = plan.roles[roleOf[record.rank]];
  const Instr &instr = role.lanes[record.lane].instrs[record.instr];
  const Touches &known = touches[roleOf[record.rank]];
  if (instr.kind == InstrKind::Call && record.end > record.begin)
    for (uint16_t pool : known.workspaces[instr.target]) {
      changes[record.rank].push_back(
          {record.begin, role.pools[pool].slotBytes});
      changes[record.rank].push_back({record.end, -role.pools[pool].slotBytes});
    }
  if (instr.microBatch < 0)
    return;
  switch (instr.kind) {
  case InstrKind::Call:
    for (uint16_t pool : known.procedures[instr.target])
      touch(record.rank, pool, instr.microBatch, record);
    break;
  case InstrKind::Load:
    for (uint16_t pool : known.loads)
      touch(record.rank, pool, instr.microBatch, record);
    break;
  case InstrKind::Send:
  case InstrKind::Recv: {
    uint16_t pool = findEndpoint(role.channels, instr.target)->buffer.pool;
    if (isPassing(role.pools[pool].kind))
      touch(record.rank, pool, instr.microBatch, record);
    break;
  }
  case InstrKind::AllReduce:
    break;
  }
}

MemoryCurve CurveBuilder::curveOf(int32_t rank) {
  const Role &role = plan.roles[roleOf[rank]];
  MemoryCurve curve;
  std::vector<Change> &changes = this->changes[rank];
  for (size_t p = 0; p < role.pools.size(); ++p) {
    const Pool &pool = role.pools[p];
    if (!isPassing(pool.kind)) {
      curve.base += pool.kind == PoolKind::Workspace ? 0 : pool.bytes();
      continue;
    }
    const Hold *first = &holds[rank][p * plan.training.microBatches];
    for (int32_t m = 0; m < plan.training.microBatches; ++m) {
      if (first[m].begin < 0 || first[m].end == first[m].begin)
        continue;
      changes.push_back({first[m].begin, pool.slotBytes});
      changes.push_back({first[m].end, -pool.slotBytes});
    }
  }
  // Ends (negative) before begins of the same time.
  std::sort(changes.begin(), changes.end());
  Bytes held = curve.base;
  curve.points.push_back({0, held});
  for (size_t i = 0; i < changes.size(); ++i) {
    held += changes[i].second;
    if (i + 1 < changes.size() && changes[i + 1].first == changes[i].first)
      continue;
    MemoryPoint &last = curve.points.back();
    if (last.time == changes[i].first)
      last.bytes = held;
    else if (last.bytes != held)
      curve.points.push_back({changes[i].first, held});
  }
  for (const MemoryPoint &point : curve.points)
    if (point.bytes > curve.peak) {
      curve.peak = point.bytes;
      curve.peakAt = point.time;
    }
  return curve;
}

std::vector<MemoryCurve> CurveBuilder::finish() {
  std::vector<MemoryCurve> curves;
  for (int32_t rank = 0; rank < plan.numRanks(); ++rank)
    curves.push_back(curveOf(rank));
  return curves;
}

} // namespace

std::vector<MemoryCurve> memoryCurves(const Plan &plan,
                                      const std::vector<Record> &records) {
  CurveBuilder builder(plan);
  for (const Record &record : records)
    builder.add(record);
  return builder.finish();
}

} // namespace takt::rt
