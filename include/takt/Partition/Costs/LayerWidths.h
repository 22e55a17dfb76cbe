//===- LayerWidths.h - a number of devices for each layer ----- -*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Burst parallelism (Park et al. 2022, DeepPool, MLSys, arXiv 2112.10065): with
// a fixed batch each layer runs on a number of devices of its own, and the
// samples move where it changes. A step takes the sum over layers of
//
//     time + sync + 2 (latency + input (1 / narrower - 1 / wider) / bandwidth)
//
// and no layer may use more than `limit` times the device time that it takes on
// one: (time + sync) x width, synchronisation counted.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "takt-rt/core/plan.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace takt {

struct WidthLayer {
  std::string name;
  std::vector<rt::Nanos> time; ///< by width; a negative one: it cannot
  rt::Nanos sync = 0;  ///< of its gradients, where it has several devices
  rt::Bytes input = 0; ///< of the whole batch
};

struct WidthProblem {
  std::vector<int64_t> widths{1}; ///< ascending from 1
  std::vector<WidthLayer> layers;
  rt::Link link;
  double limit = 0; ///< of the device time of a layer; 0: none

  std::optional<std::string> check() const;
};

struct WidthPlan {
  std::vector<int64_t> widths; ///< of each layer
  rt::Nanos time = 0;
  rt::Nanos deviceTime = 0; ///< sum of (time + sync) x width
};

/// The shortest step, of equal ones that with the least device time. Nothing if
/// a layer runs on no width within the limit.
std::optional<WidthPlan> solveWidths(const WidthProblem &problem);

/// All widths of all layers; for tests.
std::optional<WidthPlan> bruteForceWidths(const WidthProblem &problem);

/// What devices are left without work by layers narrower than the widest:
/// widest x time - device time, moves left out.
rt::Nanos idleDeviceTime(const WidthProblem &problem, const WidthPlan &plan);

std::optional<std::string> verify(const WidthProblem &problem,
                                  const WidthPlan &plan);

} // namespace takt
