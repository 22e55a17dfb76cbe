//===- families.h - entry points of the kernel families ---------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// One function per kernel kind, defined in the file of its family for float and
// double. Operands and dims are those of the contract in core/plan.h.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "takt-rt/host/kernels.h"

namespace takt::rt::host {

/// A kernel with its operands' addresses.
template <typename T>
struct KernelCall {
  const Kernel &kernel;
  const SlotView<T> &slots;
  const RunArgs &args;

  T *operand(int i) const { return slots.elements(kernel.operands[i]); }
  const int32_t *ids(int i) const { return slots.ids(kernel.operands[i]); }
  int64_t dim(int i) const { return kernel.dims[i]; }
  T scalar(int i) const { return static_cast<T>(kernel.scalars[i]); }
};

#define TAKT_KERNEL(name)                                                      \
  template <typename T>                                                        \
  void name(const KernelCall<T> &call);                                        \
  extern template void name<float>(const KernelCall<float> &);                 \
  extern template void name<double>(const KernelCall<double> &);

/// To stand in the family's file after the definition.
#define TAKT_INSTANTIATE(name)                                                 \
  template void name<float>(const KernelCall<float> &);                        \
  template void name<double>(const KernelCall<double> &);

TAKT_KERNEL(embeddingForward)
TAKT_KERNEL(embeddingWeightGrad)
TAKT_KERNEL(positionForward)
TAKT_KERNEL(positionWeightGrad)
TAKT_KERNEL(linearForward)
TAKT_KERNEL(linearInputGrad)
TAKT_KERNEL(linearWeightGrad)
TAKT_KERNEL(layerNormForward)
TAKT_KERNEL(layerNormInputGrad)
TAKT_KERNEL(layerNormWeightGrad)
TAKT_KERNEL(rmsNormForward)
TAKT_KERNEL(rmsNormInputGrad)
TAKT_KERNEL(rmsNormWeightGrad)
TAKT_KERNEL(rotaryForward)
TAKT_KERNEL(rotaryInputGrad)
TAKT_KERNEL(attentionForward)
TAKT_KERNEL(attentionInputGrad)
TAKT_KERNEL(geluForward)
TAKT_KERNEL(geluInputGrad)
TAKT_KERNEL(geluTanhForward)
TAKT_KERNEL(geluTanhInputGrad)
TAKT_KERNEL(gluForward)
TAKT_KERNEL(gluInputGrad)
TAKT_KERNEL(reluForward)
TAKT_KERNEL(reluInputGrad)
TAKT_KERNEL(addForward)
TAKT_KERNEL(accumulate)
TAKT_KERNEL(copyElements)
TAKT_KERNEL(zeroElements)
TAKT_KERNEL(crossEntropyForward)
TAKT_KERNEL(crossEntropyInputGrad)
TAKT_KERNEL(mseForward)
TAKT_KERNEL(mseInputGrad)
TAKT_KERNEL(sgdUpdate)
TAKT_KERNEL(momentumUpdate)
TAKT_KERNEL(adamWUpdate)

#undef TAKT_KERNEL

/// Throws `Error` (BadInput) unless all n ids lie in [0, bound).
void checkIds(const int32_t *ids, int64_t n, int64_t bound, const char *what);

} // namespace takt::rt::host
