//===- kernels.h - the kernels of the host device ---------------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Runs one kernel of a procedure on this thread. What each kind computes is the
// contract in core/plan.h; this is its implementation on the scalar `T`: float
// when training, double when gradients are checked.
//
// Results depend on the operands' values only: not on their addresses, not on
// the instruction set of the machine beyond what the BLAS library chooses.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "takt-rt/core/plan.h"

#include <cstddef>
#include <optional>
#include <string>

namespace takt::rt {

/// Turns a `BufferRef` into an address in an arena, for one micro-batch.
///
/// A plan counts bytes of 4-byte elements. For `T = double` every offset is
/// doubled, so that the arena takes twice `Role::arenaBytes` and float buffers
/// become double buffers; int32 buffers keep 4-byte elements, packed at the
/// start of their doubled room.
template <typename T>
class SlotView {
public:
  static constexpr Bytes kScale = sizeof(T) / 4;

  SlotView(std::byte *arena, const std::vector<Pool> &pools,
           int32_t microBatch = -1)
      : arena(arena), pools(&pools), microBatch(microBatch) {}

  T *elements(const BufferRef &ref) const {
    return reinterpret_cast<T *>(address(ref));
  }
  int32_t *ids(const BufferRef &ref) const {
    return reinterpret_cast<int32_t *>(address(ref));
  }

private:
  std::byte *address(const BufferRef &ref) const {
    const Pool &pool = (*pools)[ref.pool];
    return arena +
           kScale * (pool.base + pool.slot(microBatch) * pool.slotBytes +
                     ref.offset);
  }

  std::byte *arena;
  const std::vector<Pool> *pools;
  int32_t microBatch;
};

/// What a kernel needs to know of the run beyond its operands.
struct RunArgs {
  double learningRate = 0;
  int64_t step = 0; ///< counted from 0
};

/// Runs a kernel that passed `checkKernel`. Throws `Error` (BadInput) when an
/// id or class target lies outside its table. Never allocates.
template <typename T>
void runKernel(const Kernel &kernel, const SlotView<T> &slots,
               const RunArgs &args);

/// Why the host cannot run a kernel (its layer is known by costs only, the
/// operands do not hold what its dims ask for, ...), or nothing.
std::optional<std::string> checkKernel(const Kernel &kernel);

/// True for the kernels that change a weight by its gradient; their first two
/// operands are {w, g} and dims[0] is the number of elements.
bool isOptimizerKernel(KernelKind kind);

} // namespace takt::rt
