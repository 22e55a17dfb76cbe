//===- Continuous.cpp - one forward, one backward, never flushed ----------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// "PipeDream-2BW" of Narayanan et al. 2021, "Memory-Efficient Pipeline-Parallel
// DNN Training", arXiv 2006.09503.
//
// The micro-batches of all steps are one stream, in the order of 1F1B. Two
// stages, two steps of two micro-batches, backward as long as forward:
//
//   stage 0  F0 F1 .  B0 F2 B1 F3 B2 .  B3
//   stage 1  .  F0 B0 F1 B1 F2 B2 F3 B3 .
//
// The next step's forwards run while the last step's backwards do, so a step of
// g micro-batches takes as long as g times the slowest stage, where a flush
// makes it (g + p - 1) times. They need weights that are one update old, two
// versions with g >= p. `group` is g, or p if not given.
//
//===----------------------------------------------------------------------===//

#include "Families.h"

#include <fmt/format.h>

namespace takt {

std::optional<std::string> refuseShortSteps(const PipelineProblem &problem) {
  if (problem.group == 0 || problem.group >= problem.ranks)
    return std::nullopt;
  return fmt::format("with steps of {} micro-batches on {} ranks, a forward "
                     "would need weights that no step has made yet; at least "
                     "{} are needed",
                     problem.group, problem.ranks, problem.ranks);
}

Schedule generateContinuous(const PipelineProblem &problem) {
  return generateOneFOneB({problem.ranks, problem.microBatches});
}

} // namespace takt
