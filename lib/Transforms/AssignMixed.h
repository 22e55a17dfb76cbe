//===- AssignMixed.h - takt-assign-stages on unequal devices ----*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// The part of the pass for clusters of several pools, and for prices.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "Model/ModelDialect.h"
#include "Pipe/PipeDialect.h"
#include "takt/Partition/Mixed.h"

#include "mlir/IR/BuiltinOps.h"

#include <string>

namespace takt {

/// The pass's options, in the terms of the libraries.
struct MixedOptions {
  PartitionProblem chain; ///< stages, cuts, replicas, policy and placement
  StageObjective objective = StageObjective::Time;
  Nanos maxTime = 0;
  double maxPrice = -1;
  bool asGraph = false;
  int64_t workLimit = 0;
  std::string schedulePolicy;
};

/// Solves, checks and writes a `pipe.program`, or reports why there is none.
llvm::LogicalResult assignMixed(mlir::ModuleOp module, model::GraphOp graph,
                                pipe::ClusterOp cluster,
                                const MixedOptions &options);

} // namespace takt
