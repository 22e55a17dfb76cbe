//===- layer_norm.cpp - layer normalisation -------------------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Layer normalisation (Ba, Kiros and Hinton 2016, arXiv 1607.06450) over the
// last axis, with gain and bias. The variance is taken around the mean in a
// second pass: one pass over squares loses digits.
//
//===----------------------------------------------------------------------===//

#include "families.h"
#include "vector_math.h"

namespace takt::rt::host {

namespace {
template <typename T>
TAKT_CLONES void forward(const T *x, const T *gain, const T *bias, T *y,
                         T *means, T *rstds, int64_t rows, int64_t width,
                         T eps) {
  for (int64_t i = 0; i < rows; ++i, x += width, y += width) {
    T mean = laneSum<T>(width, [&](int64_t j) { return x[j]; }) / T(width);
    T variance = laneSum<T>(width,
                            [&](int64_t j) {
                              T d = x[j] - mean;
                              return d * d;
                            }) /
                 T(width);
    T rstd = T(1) / std::sqrt(variance + eps);
    for (int64_t j = 0; j < width; ++j)
      y[j] = (x[j] - mean) * rstd * gain[j] + bias[j];
    means[i] = mean;
    rstds[i] = rstd;
  }
}

// With g = dy gain and n = (x - mean) rstd:
// dx = rstd (g - mean(g) - n mean(g n)).
template <typename T>
TAKT_CLONES void inputGrad(const T *x, const T *gain, const T *means,
                           const T *rstds, const T *dy, T *dx, int64_t rows,
                           int64_t width) {
  for (int64_t i = 0; i < rows; ++i, x += width, dy += width, dx += width) {
    T mean = means[i], rstd = rstds[i];
    T meanG = laneSum<T>(width, [&](int64_t j) { return dy[j] * gain[j]; }) /
              T(width);
    T meanGn = laneSum<T>(width,
                          [&](int64_t j) {
                            return dy[j] * gain[j] * ((x[j] - mean) * rstd);
                          }) /
               T(width);
    for (int64_t j = 0; j < width; ++j)
      dx[j] = rstd * (dy[j] * gain[j] - meanG - (x[j] - mean) * rstd * meanGn);
  }
}

template <typename T>
TAKT_CLONES void weightGrad(const T *x, const T *means, const T *rstds,
                            const T *dy, T *dgain, T *dbias, int64_t rows,
                            int64_t width) {
  for (int64_t i = 0; i < rows; ++i, x += width, dy += width) {
    T mean = means[i], rstd = rstds[i];
    for (int64_t j = 0; j < width; ++j)
      dgain[j] += dy[j] * ((x[j] - mean) * rstd);
    for (int64_t j = 0; j < width; ++j)
      dbias[j] += dy[j];
  }
}
} // namespace

template <typename T>
void layerNormForward(const KernelCall<T> &call) {
  forward<T>(call.operand(0), call.operand(1), call.operand(2), call.operand(3),
             call.operand(4), call.operand(5), call.dim(0), call.dim(1),
             call.scalar(0));
}
TAKT_INSTANTIATE(layerNormForward)

template <typename T>
void layerNormInputGrad(const KernelCall<T> &call) {
  inputGrad<T>(call.operand(0), call.operand(1), call.operand(2),
               call.operand(3), call.operand(4), call.operand(5), call.dim(0),
               call.dim(1));
}
TAKT_INSTANTIATE(layerNormInputGrad)

template <typename T>
void layerNormWeightGrad(const KernelCall<T> &call) {
  weightGrad<T>(call.operand(0), call.operand(1), call.operand(2),
                call.operand(3), call.operand(4), call.operand(5), call.dim(0),
                call.dim(1));
}
TAKT_INSTANTIATE(layerNormWeightGrad)

} // namespace takt::rt::host
