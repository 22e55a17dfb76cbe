//===- kernel_shape.h - what the operands of a kernel must hold -*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// The sizes behind the comments of `KernelKind`: a device may read and write
// exactly these bytes of each operand, so a plan whose buffers are at least
// this large cannot make it leave the arena.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "takt-rt/core/plan.h"

#include <vector>

namespace takt::rt {

/// Bytes of each operand that the kernel touches, by its `dims`, 4 bytes an
/// element. Throws `Error` if the number of operands, dims or scalars is not
/// that of the kind, a dim is not positive (or above 2^31 - 1 where a
/// matrix product takes it), a scalar is not finite, or a size overflows.
std::vector<Bytes> operandBytes(const Kernel &kernel);

} // namespace takt::rt
