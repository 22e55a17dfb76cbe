//===- timeline.h - runs as a picture ---------------------------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// One file with nothing outside it: a row a rank, compute boxes by phase with
// their micro-batch, transfers as thin boxes below, the predicted run above the
// measured one on the same time axis.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "takt-rt/trace/runs.h"

#include <ostream>

namespace takt::rt {

/// Plans of more than 64 ranks show one rank of each role.
void writeTimelineSvg(std::ostream &out, const Plan &plan, const Runs &runs);

/// The same picture in a page that zooms (wheel), moves (drag) and says what a
/// box is (hover).
void writeTimelineHtml(std::ostream &out, const Plan &plan, const Runs &runs);

} // namespace takt::rt
