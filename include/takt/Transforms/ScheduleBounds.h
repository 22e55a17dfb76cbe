//===- ScheduleBounds.h - what no order can go below ------------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
#pragma once

#include "takt/Schedule/Pipeline.h"

#include "mlir/IR/BuiltinOps.h"

#include <optional>
#include <string>

namespace takt {

/// Lower bounds, in ns, on the calls of a step of the program in `module`: with
/// its stages, where they lie, and backward in two halves, which is the freest
/// order. Memory does not limit them, and the fastest message counts for all.
/// Nothing, and a sentence in `error`, without stages or costs.
std::optional<PipelineBounds> scheduleBounds(mlir::ModuleOp module,
                                             std::string &error);

} // namespace takt
