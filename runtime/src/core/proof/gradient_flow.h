//===- gradient_flow.h - how gradients pass through kernels -----*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// What the chain rule makes of each kernel kind, by the places of its operands
// (plan.h).
//
//===----------------------------------------------------------------------===//
#pragma once

#include "takt-rt/core/plan.h"

#include <cstddef>
#include <vector>

namespace takt::rt::proof {

constexpr size_t kNoOperand = ~size_t(0);

/// A kernel of the forward pass.
struct ForwardFlow {
  bool known = false;         ///< false: no layer's forward
  std::vector<size_t> inputs; ///< those that have a gradient
  size_t output = kNoOperand;
  /// The gradient of the output is that of each input; no kernel makes it.
  bool handsOn = false;
  bool isLoss = false;
};
ForwardFlow forwardFlow(const Kernel &kernel);

/// A kernel that makes a layer's gradients.
struct BackwardFlow {
  bool known = false; ///< false: it moves or adds gradients, or none at all
  KernelKind forward = KernelKind::Profiled; ///< the layer's kernel forward
  size_t taken = kNoOperand; ///< gradient of the output; none of a loss
  size_t made = kNoOperand;  ///< gradient of the input
};
BackwardFlow backwardFlow(KernelKind kind);

} // namespace takt::rt::proof
