//===- CollBridge.h - the communication level and lowering ------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Between IR and the problem that `takt::lower` turns into a plan. Both
// functions read verified IR.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "Coll/CollDialect.h"
#include "Pipe/PipeBridge.h"
#include "takt/Lower/Lower.h"

#include <optional>
#include <string>

namespace takt::coll {

/// Everything that lowering needs but the communication: graph, training,
/// stages with times, roles with devices and capacity. Lanes, links and ties
/// are empty. Nothing, and a sentence in `error`, when the costs do not cover a
/// stage.
std::optional<LoweringProblem> exportStages(pipe::ProgramParts parts,
                                            std::string &error);

/// The whole problem from IR after takt-insert-comms; it passes `check()`.
/// `compiler` and `inputHash` are left to the caller. Nothing, and a sentence
/// in `error`, when the module is not at that level or not complete.
std::optional<LoweringProblem> exportLowering(mlir::ModuleOp module,
                                              std::string &error);

/// Writes the lanes of the problem's roles and declares the
/// channels, groups and ties that the lanes use, with their links.
void importCommunication(const LoweringProblem &problem,
                         pipe::ProgramParts parts);

/// Writes the lanes of stages whose gradients have been cut into buckets into
/// their roles, and a group for each bucket in place of the one of all
/// gradients.
void importBuckets(const LoweringProblem &problem, pipe::ProgramParts parts);

} // namespace takt::coll
