//===- rms_norm.cpp - normalisation by the root mean square ---------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// y = gain x / sqrt(mean(x^2) + eps) over the last axis (Zhang and Sennrich
// 2019, arXiv 1910.07467).
//
//===----------------------------------------------------------------------===//

#include "families.h"
#include "vector_math.h"

namespace takt::rt::host {

namespace {
template <typename T>
TAKT_CLONES void forward(const T *x, const T *gain, T *y, T *rstds,
                         int64_t rows, int64_t width, T eps) {
  for (int64_t i = 0; i < rows; ++i, x += width, y += width) {
    T square =
        laneSum<T>(width, [&](int64_t j) { return x[j] * x[j]; }) / T(width);
    T rstd = T(1) / std::sqrt(square + eps);
    for (int64_t j = 0; j < width; ++j)
      y[j] = x[j] * rstd * gain[j];
    rstds[i] = rstd;
  }
}

// With g = dy gain and n = x rstd: dx = rstd (g - n mean(g n)).
template <typename T>
TAKT_CLONES void inputGrad(const T *x, const T *gain, const T *rstds,
                           const T *dy, T *dx, int64_t rows, int64_t width) {
  for (int64_t i = 0; i < rows; ++i, x += width, dy += width, dx += width) {
    T rstd = rstds[i];
    T meanGn = laneSum<T>(width,
                          [&](int64_t j) {
                            return dy[j] * gain[j] * (x[j] * rstd);
                          }) /
               T(width);
    for (int64_t j = 0; j < width; ++j)
      dx[j] = rstd * (dy[j] * gain[j] - x[j] * rstd * meanGn);
  }
}

template <typename T>
TAKT_CLONES void weightGrad(const T *x, const T *rstds, const T *dy, T *dgain,
                            int64_t rows, int64_t width) {
  for (int64_t i = 0; i < rows; ++i, x += width, dy += width)
    for (int64_t j = 0; j < width; ++j)
      dgain[j] += dy[j] * (x[j] * rstds[i]);
}
} // namespace

template <typename T>
void rmsNormForward(const KernelCall<T> &call) {
  forward<T>(call.operand(0), call.operand(1), call.operand(2), call.operand(3),
             call.dim(0), call.dim(1), call.scalar(0));
}
TAKT_INSTANTIATE(rmsNormForward)

template <typename T>
void rmsNormInputGrad(const KernelCall<T> &call) {
  inputGrad<T>(call.operand(0), call.operand(1), call.operand(2),
               call.operand(3), call.operand(4), call.dim(0), call.dim(1));
}
TAKT_INSTANTIATE(rmsNormInputGrad)

template <typename T>
void rmsNormWeightGrad(const KernelCall<T> &call) {
  weightGrad<T>(call.operand(0), call.operand(1), call.operand(2),
                call.operand(3), call.dim(0), call.dim(1));
}
TAKT_INSTANTIATE(rmsNormWeightGrad)

} // namespace takt::rt::host
