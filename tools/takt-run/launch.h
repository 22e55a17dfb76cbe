//===- launch.h - starting the processes of a run ---------------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// takt-run -n N: a child a rank, which runs this program with the same
// arguments and its rank in the environment. This process serves the store,
// passes on what the children write and the signals it gets, and ends them
// together.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "run.h"

namespace takt::run {

/// Runs the children to their end and returns the exit code of the run: that
/// of the rank that failed first. Throws `rt::Error` when they cannot be
/// started: DoesNotFit when the plan has another number of ranks.
int launch(const RunOptions &options, char **arguments);

/// The same without a plan: `count` processes with these arguments.
int startProcesses(int count, char **arguments);

} // namespace takt::run
