//===- loss.cpp - losses --------------------------------------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Cross-entropy over the last axis and the mean squared error. The sum over a
// micro-batch is taken in double whatever the scalar: it is what people read
// and what layouts are compared by.
//
//===----------------------------------------------------------------------===//

#include "families.h"
#include "vector_math.h"

namespace takt::rt::host {

namespace {
template <typename T>
TAKT_CLONES T logSumExp(const T *row, int64_t classes) {
  T top = laneMax(row, classes);
  T sum = laneSum<T>(classes, [&](int64_t j) { return expOf(row[j] - top); });
  return top + std::log(sum);
}

template <typename T>
TAKT_CLONES void softmaxGrad(const T *logits, T lse, T scale, T *grad,
                             int64_t classes) {
  for (int64_t j = 0; j < classes; ++j)
    grad[j] = scale * expOf(logits[j] - lse);
}

template <typename T>
TAKT_CLONES double squares(const T *x, const T *target, int64_t n) {
  return laneSum<double>(n, [&](int64_t i) {
    double d = double(x[i]) - double(target[i]);
    return d * d;
  });
}

template <typename T>
TAKT_CLONES void squaresGrad(const T *x, const T *target, T factor, T *dx,
                             int64_t n) {
  for (int64_t i = 0; i < n; ++i)
    dx[i] = factor * (x[i] - target[i]);
}
} // namespace

template <typename T>
void crossEntropyForward(const KernelCall<T> &call) {
  int64_t rows = call.dim(0), classes = call.dim(1);
  const T *logits = call.operand(0);
  const int32_t *targets = call.ids(1);
  T *lse = call.operand(2);
  checkIds(targets, rows, classes, "class target");
  double sum = 0;
  for (int64_t i = 0; i < rows; ++i, logits += classes) {
    lse[i] = logSumExp(logits, classes);
    sum += double(lse[i]) - double(logits[targets[i]]);
  }
  call.operand(3)[0] = static_cast<T>(call.kernel.scalars[0] * sum);
}
TAKT_INSTANTIATE(crossEntropyForward)

template <typename T>
void crossEntropyInputGrad(const KernelCall<T> &call) {
  int64_t rows = call.dim(0), classes = call.dim(1);
  const T *logits = call.operand(0);
  const int32_t *targets = call.ids(1);
  const T *lse = call.operand(2);
  T *grad = call.operand(3);
  T scale = call.scalar(0);
  checkIds(targets, rows, classes, "class target");
  for (int64_t i = 0; i < rows; ++i, logits += classes, grad += classes) {
    softmaxGrad(logits, lse[i], scale, grad, classes);
    grad[targets[i]] -= scale;
  }
}
TAKT_INSTANTIATE(crossEntropyInputGrad)

template <typename T>
void mseForward(const KernelCall<T> &call) {
  double sum = squares<T>(call.operand(0), call.operand(1), call.dim(0));
  call.operand(2)[0] = static_cast<T>(call.kernel.scalars[0] * sum);
}
TAKT_INSTANTIATE(mseForward)

template <typename T>
void mseInputGrad(const KernelCall<T> &call) {
  squaresGrad<T>(call.operand(0), call.operand(1),
                 static_cast<T>(2 * call.kernel.scalars[0]), call.operand(2),
                 call.dim(0));
}
TAKT_INSTANTIATE(mseInputGrad)

} // namespace takt::rt::host
