//===- MessageLives.cpp - how long messages keep their buffers ------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Searches of schedules ask before there are actions to lower.
//
//===----------------------------------------------------------------------===//
#include "MemoryPlan.h"

using namespace takt;

MessageLives takt::messageLives(const LoweringProblem &problem, int32_t stage,
                                bool split) {
  // Replicas make tensors smaller, not their lives shorter.
  const Stage built = buildStage(problem, stage, /*replicas=*/1, split);
  const MemoryPlan memory = planMemory(built);
  return {lastPhase(memory, built.inputs, false),
          lastPhase(memory, built.outputs, false),
          lastPhase(memory, built.outputs, true),
          lastPhase(memory, built.inputs, true)};
}
