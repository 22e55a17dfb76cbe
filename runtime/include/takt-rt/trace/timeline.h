//===- timeline.h - runs as a picture ---------------------------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// One file with nothing outside it: a row a rank, compute boxes by phase with
// their micro-batch, transfers as thin boxes and the memory in use as a curve
// below, predicted and measured run on the same time axis.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "takt-rt/trace/runs.h"

#include <ostream>

namespace takt::rt {

/// For documents. Plans of more than 64 ranks show one rank of each role;
/// beyond 20 000 boxes they no longer say what they are.
void writeTimelineSvg(std::ostream &out, const Plan &plan, const Runs &runs);

/// A page that zooms (wheel), moves (drag) and says of a box what it is, what
/// it waits for, what waits for it and which buffers it touches. Shows all
/// ranks; stays quick with some hundred thousand actions.
void writeTimelineHtml(std::ostream &out, const Plan &plan, const Runs &runs);

} // namespace takt::rt
