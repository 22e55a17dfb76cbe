//===- SolverFailure.h - a solver that fails says so ------------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Every pass that asks the solver has an answer without it, so a failure of the
// solver is a warning; a dump that was asked for and cannot be had is an error.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "takt/Solver/Solver.h"

#include "mlir/IR/Operation.h"

namespace takt {

/// Failure if the pass should not go on.
inline llvm::LogicalResult reportFailure(mlir::Operation *op,
                                         const solver::Failure &failure) {
  if (failure.kind == solver::Failure::Kind::Dump)
    return op->emitError() << failure.message;
  if (failure)
    op->emitWarning() << "the constraint solver failed, the answer is the best "
                         "without it: "
                      << failure.message;
  return mlir::success();
}

} // namespace takt
