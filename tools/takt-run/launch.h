//===- launch.h - starting the processes of a run ---------------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// takt-run -n N, or --hosts LIST --node I: a child a rank, which runs this
// program with the same arguments and its rank in the environment. This process
// serves the store, passes on what the children write and the signals it gets,
// and ends them together.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "run.h"

namespace takt::run {

/// The ranks whose processes this one starts.
struct LocalRanks {
  int32_t first = 0, count = 0, world = 0, node = 0;
  /// Where rank 0 serves the store; empty: this process does.
  std::string rendezvous;
};

/// Runs the children to their end and returns the exit code of the run: that
/// of the rank that failed first, of those started here. Throws `rt::Error`
/// when they cannot be started.
int startProcesses(const LocalRanks &local, char **arguments);

/// What '-n' or '--hosts' ask for: starts processes, or prints what to start
/// where. `plan`: to be trained by; throws `rt::Error` (DoesNotFit) when it has
/// another number of ranks.
int launch(const RunOptions &options, bool plan, char **arguments);

} // namespace takt::run
