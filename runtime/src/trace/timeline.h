//===- timeline.h - the picture behind SVG and HTML -------------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// One drawing with two covers: as a file of its own only labels that fit are
// written; in the page all are, as the reader may zoom in on them.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "takt-rt/trace/runs.h"

#include <ostream>
#include <string>

namespace takt::rt {

enum class PictureKind { File, InPage };

/// Writes the `<svg>` element. Its data attributes tell the page's script where
/// the time axis is: `data-left`, `data-width` in pixels, `data-span` in
/// nanoseconds.
void writePicture(std::ostream &out, const Plan &plan, const Runs &runs,
                  PictureKind kind);

/// The style sheet of the picture, and the class in it of a call by its phase
/// and of any other instruction by its lane.
const char *pictureStyle();
const char *classOf(Phase phase);
const char *classOf(LaneKind kind);

/// The text with XML's five special characters replaced.
std::string xmlEscaped(const std::string &text);

} // namespace takt::rt
