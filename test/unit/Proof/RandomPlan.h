//===- RandomPlan.h - random correct plans for the proof --------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Plans that the compiler would write, over random models, cuts, micro-batches,
// replicas and schedules.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "takt-rt/core/plan.h"

#include <cstdint>

namespace takt::test {

struct RandomPlanLimits {
  int stages = 5;
  int microBatches = 6;
  int replicas = 3;
  bool equalReplicas = false; ///< of all stages
};

/// The plan of a seed: equal seeds give equal plans.
rt::Plan randomPlan(uint32_t seed, const RandomPlanLimits &limits = {});

} // namespace takt::test
