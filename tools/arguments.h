//===- arguments.h - what every tool refuses -------------------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Faults of a command line in the words of all other errors, those among them
// that the option library takes for something else, and of the streams that a
// program is started with.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <CLI/CLI.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace takt::arguments {

/// Gives numbers 0 to 2 to something where they are closed, before a file or a
/// socket gets them and receives what is printed. What is written to a closed
/// standard output fails as it should.
void claimStandardStreams();

/// A whole number of these, as a check of an option.
CLI::Validator wholeNumber(int64_t least, int64_t most);

/// A number of these; no NaN.
CLI::Validator number(double least, double most);

/// One of these words.
CLI::Validator oneOf(std::vector<std::string> words);

/// Parses; nothing when the program goes on, else the exit code with which it
/// ends: 0 after help and the like were printed, or that of wrong usage after
/// "TOOL: error: ..." was.
std::optional<int> parse(CLI::App &app, int argc, const char *const *argv);

} // namespace takt::arguments
