//===- Translate.h - problems in the words of a planner ---------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// What the translations of takt/Partition/Costs/ByModel.h share.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "takt/Partition/Costs/ByModel.h"

namespace takt::translate {

/// What a free link passes in a second: nothing takes measurable time.
constexpr double kFreeRate = 1e18;
/// The memory of a device without a limit.
constexpr double kAllBytes = 1e18;

double rateOf(const rt::Link &link);
Nanos toNanos(double seconds);

/// What the model does not know of the problem's wishes and cluster; else
/// empty.
std::string refusal(const PartitionProblem &problem, CostModel model);

/// Stages by PipeDream-2BW's planner.
std::optional<ModelledStages> stagesOfBlocks(const PartitionProblem &problem,
                                             ModelFault &fault);

} // namespace takt::translate
