//===- vector_math.h - loops the compiler turns into vectors ----*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Building blocks of the kernels' inner loops.
//
// Sums run over a fixed number of lanes that are then added pairwise, so that
// the order of additions is written down here and does not depend on the vector
// width, which is what makes the vectorised code exact to the bit everywhere
// (the kernels are compiled without fused multiply-add contraction).
//
// exp and the normal distribution exist twice: in float as short polynomials
// that vectorise (error of exp 1e-7 relative, of the distribution 2e-7), in
// double through libm.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

#define TAKT_INLINE inline __attribute__((always_inline))

// Versions of a loop for machines with AVX-512, with AVX2 and for all others,
// chosen when the program starts; sanitizers cannot run that early.
#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) &&                   \
    !defined(__SANITIZE_THREAD__) && !defined(__clang__)
#define TAKT_CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define TAKT_CLONES
#endif

namespace takt::rt::host {

constexpr int kLanes = 16;

/// Adds f(0) ... f(n - 1): element i goes to lane i mod 16, then lanes are
/// added pairwise.
template <typename T, typename F>
TAKT_INLINE T laneSum(int64_t n, F f) {
  T lanes[kLanes] = {};
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes)
    for (int k = 0; k < kLanes; ++k)
      lanes[k] += f(i + k);
  for (int k = 0; i < n; ++i, ++k)
    lanes[k] += f(i);
  for (int width = kLanes / 2; width > 0; width /= 2)
    for (int k = 0; k < width; ++k)
      lanes[k] += lanes[k + width];
  return lanes[0];
}

/// Largest of x[0] ... x[n - 1]; n > 0.
template <typename T>
TAKT_INLINE T laneMax(const T *x, int64_t n) {
  T lanes[kLanes];
  for (int k = 0; k < kLanes; ++k)
    lanes[k] = x[0];
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes)
    for (int k = 0; k < kLanes; ++k)
      lanes[k] = lanes[k] < x[i + k] ? x[i + k] : lanes[k];
  for (int k = 0; i < n; ++i, ++k)
    lanes[k] = lanes[k] < x[i] ? x[i] : lanes[k];
  for (int width = kLanes / 2; width > 0; width /= 2)
    for (int k = 0; k < width; ++k)
      lanes[k] = lanes[k] < lanes[k + width] ? lanes[k + width] : lanes[k];
  return lanes[0];
}

TAKT_INLINE double expOf(double x) { return std::exp(x); }

/// e^x for x <= 88; 0 below the smallest normal result. x = n ln 2 + r, and e^r
/// by a minimax polynomial on |r| <= ln 2 / 2.
TAKT_INLINE float expOf(float x) {
  constexpr float kRound = 12582912.0f; // 1.5 * 2^23: adding it rounds
  float shifted = x * 1.44269504f + kRound;
  float n = shifted - kRound;
  float r = x - n * 0.693359375f; // ln 2 in two parts, the first exact
  r = r - n * -2.12194440e-4f;
  float p = 1.3814584e-3f;
  p = p * r + 8.3687240e-3f;
  p = p * r + 4.1668390e-2f;
  p = p * r + 1.6666521e-1f;
  p = p * r + 4.9999994e-1f;
  p = p * (r * r) + r + 1.0f;
  uint32_t bits;
  std::memcpy(&bits, &shifted, sizeof(bits));
  bits = (bits + 127u) << 23; // the low bits of `shifted` hold n
  float power;
  std::memcpy(&power, &bits, sizeof(power));
  return x < -87.0f ? 0.0f : p * power;
}

/// 1 / (1 + e^-x), by the exponential of a number that is not positive.
template <typename T>
TAKT_INLINE T sigmoid(T x) {
  T e = expOf(-std::fabs(x));
  T s = T(1) / (T(1) + e);
  return x < T(0) ? e * s : s;
}

/// P(X <= x) of the standard normal distribution; `e` is exp(-x^2 / 2).
TAKT_INLINE double normalCdf(double x, double) {
  return 0.5 * std::erfc(x * -0.70710678118654752440);
}

/// In float: the tail beyond |x| is e t P(t) with t = 1 / (1 + 0.3 |x|), P
/// fitted to equal relative error (8e-8) on |x| <= 12.
TAKT_INLINE float normalCdf(float x, float e) {
  float t = 1.0f / (1.0f + 0.3f * std::fabs(x));
  float p = 0.03674148223324537f;
  p = p * t - 0.16167906662912945f;
  p = p * t + 0.2141326700070459f;
  p = p * t - 0.060919864096295843f;
  p = p * t + 0.13244016824481603f;
  p = p * t + 0.0987192254032898f;
  p = p * t + 0.1209490702811504f;
  p = p * t + 0.11961627355465133f;
  float tail = e * (t * p);
  return x < 0 ? tail : 1.0f - tail;
}

} // namespace takt::rt::host
