//===- random.cpp - counter-based random numbers --------------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// The formulas of random.h.
//
//===----------------------------------------------------------------------===//

#include "takt-rt/data/random.h"

#include <cmath>

namespace takt::rt {

static constexpr uint64_t kGamma = 0x9E3779B97F4A7C15u;

static uint64_t mix(uint64_t z) {
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

uint64_t fnv1a64(std::string_view name) {
  uint64_t hash = 14695981039346656037u;
  for (unsigned char byte : name)
    hash = (hash ^ byte) * 1099511628211u;
  return hash;
}

uint64_t streamKey(uint64_t seed, std::string_view name) {
  return mix(seed + kGamma) ^ fnv1a64(name);
}

uint64_t draw(uint64_t key, uint64_t index) {
  return mix(key + (index + 1) * kGamma);
}

double uniform(uint64_t key, uint64_t index) {
  return double(draw(key, index) >> 11) * 0x1p-53;
}

double normal(uint64_t key, uint64_t index) {
  constexpr double kTwoPi = 6.28318530717958647693;
  double radius = std::sqrt(-2 * std::log(1 - uniform(key, 2 * index)));
  return radius * std::cos(kTwoPi * uniform(key, 2 * index + 1));
}

} // namespace takt::rt
