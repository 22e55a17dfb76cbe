//===- ChainMakespan.h - time of a generated chain plan -------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
#pragma once

#include "takt/Schedule/ChainFamilies.h"

#include <gtest/gtest.h>

namespace takt {

/// Of a plan that is right and not below its bound.
inline double makespan(const ChainPlan &plan) {
  EXPECT_EQ(plan.problem.check(), std::nullopt);
  EXPECT_EQ(verify(plan.problem, plan.schedule), std::nullopt);
  const auto timing = timeChains(plan.problem, plan.schedule);
  EXPECT_TRUE(timing);
  if (!timing)
    return -1;
  EXPECT_LE(boundChains(plan.problem), timing->makespan + 1e-9);
  return timing->makespan;
}

} // namespace takt
