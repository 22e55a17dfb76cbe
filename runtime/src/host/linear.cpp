//===- linear.cpp - linear layers -----------------------------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// y = x W^T + b and its two gradients, as matrix products. Weight gradients are
// added to the accumulator by the product itself (beta = 1), in the order of
// the calls.
//
//===----------------------------------------------------------------------===//

#include "blas.h"
#include "families.h"
#include "vector_math.h"

namespace takt::rt::host {

namespace {
template <typename T>
TAKT_CLONES void addBias(T *y, const T *bias, int64_t rows, int64_t width) {
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < width; ++j)
      y[i * width + j] += bias[j];
}

template <typename T>
TAKT_CLONES void sumRows(const T *dy, T *db, int64_t rows, int64_t width) {
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < width; ++j)
      db[j] += dy[i * width + j];
}
} // namespace

template <typename T>
void linearForward(const KernelCall<T> &call) {
  int64_t rows = call.dim(0), in = call.dim(1), out = call.dim(2);
  bool hasBias = call.dim(3) != 0;
  T *y = call.operand(hasBias ? 3 : 2);
  gemm(Transpose::No, Transpose::Yes, rows, out, in, T(1), call.operand(0), in,
       call.operand(1), in, T(0), y, out);
  if (hasBias)
    addBias(y, call.operand(2), rows, out);
}
TAKT_INSTANTIATE(linearForward)

template <typename T>
void linearInputGrad(const KernelCall<T> &call) {
  int64_t rows = call.dim(0), in = call.dim(1), out = call.dim(2);
  gemm(Transpose::No, Transpose::No, rows, in, out, T(1), call.operand(0), out,
       call.operand(1), in, T(0), call.operand(2), in);
}
TAKT_INSTANTIATE(linearInputGrad)

template <typename T>
void linearWeightGrad(const KernelCall<T> &call) {
  int64_t rows = call.dim(0), in = call.dim(1), out = call.dim(2);
  const T *dy = call.operand(1);
  gemm(Transpose::Yes, Transpose::No, out, in, rows, T(1), dy, out,
       call.operand(0), in, T(1), call.operand(2), in);
  if (call.dim(3) != 0)
    sumRows(dy, call.operand(3), rows, out);
}
TAKT_INSTANTIATE(linearWeightGrad)

} // namespace takt::rt::host
