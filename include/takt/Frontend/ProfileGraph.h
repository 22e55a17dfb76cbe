//===- ProfileGraph.h - published inputs as graph problems ------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Inputs that other planners were published with, as problems of stage
// assignment on a graph. Devices are left to the caller where a file does not
// state them.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "takt/Partition/Costs/Antichains.h"
#include "takt/Partition/GraphProblem.h"
#include "takt/Support/Diagnostic.h"

#include <optional>
#include <string>
#include <vector>

namespace takt {

struct ProfileGraphOptions {
  /// Forward and backward, and every tensor there and its gradient back; else
  /// forward alone.
  bool training = true;
  /// Of the link between two devices; 0: transfers take no time.
  double bytesPerSecond = 0;
  /// Nodes "__getitem__..." that nobody reads stay in the graph.
  bool keepUnusedOutputs = false;
};

/// A layer profile in the text format of the PipeDream profiler (see
/// ImportDapple.h), sources called "Input..." left out. Nodes are in the order
/// of their numbers, with one time for one kind of device, `memory` and
/// `reduce` that of the parameters, `saved` that of the output; the one kind of
/// device is there once. Faults are reported with line and column.
std::optional<GraphProblem> readProfileGraph(const std::string &text,
                                             const std::string &fileName,
                                             const ProfileGraphOptions &options,
                                             Diagnostics &diags);

/// The same profile as PipeDream's planner reads it: sources "Input..." and
/// sinks
/// "__getitem__..." dropped, nodes in the order of the lines.
std::optional<std::vector<ProfiledNode>>
readProfiledNodes(const std::string &text, const std::string &fileName,
                  Diagnostics &diags);

} // namespace takt
