//===- hang.h - who waits for whom ------------------------------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// A run that no longer moves is explained from the lanes' counts alone, so that
// the simulator and a hung run in one process give the same report.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "takt-rt/core/interpreter.h"

#include <string>
#include <vector>

namespace takt::rt {

/// A chain of "rank r, lane 'l' at 'action' waits for ...", from the first rank
/// that is not finished to an end or until it closes a circle; of a circle,
/// only the circle. `ranks[r]` is the interpreter of rank r. Empty if all
/// finished.
std::string explainHang(const Plan &plan,
                        const std::vector<const Interpreter *> &ranks);

} // namespace takt::rt
