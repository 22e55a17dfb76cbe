//===- PipeBridge.h - pipe IR to and from plain structs ----------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// The libraries know nothing of MLIR; these functions carry what they work on
// between IR and their structs. They read verified IR only.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "Pipe/PipeDialect.h"
#include "takt/Frontend/Spec.h"
#include "takt/Partition/Problem.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"

#include <optional>
#include <string>

namespace takt {

/// The cluster as the reader of cluster files would give it; places in the file
/// but for the file's name are lost.
ClusterSpec exportCluster(pipe::ClusterOp cluster);

/// Builds a `pipe.cluster` at the builder's insertion point.
mlir::Operation *importCluster(const ClusterSpec &cluster, mlir::OpBuilder &builder);

} // namespace takt
