//===- trace.h - runs as a Chrome / Perfetto trace --------------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// The trace event format in its JSON object form, which chrome://tracing and
// ui.perfetto.dev open. A process is a rank of a run, a thread is a lane.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "takt-rt/trace/runs.h"

#include <ostream>
#include <string>
#include <vector>

namespace takt::rt {

/// Writes event by event, so that memory does not grow with the trace:
///   - a complete event an instruction, named "PP:0F3", with its kind, phase,
///     micro-batch and bytes as arguments; times in microseconds
///   - an arrow from each send to its receive
///   - counters of each rank: micro-batches in flight, bytes of memory in use
/// Process r is rank r of the first run that is there, process r + ranks is
/// rank r of the measured run when both are.
void writeChromeTrace(std::ostream &out, const Plan &plan, const Runs &runs);

/// The measured run of a trace that `writeChromeTrace` wrote for this plan; the
/// only run, if there is one only. Records stand in the order of their ends.
/// Throws `Error(BadInput)` that names `name` and the event for anything else.
std::vector<Record> readChromeTrace(const std::string &content,
                                    const std::string &name, const Plan &plan);

} // namespace takt::rt
