//===- activation.cpp - element-wise kernels ------------------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// GELU in its exact form x Phi(x) and in its tanh form (Hendrycks and Gimpel
// 2016, arXiv 1606.08415), ReLU, gated linear units (Shazeer 2020, arXiv
// 2002.05202), sums and copies.
//
//===----------------------------------------------------------------------===//

#include "families.h"
#include "vector_math.h"

#include <cstring>

namespace takt::rt::host {

namespace {
// Each activation is x m(x); `slope` is its derivative.

template <typename T>
struct Silu {
  static TAKT_INLINE T value(T x) { return x * sigmoid(x); }
  static TAKT_INLINE T slope(T x) {
    T s = sigmoid(x);
    return s + x * (s * (T(1) - s));
  }
};

template <typename T>
struct Gelu {
  static TAKT_INLINE T value(T x) {
    return x * normalCdf(x, expOf(T(-0.5) * x * x));
  }
  // Phi(x) + x phi(x)
  static TAKT_INLINE T slope(T x) {
    constexpr T kInvSqrt2Pi = T(0.39894228040143267794);
    T e = expOf(T(-0.5) * x * x);
    return normalCdf(x, e) + x * e * kInvSqrt2Pi;
  }
};

// (1 + tanh u) / 2 = sigmoid(2 u)
template <typename T>
struct GeluTanh {
  static constexpr T kScale = T(1.59576912160573071176); // 2 sqrt(2 / pi)
  static constexpr T kCube = T(0.044715);
  static TAKT_INLINE T value(T x) {
    return x * sigmoid(kScale * (x + kCube * x * x * x));
  }
  static TAKT_INLINE T slope(T x) {
    T s = sigmoid(kScale * (x + kCube * x * x * x));
    return s + x * (s * (T(1) - s)) * (kScale * (T(1) + T(3) * kCube * x * x));
  }
};

template <typename T, typename Activation>
TAKT_CLONES void activate(const T *x, T *y, int64_t n) {
  for (int64_t i = 0; i < n; ++i)
    y[i] = Activation::value(x[i]);
}

template <typename T, typename Activation>
TAKT_CLONES void activateGrad(const T *x, const T *dy, T *dx, int64_t n) {
  for (int64_t i = 0; i < n; ++i)
    dx[i] = dy[i] * Activation::slope(x[i]);
}

template <typename T, typename Activation>
TAKT_CLONES void gate(const T *x, T *y, int64_t rows, int64_t width) {
  for (int64_t i = 0; i < rows; ++i, x += 2 * width, y += width)
    for (int64_t j = 0; j < width; ++j)
      y[j] = Activation::value(x[j]) * x[width + j];
}

template <typename T, typename Activation>
TAKT_CLONES void gateGrad(const T *x, const T *dy, T *dx, int64_t rows,
                          int64_t width) {
  for (int64_t i = 0; i < rows;
       ++i, x += 2 * width, dy += width, dx += 2 * width) {
    for (int64_t j = 0; j < width; ++j)
      dx[j] = dy[j] * x[width + j] * Activation::slope(x[j]);
    for (int64_t j = 0; j < width; ++j)
      dx[width + j] = dy[j] * Activation::value(x[j]);
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
  activate<T, Gelu<T>>(call.operand(0), call.operand(1), call.dim(0));
}
TAKT_INSTANTIATE(geluForward)

template <typename T>
void geluInputGrad(const KernelCall<T> &call) {
  activateGrad<T, Gelu<T>>(call.operand(0), call.operand(1), call.operand(2),
                           call.dim(0));
}
TAKT_INSTANTIATE(geluInputGrad)

template <typename T>
void geluTanhForward(const KernelCall<T> &call) {
  activate<T, GeluTanh<T>>(call.operand(0), call.operand(1), call.dim(0));
}
TAKT_INSTANTIATE(geluTanhForward)

template <typename T>
void geluTanhInputGrad(const KernelCall<T> &call) {
  activateGrad<T, GeluTanh<T>>(call.operand(0), call.operand(1),
                               call.operand(2), call.dim(0));
}
TAKT_INSTANTIATE(geluTanhInputGrad)

template <typename T>
void gluForward(const KernelCall<T> &call) {
  const T *x = call.operand(0);
  T *y = call.operand(1);
  int64_t rows = call.dim(0), width = call.dim(1);
  if (call.dim(2) == 1)
    gate<T, Silu<T>>(x, y, rows, width);
  else if (call.dim(2) == 2)
    gate<T, Gelu<T>>(x, y, rows, width);
  else
    gate<T, GeluTanh<T>>(x, y, rows, width);
}
TAKT_INSTANTIATE(gluForward)

template <typename T>
void gluInputGrad(const KernelCall<T> &call) {
  const T *x = call.operand(0), *dy = call.operand(1);
  T *dx = call.operand(2);
  int64_t rows = call.dim(0), width = call.dim(1);
  if (call.dim(2) == 1)
    gateGrad<T, Silu<T>>(x, dy, dx, rows, width);
  else if (call.dim(2) == 2)
    gateGrad<T, Gelu<T>>(x, dy, dx, rows, width);
  else
    gateGrad<T, GeluTanh<T>>(x, dy, dx, rows, width);
}
TAKT_INSTANTIATE(gluInputGrad)

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
