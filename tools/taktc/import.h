//===- import.h - what others wrote, from the command line ------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// taktc import [FORMAT] FILE [-o YAML]
//
//===----------------------------------------------------------------------===//
#pragma once

#include "takt/Frontend/Import.h"

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace takt {

struct ImportWords {
  std::vector<std::string> inputs; ///< [FORMAT] FILE
  std::string output = "-", flops, timeUnit, data;
  int64_t samples = 0, microBatches = 0, positions = 0;
  ImportOptions options;
};

void addImport(CLI::App &import, ImportWords &words);

/// Writes the model; returns the exit code.
int runImport(ImportWords &words);

} // namespace takt
