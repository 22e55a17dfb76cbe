//===- run.h - one run of a plan --------------------------------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// What the command line of takt-run asks for, and doing it.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "takt-rt/bootstrap/identity.h"

#include <cstdint>
#include <optional>
#include <string>

namespace takt::run {

struct RunOptions {
  std::string plan;             ///< path; "-" is standard input
  std::optional<int64_t> steps; ///< default 100; 20 with `profile`; all of a
                                ///< text in inference
  std::string data;             ///< text file
  bool synthetic = false;       ///< random samples, whatever the model
  std::optional<uint64_t> seed; ///< instead of the plan's
  bool threads = false;         ///< all ranks here, whatever started this
  std::optional<int32_t> processes; ///< to start
  std::string hosts;                ///< "a:8,b:8"
  rt::IdentityFlags identity;
  std::string transport = "auto"; ///< "shm", "tcp"
  bool emulateLinks = false;
  std::optional<double> timeoutSeconds;
  double timeoutFactor = 20, timeoutFloor = 30; ///< of processes
  double startTimeout = 300;                    ///< until all have come
  bool unproven = false;   ///< run even a plan whose proof fails
  std::string dryRun;      ///< "", "host", "cuda"
  std::string loadWeights; ///< safetensors, or a folder with a checkpoint
  std::string saveWeights, dumpGradients;
  std::string outputs;           ///< of inference
  std::string checkpoint;        ///< folder
  int64_t checkpointEvery = 100; ///< steps
  int64_t keep = 0;              ///< checkpoints; 0: all
  std::string resume;            ///< folder of a checkpoint or of several
  std::string record;            ///< folder
  std::string profile, trace, timeline, logLosses;
  bool json = false;
  bool quiet = false;
};

/// Runs and reports on standard output; throws `rt::Error`.
void run(const RunOptions &options);

} // namespace takt::run
