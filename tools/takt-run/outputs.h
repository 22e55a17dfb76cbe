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

/// What inference gives, step by step into one tensor of a safetensors file. A
/// file of another name until `finish`, as its size is known then.
class OutputFile {
public:
  /// An empty path keeps nothing. The plan has an output.
  OutputFile(const std::string &path, const rt::Plan &plan);
  ~OutputFile();
  OutputFile(const OutputFile &) = delete;
  OutputFile &operator=(const OutputFile &) = delete;

  void add(const std::vector<float> &outputs);
  void finish();

private:
  std::string header() const;
  [[noreturn]] void fail() const;

  const rt::Plan &plan;
  std::string path, temporary;
  std::ofstream file;
  int64_t samples = 0;
  size_t headerBytes = 0;
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
