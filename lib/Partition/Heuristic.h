//===- Heuristic.h - good assignments, quickly ------------------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Answers without a proof: they give the exact search something to beat.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "Chain.h"

namespace takt::partition {

/// The best assignment with the same replicas on every stage, each number of
/// stages balanced by bisection on the slowest stage; empty if none fits.
Stages bestUniform(const Chain &chain, WorkMeter &meter);

/// Moves cuts, changes replicas, joins and splits stages as long as that helps.
/// `stages` must keep all limits.
void improve(const Chain &chain, WorkMeter &meter, Stages &stages);

} // namespace takt::partition
