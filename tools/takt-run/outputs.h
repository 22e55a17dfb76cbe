//===- outputs.h - files a run leaves ---------------------------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Files that are written while a run goes on or when it ends.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "run.h"

#include "takt-rt/core/plan.h"
#include "takt-rt/host/trainer.h"
#include "takt-rt/trace/runs.h"

#include <deque>
#include <fstream>
#include <string>

namespace takt::run {

/// Throws `rt::Error` (BadInput) if a file the run is to leave cannot be made:
/// said before training and not after it.
void checkOutputs(const RunOptions &options);

/// Throws when what was printed did not arrive.
void flushStandardOutput();

/// One loss a line, in decimal to 9 digits and exactly as a hexadecimal float.
class LossLog {
public:
  /// An empty path logs nothing; "-" is standard output.
  explicit LossLog(const std::string &path);
  void add(double loss);

private:
  bool isOn;
  bool toStandardOutput;
  std::ofstream file;
};

/// Keeps the last steps and gives the records of their median step, which
/// stands for the run in traces.
class TypicalStep {
public:
  void add(rt::StepResult result);
  std::vector<rt::Record> records() const;

private:
  std::deque<rt::StepResult> steps;
};

/// The trace and the timeline, where asked for.
void writePictures(const RunOptions &options, const rt::Plan &plan,
                   const rt::Runs &runs);

} // namespace takt::run
