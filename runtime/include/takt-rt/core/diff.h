//===- diff.h - what differs between two plans ------------------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Compares decisions, not bytes: where layers lie, how often stages are
// replicated, in which order they work, what they hold, and what all of that
// costs under the virtual clock.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "takt-rt/core/plan.h"

#include <string>
#include <vector>

namespace takt::rt {

/// Mean of the ranks' times in a step; the parts add up to the step, but for
/// what rounding takes.
struct StepCost {
  Nanos step = 0;
  Nanos compute = 0; ///< of calls
  Nanos bubble = 0;  ///< of waiting while nothing moves
  Nanos exposed = 0; ///< of waiting for data on its way
};

struct PlanDiff {
  struct Layer {
    std::string name;
    int32_t before = -1, after = -1; ///< stage; -1: not in that plan
  };
  struct Stage {
    int32_t stage = 0;
    int32_t replicasBefore = 0, replicasAfter = 0; ///< 0: no such stage
    Bytes bytesBefore = 0, bytesAfter = 0;         ///< arena of a rank
  };
  /// First calls of a stage that differ in kind or micro-batch.
  struct Order {
    int32_t stage = 0;
    int32_t position = 0;      ///< among the calls of the stage
    std::string before, after; ///< actions; empty: no more calls
  };
  int64_t samplesBefore = 0, samplesAfter = 0; ///< of a step
  int32_t microBatchesBefore = 0, microBatchesAfter = 0;
  std::vector<Layer> layers; ///< that moved, in the order of the first plan
  std::vector<Stage> stages; ///< whose replicas or bytes differ
  std::vector<Order> orders;
  StepCost before, after;
};

/// Both plans pass `checkStructure`; both are simulated. Throws `Error(BadInput)`
/// when they share no layer: they are not plans of one model.
PlanDiff diffPlans(const Plan &before, const Plan &after);
std::string printText(const PlanDiff &diff);
std::string toJson(const PlanDiff &diff);

} // namespace takt::rt
