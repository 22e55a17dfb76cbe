//===- PlanBuilder.h - small sound plans for tests --------------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// A pipeline of equal linear layers, one a stage, under GPipe or 1F1B, written
// by hand so that tests of the runtime do not depend on the compiler.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "takt-rt/core/plan.h"

#include <string>
#include <vector>

namespace takt::rt::test {

struct PipelineShape {
  int32_t stages = 2;
  int32_t microBatches = 4;
  std::vector<int32_t> replicas; ///< of each stage; empty: 1
  bool oneFOneB = true;
  bool splitBackward = false; ///< I and W in place of B
  Nanos forward = 1;
  Nanos backward = 2;
  Nanos update = 0;
  Link link;            ///< of channels and groups; default: free
  int64_t samples = 12; ///< of a micro-batch

  int32_t replicasOf(int32_t stage) const {
    return replicas.empty() ? 1 : replicas[stage];
  }
};

/// Passes `checkStructure`; channels are "act0", "grad0" (stage 0 to 1), groups
/// "reduce0"; lanes are named as their kinds.
Plan makePipeline(const PipelineShape &shape);

/// Index of a lane of that kind in the role.
size_t laneOf(const Role &role, LaneKind kind);

} // namespace takt::rt::test
