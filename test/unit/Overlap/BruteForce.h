//===- BruteForce.h - every order and lane --------------------------*- C++
//-*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// The optimum of a small overlap problem by looking at everything.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "takt/Overlap/Overlap.h"

namespace takt::test {

/// Least makespan over every order of communication and every choice of lanes.
/// For up to 7 communications.
Nanos bruteForceOverlap(const OverlapProblem &problem);

} // namespace takt::test
