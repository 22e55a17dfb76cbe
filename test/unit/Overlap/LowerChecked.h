//===- LowerChecked.h - plans that must be proven ---------------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Lowers and holds against every check.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "takt/Lower/Lower.h"

namespace takt::test {

/// The plan of a problem; expects it to be sound, proven and kept by its text.
rt::Plan lowerChecked(const LoweringProblem &problem);

} // namespace takt::test
