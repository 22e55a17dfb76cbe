//===- gradient_flow.cpp - how gradients pass through kernels ---*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// One row a kernel kind.
//
//===----------------------------------------------------------------------===//
#include "gradient_flow.h"

namespace takt::rt::proof {

ForwardFlow forwardFlow(const Kernel &kernel) {
  switch (kernel.kind) {
  case KernelKind::EmbeddingForward:
    return {true, {}, 2};
  case KernelKind::PositionForward:
    return {true, {0}, 2, true};
  case KernelKind::LinearForward:
    return {true, {0}, kernel.operands.size() - 1};
  case KernelKind::LayerNormForward:
    return {true, {0}, 3};
  case KernelKind::RmsNormForward:
    return {true, {0}, 2};
  case KernelKind::AttentionForward:
  case KernelKind::RotaryForward:
  case KernelKind::GeluForward:
  case KernelKind::GeluTanhForward:
  case KernelKind::GluForward:
  case KernelKind::ReluForward:
    return {true, {0}, 1};
  case KernelKind::AddForward:
    return {true, {0, 1}, 2, true};
  case KernelKind::Copy:
    return {true, {0}, 1, true};
  case KernelKind::CrossEntropyForward:
    return {true, {0}, 3, false, true};
  case KernelKind::MseForward:
    return {true, {0}, 2, false, true};
  default:
    return {};
  }
}

BackwardFlow backwardFlow(KernelKind kind) {
  switch (kind) {
  case KernelKind::EmbeddingWeightGrad:
    return {true, KernelKind::EmbeddingForward, 1};
  case KernelKind::PositionWeightGrad:
    return {true, KernelKind::PositionForward, 0};
  case KernelKind::LinearWeightGrad:
    return {true, KernelKind::LinearForward, 1};
  case KernelKind::LayerNormWeightGrad:
    return {true, KernelKind::LayerNormForward, 3};
  case KernelKind::RmsNormWeightGrad:
    return {true, KernelKind::RmsNormForward, 2};
  case KernelKind::LinearInputGrad:
    return {true, KernelKind::LinearForward, 0, 2};
  case KernelKind::LayerNormInputGrad:
    return {true, KernelKind::LayerNormForward, 4, 5};
  case KernelKind::AttentionInputGrad:
    return {true, KernelKind::AttentionForward, 3, 4};
  case KernelKind::RmsNormInputGrad:
    return {true, KernelKind::RmsNormForward, 3, 4};
  case KernelKind::RotaryInputGrad:
    return {true, KernelKind::RotaryForward, 0, 1};
  case KernelKind::GeluTanhInputGrad:
    return {true, KernelKind::GeluTanhForward, 1, 2};
  case KernelKind::GluInputGrad:
    return {true, KernelKind::GluForward, 1, 2};
  case KernelKind::GeluInputGrad:
    return {true, KernelKind::GeluForward, 1, 2};
  case KernelKind::ReluInputGrad:
    return {true, KernelKind::ReluForward, 1, 2};
  case KernelKind::CrossEntropyInputGrad:
    return {true, KernelKind::CrossEntropyForward, kNoOperand, 3};
  case KernelKind::MseInputGrad:
    return {true, KernelKind::MseForward, kNoOperand, 2};
  default:
    return {};
  }
}

} // namespace takt::rt::proof
