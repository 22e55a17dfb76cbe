//===- runs.h - the runs that traces and timelines show ---------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// One step of a plan as the virtual clock predicts it, as a run measured it, or
// both. Times count from the start of the step.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "takt-rt/core/interpreter.h"
#include "takt-rt/core/plan.h"

#include <vector>

namespace takt::rt {

/// Either may be empty. Records must name ranks, lanes and instructions of the
/// plan they are shown with.
struct Runs {
  std::vector<Record> predicted;
  std::vector<Record> measured;
};

/// End of the last record.
Nanos stepTime(const std::vector<Record> &run);

/// Idle share of the compute lanes of all ranks; 0 for a run without length.
double bubbleShare(const Plan &plan, const std::vector<Record> &run);

/// Throws `Error(BadInput)` if a record names nothing of the plan or ends
/// before it begins.
void checkRecords(const Plan &plan, const std::vector<Record> &run);

} // namespace takt::rt
