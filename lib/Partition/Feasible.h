//===- Feasible.h - does any assignment keep the limits ---------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Feasibility alone is much easier than the least objective: neither times nor
// positions matter, so a program over (stages, boundary) decides it exactly.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "Chain.h"

namespace takt::partition {

/// Whether a question was answered, and how.
enum class Answer { Yes, No, OutOfWork };

/// Looks for any assignment that keeps all limits; `stages` receives it.
Answer findFeasible(const Chain &chain, WorkMeter &meter, Stages &stages);

/// Fewest devices on which the chain fits, however many there are; the chain
/// must not ask for all devices. 0: no number of them will do, or the meter ran
/// out.
int64_t leastDevices(const Chain &chain, WorkMeter &meter);

} // namespace takt::partition
