//===- patience.h - how long nothing may move -------------------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// The deadline of everything that waits for a peer: a number of seconds, or
// more where steps take long, as predicted or as measured so far.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "takt-rt/core/plan.h"

#include <algorithm>
#include <atomic>

namespace takt::rt {

class Patience {
public:
  /// `factor` times the longest step, but no less than `floorSeconds`; with
  /// factor 0 just that.
  explicit Patience(double floorSeconds, double factor = 0,
                    Nanos predictedStep = 0)
      : floorSeconds(floorSeconds), factor(factor), longest(predictedStep) {}

  double seconds() const {
    return std::max(floorSeconds, factor * double(longest.load()) * 1e-9);
  }
  void sawStep(Nanos time) {
    if (time > longest.load())
      longest = time;
  }

private:
  double floorSeconds, factor;
  std::atomic<Nanos> longest;
};

} // namespace takt::rt
