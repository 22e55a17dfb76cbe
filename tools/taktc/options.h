//===- options.h - the options of one compilation ---------------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Read from the command line, and once a plan more by `taktc compare`.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "takt/Driver/Compile.h"

#include <CLI/CLI.hpp>

#include <string>
#include <vector>

namespace takt {

/// Options whose words are translated once all are read.
struct OptionTexts {
  std::vector<std::string> explain;
  std::string emit = "plan", format = "text", overlap = "on", bucketSize,
              within;
};

/// Model, cluster and everything that changes the plan or what is printed of it;
/// the arguments must live until the last call of `settle`.
void addCompileOptions(CLI::App &app, CompileOptions &options,
                       OptionTexts &text);

/// Translates words and refuses options that contradict each other; returns
/// what is wrong.
std::string settle(const OptionTexts &text, const CLI::Option *output,
                   CompileOptions &options);

} // namespace takt
