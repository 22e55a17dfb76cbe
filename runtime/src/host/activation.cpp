//===- activation.cpp - element-wise kernels ------------------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// GELU in its exact form x Phi(x) (Hendrycks and Gimpel 2016, arXiv
// 1606.08415), ReLU, sums and copies.
//
//===----------------------------------------------------------------------===//

#include "families.h"
#include "vector_math.h"

#include <cstring>

namespace takt::rt::host {

namespace {
template <typename T>
TAKT_CLONES void gelu(const T *x, T *y, int64_t n) {
  for (int64_t i = 0; i < n; ++i)
    y[i] = x[i] * normalCdf(x[i], expOf(T(-0.5) * x[i] * x[i]));
}

// d/dx x Phi(x) = Phi(x) + x phi(x)
template <typename T>
TAKT_CLONES void geluGrad(const T *x, const T *dy, T *dx, int64_t n) {
  constexpr T kInvSqrt2Pi = T(0.39894228040143267794);
  for (int64_t i = 0; i < n; ++i) {
    T e = expOf(T(-0.5) * x[i] * x[i]);
    dx[i] = dy[i] * (normalCdf(x[i], e) + x[i] * e * kInvSqrt2Pi);
  }
}

template <typename T>
TAKT_CLONES void relu(const T *x, T *y, int64_t n) {
  for (int64_t i = 0; i < n; ++i)
    y[i] = x[i] < T(0) ? T(0) : x[i];
}

template <typename T>
TAKT_CLONES void reluGrad(const T *y, const T *dy, T *dx, int64_t n) {
  for (int64_t i = 0; i < n; ++i)
    dx[i] = y[i] > T(0) ? dy[i] : T(0);
}

template <typename T>
TAKT_CLONES void add(const T *a, const T *b, T *y, int64_t n) {
  for (int64_t i = 0; i < n; ++i)
    y[i] = a[i] + b[i];
}
} // namespace

template <typename T>
void geluForward(const KernelCall<T> &call) {
  gelu<T>(call.operand(0), call.operand(1), call.dim(0));
}
TAKT_INSTANTIATE(geluForward)

template <typename T>
void geluInputGrad(const KernelCall<T> &call) {
  geluGrad<T>(call.operand(0), call.operand(1), call.operand(2), call.dim(0));
}
TAKT_INSTANTIATE(geluInputGrad)

template <typename T>
void reluForward(const KernelCall<T> &call) {
  relu<T>(call.operand(0), call.operand(1), call.dim(0));
}
TAKT_INSTANTIATE(reluForward)

template <typename T>
void reluInputGrad(const KernelCall<T> &call) {
  reluGrad<T>(call.operand(0), call.operand(1), call.operand(2), call.dim(0));
}
TAKT_INSTANTIATE(reluInputGrad)

template <typename T>
void addForward(const KernelCall<T> &call) {
  add<T>(call.operand(0), call.operand(1), call.operand(2), call.dim(0));
}
TAKT_INSTANTIATE(addForward)

template <typename T>
void accumulate(const KernelCall<T> &call) {
  add<T>(call.operand(1), call.operand(0), call.operand(1), call.dim(0));
}
TAKT_INSTANTIATE(accumulate)

template <typename T>
void copyElements(const KernelCall<T> &call) {
  std::memmove(call.operand(1), call.operand(0), call.dim(0) * sizeof(T));
}
TAKT_INSTANTIATE(copyElements)

template <typename T>
void zeroElements(const KernelCall<T> &call) {
  std::memset(call.operand(0), 0, call.dim(0) * sizeof(T));
}
TAKT_INSTANTIATE(zeroElements)

} // namespace takt::rt::host
