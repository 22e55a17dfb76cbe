//===- kernel_check.cpp - kernels the host refuses ------------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Sizes and counts are the core's business (core/kernel_shape.h); this adds
// what only the host cannot do, and turns both into one sentence for the user.
//
//===----------------------------------------------------------------------===//

#include "takt-rt/host/kernels.h"

#include "takt-rt/core/error.h"
#include "takt-rt/core/kernel_shape.h"
#include "takt-rt/core/names.h"

#include <fmt/format.h>

#include <limits>

namespace takt::rt {

/// True when the rows of q|k|v are longer than BLAS can stride over.
static bool strideTooLong(const Kernel &kernel) {
  if (kernel.kind != KernelKind::AttentionForward &&
      kernel.kind != KernelKind::AttentionInputGrad)
    return false;
  int64_t heads = kernel.dims[2];
  int64_t kvHeads = kernel.dims.size() > 4 ? kernel.dims[4] : heads;
  return heads + 2 * kvHeads >
         std::numeric_limits<int32_t>::max() / kernel.dims[3];
}

std::optional<std::string> checkKernel(const Kernel &kernel) {
  if (kernel.kind == KernelKind::Profiled)
    return "is known by its costs only and cannot be computed";
  try {
    std::vector<Bytes> needs = operandBytes(kernel);
    for (size_t i = 0; i < needs.size(); ++i)
      if (kernel.operands[i].bytes < needs[i])
        return fmt::format("operand {} of kernel '{}' has {} bytes where {} "
                           "are needed",
                           i, nameOf(kernel.kind), kernel.operands[i].bytes,
                           needs[i]);
  } catch (const Error &error) {
    return error.what();
  }
  if (strideTooLong(kernel))
    return fmt::format("kernel '{}' has heads too wide for 32-bit strides",
                       nameOf(kernel.kind));
  return std::nullopt;
}

} // namespace takt::rt
