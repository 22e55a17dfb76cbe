//===- memory.cpp - memory in use over a step -------------------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// The curves are those of the analysis; what pictures add is which pools an
// instruction touches.
//
//===----------------------------------------------------------------------===//
#include "takt-rt/trace/memory.h"

#include <algorithm>
#include <utility>

namespace takt::rt {

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
  std::vector<std::vector<MemoryPoint>> curves;
  for (MemoryCurve &curve : memoryCurves(plan, run))
    curves.push_back(std::move(curve.points));
  return curves;
}

Bytes peakOf(const std::vector<MemoryPoint> &curve) {
  Bytes peak = 0;
  for (const MemoryPoint &point : curve)
    peak = std::max(peak, point.bytes);
  return peak;
}

} // namespace takt::rt
