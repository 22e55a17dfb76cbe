//===- ModelBridge.h - model IR to and from plain structs -------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Carries a model between the reader's spec, the `model` dialect and the flat
// graph on which the libraries work. Export expects IR that verifies.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "Model/ModelDialect.h"
#include "takt/Cost/Cost.h"
#include "takt/Frontend/Spec.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

#include <optional>

namespace takt::model {

//===----------------------------------------------------------------------===//
// Import
//===----------------------------------------------------------------------===//

/// A module with one `model.graph`. The spec must have passed the reader. Every
/// op has the place in the file that it comes from as its location.
mlir::OwningOpRef<mlir::ModuleOp> importModel(const ModelSpec &spec,
                                              mlir::MLIRContext *context);

/// Gives every layer its costs of the table, which is indexed by the layers of
/// `exportGraph(graph)`, and the graph the table's options and source. A layer
/// in a repeat keeps one cost where all repetitions agree, else one for each.
void annotateCosts(GraphOp graph, const CostTable &table);
/// The same for several kinds of device, whose tables have the same options.
void annotateCosts(GraphOp graph, const std::vector<KindCosts> &kinds);

//===----------------------------------------------------------------------===//
// Export
//===----------------------------------------------------------------------===//

/// The graph with all repeats unrolled: the one that `buildGraph` makes of the
/// spec that the IR was imported from.
Graph exportGraph(GraphOp graph);

rt::Training exportTraining(GraphOp graph);
DataKind exportData(GraphOp graph);

/// Costs by layer of `exportGraph`, or nothing when a layer has none. Those of
/// a kind of device where layers name kinds; without `device` the first of
/// them.
std::optional<CostTable> exportCosts(GraphOp graph,
                                     llvm::StringRef device = {});

/// Location of each layer of `exportGraph`, for diagnostics.
std::vector<mlir::Location> layerLocations(GraphOp graph);

//===----------------------------------------------------------------------===//
// Parts
//===----------------------------------------------------------------------===//

/// A parameter as a plain struct, under the name that it has in IR.
rt::Param describeParam(ParamOp param);

/// A tensor of one sample; the type must be one that the dialect allows.
TensorType describeType(mlir::Type type);
mlir::RankedTensorType tensorType(const TensorType &type,
                                  mlir::MLIRContext *context);

} // namespace takt::model
