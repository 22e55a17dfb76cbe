//===- touch_kernels.cpp - what the kernels of a call touch -----*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Kernel by kernel, as one call runs them. Layers known by costs only have
// kernels without operands, whose buffers follow from their places.
//
//===----------------------------------------------------------------------===//
#include "touch_builder.h"

#include "takt-rt/core/names.h"

#include "../check.h"

#include <fmt/format.h>

#include <algorithm>

namespace takt::rt::proof {

void TouchBuilder::read(Row &row, const BufferRef &ref, BufferId id,
                        bool adds) {
  auto [begin, end] = rangeOf(ref);
  bool passing = Touches::isPassing(role.pools[ref.pool].kind);
  for (uint32_t s = begin; s < end; ++s) {
    Cell &cell = row[s];
    cell.adds |= adds;
    // A part that the procedure itself wrote is checked here and now.
    BufferId held = cell.writes  ? cell.wroteAs
                    : cell.reads ? cell.readAs
                                 : id;
    if (passing && held != id && held != kAnyBuffer && id != kAnyBuffer &&
        !out.firstFault)
      out.firstFault = KernelFault{
          0, fmt::format("reads {} bytes at {} of pool {} that were last {} "
                         "as another buffer",
                         ref.bytes, ref.offset, quoted(role.pools[ref.pool].name),
                         cell.writes ? "written" : "read")};
    if (cell.writes)
      continue;
    cell.reads = true;
    if (cell.readAs == kAnyBuffer)
      cell.readAs = id;
  }
}

void TouchBuilder::write(Row &row, const BufferRef &ref, BufferId id) {
  auto [begin, end] = rangeOf(ref);
  for (uint32_t s = begin; s < end; ++s) {
    Cell &cell = row[s];
    cell.writes = true;
    cell.wroteAs = id;
  }
}

/// No operand may lie over one that the kernel writes.
bool TouchBuilder::overlaps(const Kernel &kernel) const {
  const std::string uses = operandUses(role, kernel);
  for (size_t i = 0; i < uses.size(); ++i)
    for (size_t j = 0; j < kernel.operands.size(); ++j) {
      const BufferRef &a = kernel.operands[i], &b = kernel.operands[j];
      if (i != j && uses[i] != 'r' && a.pool == b.pool &&
          a.offset < b.offset + b.bytes && b.offset < a.offset + a.bytes)
        return true;
    }
  return false;
}

/// A kernel that names no buffers, by its place among the stage's layers.
void TouchBuilder::profiled(const Kernel &kernel, const Procedure &procedure,
                            Row &row) {
  int32_t first = kernel.layer, last = kernel.layer;
  for (const Procedure &other : role.procedures)
    if (other.stage == procedure.stage && other.phase == Phase::Forward)
      for (const Kernel &k : other.kernels) {
        first = std::min(first, k.layer);
        last = std::max(last, k.layer);
      }
  auto wholePools = [&](PoolKind kind, auto act) {
    for (size_t p = 0; p < role.pools.size(); ++p)
      if (role.pools[p].kind == kind)
        act(BufferRef{static_cast<uint16_t>(p), 0, role.pools[p].slotBytes});
  };
  auto reads = [&](PoolKind kind) {
    wholePools(kind,
               [&](const BufferRef &r) { read(row, r, kAnyBuffer, false); });
  };
  // What came in fills its buffer, not the rest of an aligned slot.
  auto readsArrived = [&](PoolKind kind) {
    auto readIn = [&](const BufferRef &r) {
      if (role.pools[r.pool].kind == kind)
        read(row, r, kAnyBuffer, false);
    };
    for (const Endpoint &end : role.channels)
      readIn(end.buffer);
    for (const LoadField &load : role.loads)
      readIn(load.buffer);
  };
  auto writes = [&](PoolKind kind) {
    wholePools(kind, [&](const BufferRef &r) { write(row, r, kAnyBuffer); });
  };
  switch (kernel.phase) {
  case Phase::Forward:
    if (kernel.layer == first) {
      readsArrived(PoolKind::Input);
      readsArrived(PoolKind::Batch);
    }
    reads(PoolKind::Weights);
    writes(PoolKind::Saved);
    writes(PoolKind::Workspace);
    if (kernel.layer == last)
      writes(PoolKind::Output);
    return;
  case Phase::InputGrad:
    reads(PoolKind::Saved);
    if (kernel.layer == last)
      readsArrived(PoolKind::OutputGrad);
    reads(PoolKind::Weights);
    writes(PoolKind::Saved);
    writes(PoolKind::Workspace);
    if (kernel.layer == first)
      writes(PoolKind::InputGrad);
    return;
  case Phase::WeightGrad:
  case Phase::Backward:
    reads(PoolKind::Saved);
    if (kernel.layer == first)
      readsArrived(PoolKind::Input);
    if (kernel.layer == last)
      readsArrived(PoolKind::OutputGrad);
    break;
  case Phase::Update:
    break;
  }
  addUnnamed(procedure, kernel.phase == Phase::Update, row);
}

/// Gradients without a parameter's buffer are added to by the kernels without
/// operands: by a piece of a procedure those of its bucket.
void TouchBuilder::addUnnamed(const Procedure &procedure, bool updates,
                              Row &row) {
  int32_t piece = pieceOf(procedure);
  std::pair<uint32_t, uint32_t> bucket{0, out.stretches.size()};
  if (piece >= 0 && static_cast<size_t>(piece) < role.groups.size())
    bucket = rangeOf(role.groups[piece].buffer);
  for (uint32_t s = 0; s < out.stretches.size(); ++s) {
    PoolKind kind = role.pools[out.stretches[s].pool].kind;
    if (!unnamed[s] || Touches::isPassing(kind) ||
        (kind != PoolKind::Gradients && !updates) ||
        s < bucket.first || s >= bucket.second)
      continue;
    Cell &cell = row[s];
    cell.reads = cell.writes = cell.adds = true;
  }
}

void TouchBuilder::procedure(size_t index, Row &row) {
  const Procedure &code = role.procedures[index];
  // A bucket may hold nothing of such a layer in its own piece, but the whole
  // procedure of the other micro-batches adds to all.
  auto isProfiledSum = [](const Kernel &kernel) {
    return kernel.kind == KernelKind::Profiled &&
           kernel.phase == Phase::WeightGrad && !namesUses(kernel);
  };
  bool sums = false;
  for (const Procedure &other : role.procedures)
    sums |= other.stage == code.stage &&
            std::any_of(other.kernels.begin(), other.kernels.end(),
                        isProfiledSum);
  if (sums && pieceOf(code) >= 0)
    addUnnamed(code, false, row);
  for (const Kernel &kernel : code.kernels) {
    bool clean = !out.firstFault;
    if (kernel.kind == KernelKind::Profiled && !namesUses(kernel))
      profiled(kernel, code, row);
    const std::string uses = operandUses(role, kernel);
    for (size_t i = 0; i < uses.size(); ++i)
      if (uses[i] != 'w')
        read(row, kernel.operands[i], idOf(kernel.operands[i]), uses[i] == 'a');
    for (size_t i = 0; i < uses.size(); ++i)
      if (uses[i] != 'r')
        write(row, kernel.operands[i], idOf(kernel.operands[i]));
    if (overlaps(kernel) && !out.firstFault)
      out.firstFault = KernelFault{index, "writes over one of its operands"};
    if (clean && out.firstFault) {
      std::string layer = kernel.layer < 0
                              ? ""
                              : " of layer " +
                                    quoted(plan.layers[kernel.layer].name);
      out.firstFault->procedure = index;
      out.firstFault->text = fmt::format("kernel '{}'{} {}",
                                         nameOf(kernel.kind), layer,
                                         out.firstFault->text);
    }
  }
}

} // namespace takt::rt::proof
