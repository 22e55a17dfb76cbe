//===- PiperInput.h - published inputs of Piper as problems -----*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// The JSON inputs published with Tarnawski et al. 2021 ("Piper:
// Multidimensional Planner for DNN Parallelization", NeurIPS): nodes with
// variants by degree of tensor parallelism, edges in bytes. Times keep the unit
// of the file, which it does not state; its bandwidth is in bytes of that unit,
// as the published planner takes it.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "takt/Partition/Costs/Piper.h"
#include "takt/Support/Diagnostic.h"

#include <optional>
#include <string>

namespace takt {

/// Nodes are in the order of the file. Keys that are not known are ignored.
std::optional<PiperProblem> readPiperInput(const std::string &text,
                                           const std::string &fileName,
                                           Diagnostics &diags);

} // namespace takt
