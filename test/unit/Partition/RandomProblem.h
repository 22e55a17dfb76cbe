//===- RandomProblem.h - small chains for the oracle ------------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Problems that brute force can enumerate, with every feature turned on now and
// then. The generator is our own, so that the same seed gives the same problem
// with every standard library.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "takt/Partition/Problem.h"

#include <cstdint>

namespace takt::test {

/// SplitMix64.
class Random {
public:
  explicit Random(uint64_t seed) : state(seed) {}
  /// Uniform in [low, high].
  int64_t in(int64_t low, int64_t high);
  bool chance(int64_t percent) { return in(1, 100) <= percent; }

private:
  uint64_t state;
};

/// At most 10 segments, 4 devices, 8 micro-batches; a memory limit in most.
PartitionProblem randomProblem(uint64_t seed);

} // namespace takt::test
