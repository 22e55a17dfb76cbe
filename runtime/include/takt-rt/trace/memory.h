//===- memory.h - memory in use over a step ---------------------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// The arena of a rank is laid out once and for all; how much of it holds
// something at a moment follows from the run: weights, gradients, optimizer
// state and losses always, a slot of any other pool from the start of the first
// instruction that touches it for a micro-batch to the end of the last.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "takt-rt/core/analysis.h"
#include "takt-rt/trace/runs.h"

#include <vector>

namespace takt::rt {

/// The pools of a role that an instruction touches, ascending, each once.
std::vector<uint16_t> touchedPools(const Role &role, const Instr &instr);

/// `memoryCurves` without their figures. Of each rank, times ascending and different, the first at 0, neighbours with
/// different bytes. A rank without records has its persistent bytes only.
std::vector<std::vector<MemoryPoint>>
memoryOverTime(const Plan &plan, const std::vector<Record> &run);

/// The largest of the points.
Bytes peakOf(const std::vector<MemoryPoint> &curve);

} // namespace takt::rt
