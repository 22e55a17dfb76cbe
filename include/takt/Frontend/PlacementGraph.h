//===- PlacementGraph.h - published placement inputs as problems *- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// The JSON inputs of device placement published with Tarnawski et al. 2020
// ("Efficient Algorithms for Device Placement of DNN Graph Operators", arXiv
// 2006.16423): operators with times on an accelerator and on a CPU, memory, the
// time to move each operator's output, and colour classes that keep forward and
// backward of a layer together. Their objective is the load of the busiest
// device, which is the period here: an accelerator pays for each tensor it
// sends or receives once, a CPU pays for none.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "takt/Partition/GraphProblem.h"
#include "takt/Support/Diagnostic.h"

#include <optional>
#include <string>

namespace takt {

/// Devices are "accelerator", with the file's memory, and "cpu", without a
/// limit; nodes are in the order of the file. A backward operator that reads
/// another one's output lies in the same or an earlier block; outputs that
/// cross from forward to backward cost, but do not order. Keys that are not
/// listed there are ignored.
std::optional<GraphProblem> readPlacementGraph(const std::string &text,
                                               const std::string &fileName,
                                               Diagnostics &diags);

} // namespace takt
