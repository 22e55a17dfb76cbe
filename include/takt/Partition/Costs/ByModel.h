//===- ByModel.h - stages of a chain by a published model -------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Poses a problem of stage assignment to the planner of a published system and
// brings its answer back: stages, and the time that its own formula expects.
// What Takt alone knows (kept inputs, updates, side constraints) is not asked;
// whoever takes the answer has to check it against the problem.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "takt/Partition/Problem.h"

#include <optional>
#include <string>
#include <vector>

namespace takt {

enum class CostModel : uint8_t {
  Takt,      ///< the objective of Problem.h
  PipeDream, ///< steady state of single micro-batches, levels of links
  Dapple,    ///< pivot latency of a step
};

/// "takt", "pipedream", "dapple".
const char *costModelName(CostModel model);
std::optional<CostModel> parseCostModel(const std::string &name);

struct ModelledStages {
  std::vector<StageChoice> stages; ///< layers and replicas only
  Nanos step = 0; ///< micro-batches by the formula, without a step's other ends
};

/// Stages by a model other than Takt's on all devices in their order, or a
/// sentence in `error`. `forward`: of each segment's time on one device, for
/// the whole micro-batch. Numbers of stages, cuts, replicas and placements that
/// the problem asks for are refused, but for the most stages with DAPPLE.
std::optional<ModelledStages> stagesByModel(const PartitionProblem &problem,
                                            CostModel model,
                                            const std::vector<Nanos> &forward,
                                            std::string &error);

} // namespace takt
