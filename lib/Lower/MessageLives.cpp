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

#include <algorithm>

using namespace takt;

MessageLives takt::messageLives(const LoweringProblem &problem, int32_t stage,
                                bool split) {
  // Replicas make tensors smaller, not their lives shorter.
  const Stage built = buildStage(problem, stage, /*replicas=*/1, split);
  const MemoryPlan memory = planMemory(built);
  auto last = [&](int32_t tensor, int8_t atLeast) {
    return tensor < 0 ? int8_t(-1)
                      : std::max(memory.lifetimes[tensor].lastPhase, atLeast);
  };
  return {last(built.input, 0), last(built.output, 0),
          last(built.outputGrad, 1), last(built.inputGradient, 1)};
}
