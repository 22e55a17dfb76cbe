//===- timeline.h - what pictures have in common ----------------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// What the drawing of a file and the page have in common: words and colours.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "takt-rt/trace/runs.h"

#include <string>

namespace takt::rt {

/// "gpt-small: 1f1b on host-2core", and how many ranks and micro-batches.
std::string pictureTitle(const Plan &plan);
std::string pictureShape(const Plan &plan);
/// "predicted: step 3.2 ms, bubble 12.5 %"; of the measured run also its ratio
/// to the predicted one. `run` is one of `runs`.
std::string runHeading(const Plan &plan, const Runs &runs,
                       const std::vector<Record> &run);

/// The style sheet of the picture, and the class in it of a call by its phase
/// and of any other instruction by its lane.
const char *pictureStyle();
const char *classOf(Phase phase);
const char *classOf(LaneKind kind);
/// The same as one letter: the phase's, or a, g, s, l.
char styleOf(const Role &role, const Lane &lane, const Instr &instr);

/// The text with XML's five special characters replaced.
std::string xmlEscaped(const std::string &text);

} // namespace takt::rt
