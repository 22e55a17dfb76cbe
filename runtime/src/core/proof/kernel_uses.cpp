//===- kernel_uses.cpp - how kernels use their operands ---------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// One row a kernel kind, in the order of the operands in plan.h.
//
//===----------------------------------------------------------------------===//
#include "touches.h"

namespace takt::rt::proof {

static const char *fixedUses(const Kernel &kernel) {
  bool hasBias = kernel.dims.size() > 3 && kernel.dims[3] != 0;
  switch (kernel.kind) {
  case KernelKind::EmbeddingForward:
  case KernelKind::PositionForward:
  case KernelKind::LinearInputGrad:
  case KernelKind::GeluInputGrad:
  case KernelKind::GeluTanhInputGrad:
  case KernelKind::GluInputGrad:
  case KernelKind::ReluInputGrad:
  case KernelKind::AddForward:
  case KernelKind::MseForward:
  case KernelKind::MseInputGrad:
    return "rrw";
  case KernelKind::EmbeddingWeightGrad:
    return "rra";
  case KernelKind::PositionWeightGrad:
  case KernelKind::Accumulate:
    return "ra";
  case KernelKind::LinearForward:
    return hasBias ? "rrrw" : "rrw";
  case KernelKind::LinearWeightGrad:
    return hasBias ? "rraa" : "rra";
  case KernelKind::LayerNormForward:
    return "rrrwww";
  case KernelKind::LayerNormInputGrad:
    return "rrrrrw";
  case KernelKind::LayerNormWeightGrad:
    return "rrrraa";
  case KernelKind::AttentionForward:
    return "rwww";
  case KernelKind::AttentionInputGrad:
    return "rrrrww";
  case KernelKind::RmsNormForward:
    return "rrww";
  case KernelKind::RmsNormInputGrad:
    return "rrrrw";
  case KernelKind::RmsNormWeightGrad:
    return "rrra";
  case KernelKind::GeluForward:
  case KernelKind::GeluTanhForward:
  case KernelKind::GluForward:
  case KernelKind::RotaryForward:
  case KernelKind::RotaryInputGrad:
  case KernelKind::ReluForward:
  case KernelKind::Copy:
    return "rw";
  case KernelKind::CrossEntropyForward:
    return "rrww";
  case KernelKind::CrossEntropyInputGrad:
    return "rrrw";
  case KernelKind::SgdUpdate:
    return "aa";
  case KernelKind::MomentumUpdate:
    return "aaa";
  case KernelKind::AdamWUpdate:
    return "aaaa";
  case KernelKind::Zero:
    return "w";
  case KernelKind::Profiled:
    return "";
  }
  return "";
}

std::string operandUses(const Role &role, const Kernel &kernel) {
  if (kernel.kind != KernelKind::Profiled)
    return fixedUses(kernel);
  std::string uses;
  for (size_t i = 0; namesUses(kernel) && i < kernel.operands.size(); ++i) {
    bool passing = Touches::isPassing(role.pools[kernel.operands[i].pool].kind);
    bool reads = static_cast<int64_t>(i) < kernel.dims[0];
    uses += reads ? 'r' : passing ? 'w' : 'a';
  }
  return uses;
}

} // namespace takt::rt::proof
