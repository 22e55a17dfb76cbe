//===- calibrate.h - a cluster file from measurements -----------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// takt-run calibrate.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "run.h"

#include <string>
#include <vector>

namespace takt::run {

struct CalibrateOptions {
  std::string output = "-";           ///< "-" is standard output
  std::vector<std::string> ncclTests; ///< files; empty: measure links here
  int32_t nodes = 0;                  ///< of nccl-tests that do not say
  std::string flops, memoryBandwidth, memory; ///< empty: measured here
  bool quiet = false;
};

/// What is wrong with a quantity of these units; empty: nothing.
std::string quantityFault(const std::string &text, const std::string &units);

/// Measures and writes; of several processes, rank 0 does. `options` says who
/// this process is and how messages go. Throws `rt::Error`.
void calibrate(const RunOptions &options, const CalibrateOptions &what);

} // namespace takt::run
