//===- text.h - the text form of a plan -------------------------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Everything in a plan as text that reads well and reads back: one instruction
// a line, its waits as `after load:3`, its action as a comment. `#` starts a
// comment; line ends do not matter to the reader.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "takt-rt/core/file.h"
#include "takt-rt/core/plan.h"

#include <string>
#include <string_view>

namespace takt::rt {

/// The text form. The plan must pass `checkStructure`.
std::string toText(const Plan &plan);

/// Reads the text form; the result has passed `checkStructure` unless the form
/// alone is asked for. Throws `Error(BadInput)` with "name:line:column: what is
/// wrong".
Plan parsePlanText(std::string_view text, const std::string &name,
                   Reading reading = Reading::Structure);

/// True if the text starts as a plan's text form does.
bool looksLikePlanText(std::string_view text);

} // namespace takt::rt
