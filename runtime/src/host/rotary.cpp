//===- rotary.cpp - rotary positions --------------------------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Turns pairs of elements of queries and keys by an angle that grows with the
// position (Su et al. 2021, arXiv 2104.09864), so that scores depend on the
// distance of positions. Element j of a head goes with element j + headDim/2.
// The gradient is turned back by the same angle. Angles are taken in double:
// late positions have large ones.
//
//===----------------------------------------------------------------------===//

#include "families.h"

#include <algorithm>
#include <cmath>

namespace takt::rt::host {

namespace {
constexpr int64_t kPairs = 64; // whose angles are kept at once

template <typename T>
void rotate(const KernelCall<T> &call, double direction) {
  const T *x = call.operand(0);
  T *y = call.operand(1);
  const int64_t samples = call.dim(0), positions = call.dim(1);
  const int64_t heads = call.dim(2), headDim = call.dim(3);
  const int64_t columns = call.dim(4), half = headDim / 2;
  const double theta = call.kernel.scalars[0];
  T cosines[kPairs], sines[kPairs];
  for (int64_t first = 0; first < half; first += kPairs) {
    const int64_t pairs = std::min(kPairs, half - first);
    double rates[kPairs];
    for (int64_t j = 0; j < pairs; ++j)
      rates[j] = std::pow(theta, -2.0 * double(first + j) / double(headDim));
    for (int64_t t = 0; t < positions; ++t) {
      for (int64_t j = 0; j < pairs; ++j) {
        const double angle = double(t) * rates[j];
        cosines[j] = T(std::cos(angle));
        sines[j] = T(direction * std::sin(angle));
      }
      for (int64_t s = 0; s < samples; ++s)
        for (int64_t h = 0; h < heads; ++h) {
          const int64_t at =
              (s * positions + t) * columns + h * headDim + first;
          const T *a = x + at, *b = a + half;
          T *c = y + at, *d = c + half;
          for (int64_t j = 0; j < pairs; ++j) {
            c[j] = a[j] * cosines[j] - b[j] * sines[j];
            d[j] = b[j] * cosines[j] + a[j] * sines[j];
          }
        }
    }
  }
  const int64_t turned = heads * headDim;
  for (int64_t row = 0; row < samples * positions; ++row)
    std::copy(x + row * columns + turned, x + (row + 1) * columns,
              y + row * columns + turned);
}
} // namespace

template <typename T>
void rotaryForward(const KernelCall<T> &call) {
  rotate<T>(call, 1);
}
TAKT_INSTANTIATE(rotaryForward)

template <typename T>
void rotaryInputGrad(const KernelCall<T> &call) {
  rotate<T>(call, -1);
}
TAKT_INSTANTIATE(rotaryInputGrad)

} // namespace takt::rt::host
