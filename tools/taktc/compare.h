//===- compare.h - plans side by side ---------------------------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// taktc compare MODEL.yaml A.yaml B.yaml --with "--stages=2" --with ...
//
//===----------------------------------------------------------------------===//
#pragma once

#include <string>
#include <vector>

namespace takt {

struct CompareOptions {
  std::vector<std::string> files; ///< models, clusters and presets
  std::vector<std::string> sets;  ///< options of each plan; none: one, empty
  bool json = false;
};

/// Plans every model on every cluster with every set of options; a table or
/// JSON on standard output. Returns the exit code: Done if there is a plan and
/// all others were proven infeasible or met a limit.
int compare(const CompareOptions &options);

} // namespace takt
