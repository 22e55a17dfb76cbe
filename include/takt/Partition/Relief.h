//===- Relief.h - constraints that are not given up whole -------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
#pragma once

#include "takt/Partition/Constraints.h"

namespace takt {

/// What an answer to `base` without the constraint keeps of it, if that says
/// anything: another stage, number or headroom.
std::optional<SideConstraint> loosened(const PartitionProblem &base,
                                       SideConstraint constraint,
                                       const Partition &partition);

} // namespace takt
