//===- kernels.cpp - from kernel kind to kernel ---------------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// The one switch over all kinds.
//
//===----------------------------------------------------------------------===//

#include "families.h"

#include "takt-rt/core/error.h"
#include "takt-rt/core/names.h"

#include <fmt/format.h>

namespace takt::rt {

template <typename T>
void runKernel(const Kernel &kernel, const SlotView<T> &slots,
               const RunArgs &args) {
  using namespace host;
  KernelCall<T> call{kernel, slots, args};
  switch (kernel.kind) {
  case KernelKind::EmbeddingForward:
    return embeddingForward(call);
  case KernelKind::EmbeddingWeightGrad:
    return embeddingWeightGrad(call);
  case KernelKind::PositionForward:
    return positionForward(call);
  case KernelKind::PositionWeightGrad:
    return positionWeightGrad(call);
  case KernelKind::LinearForward:
    return linearForward(call);
  case KernelKind::LinearInputGrad:
    return linearInputGrad(call);
  case KernelKind::LinearWeightGrad:
    return linearWeightGrad(call);
  case KernelKind::LayerNormForward:
    return layerNormForward(call);
  case KernelKind::LayerNormInputGrad:
    return layerNormInputGrad(call);
  case KernelKind::LayerNormWeightGrad:
    return layerNormWeightGrad(call);
  case KernelKind::RmsNormForward:
    return rmsNormForward(call);
  case KernelKind::RmsNormInputGrad:
    return rmsNormInputGrad(call);
  case KernelKind::RmsNormWeightGrad:
    return rmsNormWeightGrad(call);
  case KernelKind::RotaryForward:
    return rotaryForward(call);
  case KernelKind::RotaryInputGrad:
    return rotaryInputGrad(call);
  case KernelKind::AttentionForward:
    return attentionForward(call);
  case KernelKind::AttentionInputGrad:
    return attentionInputGrad(call);
  case KernelKind::GeluForward:
    return geluForward(call);
  case KernelKind::GeluInputGrad:
    return geluInputGrad(call);
  case KernelKind::GeluTanhForward:
    return geluTanhForward(call);
  case KernelKind::GeluTanhInputGrad:
    return geluTanhInputGrad(call);
  case KernelKind::GluForward:
    return gluForward(call);
  case KernelKind::GluInputGrad:
    return gluInputGrad(call);
  case KernelKind::ReluForward:
    return reluForward(call);
  case KernelKind::ReluInputGrad:
    return reluInputGrad(call);
  case KernelKind::AddForward:
    return addForward(call);
  case KernelKind::Accumulate:
    return accumulate(call);
  case KernelKind::Copy:
    return copyElements(call);
  case KernelKind::CrossEntropyForward:
    return crossEntropyForward(call);
  case KernelKind::CrossEntropyInputGrad:
    return crossEntropyInputGrad(call);
  case KernelKind::MseForward:
    return mseForward(call);
  case KernelKind::MseInputGrad:
    return mseInputGrad(call);
  case KernelKind::SgdUpdate:
    return sgdUpdate(call);
  case KernelKind::MomentumUpdate:
    return momentumUpdate(call);
  case KernelKind::AdamWUpdate:
    return adamWUpdate(call);
  case KernelKind::Zero:
    return zeroElements(call);
  case KernelKind::Profiled:
    break;
  }
  throw Error(
      fmt::format("kernel '{}' cannot be computed", nameOf(kernel.kind)),
      ExitCode::DoesNotFit);
}

template void runKernel<float>(const Kernel &, const SlotView<float> &,
                               const RunArgs &);
template void runKernel<double>(const Kernel &, const SlotView<double> &,
                                const RunArgs &);

bool isOptimizerKernel(KernelKind kind) {
  return kind == KernelKind::SgdUpdate || kind == KernelKind::MomentumUpdate ||
         kind == KernelKind::AdamWUpdate;
}

} // namespace takt::rt
