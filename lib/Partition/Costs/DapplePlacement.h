//===- DapplePlacement.h - devices of a stage --------------------*- C++
//-*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// How many devices of each machine are in use, and who comes next under a
// placement.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "takt/Partition/Costs/Dapple.h"

#include <algorithm>
#include <numeric>
#include <set>

namespace takt::partition {

/// Devices in use by machine; they are taken from the first on.
using Occupancy = std::vector<int64_t>;

int64_t countOf(const Occupancy &used);

std::set<int64_t> machinesOf(const DappleCluster &cluster,
                             const std::vector<int32_t> &devices);

/// What plans are compared by.
inline double rankOf(const DappleProblem &problem, const DapplePlan &plan) {
  return problem.byReplay ? plan.replaySeconds : plan.seconds;
}

bool mayReplicate(const DappleProblem &problem, int64_t replicas);

} // namespace takt::partition
