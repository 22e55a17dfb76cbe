//===- Explain.h - why there is no assignment -------------------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// For problems proven infeasible: the constraint that clashes, with numbers,
// and changes that were tried, one at a time, and made it feasible.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "Chain.h"

namespace takt::partition {

/// Explains a problem that passes `check()` and has no assignment.
Infeasible explain(const PartitionProblem &problem, WorkMeter &meter);

} // namespace takt::partition
