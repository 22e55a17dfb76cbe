//===- PipeBridge.h - pipe IR to and from plain structs ---------*- C++ -*-===//
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

#include "Model/ModelDialect.h"
#include "Pipe/PipeDialect.h"
#include "takt/Cost/Cost.h"
#include "takt/Frontend/Spec.h"
#include "takt/Partition/Problem.h"
#include "takt/Schedule/Schedule.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"

#include <optional>
#include <string>

namespace takt::pipe {

//===----------------------------------------------------------------------===//
// Clusters
//===----------------------------------------------------------------------===//

/// The cluster as the reader of cluster files would give it; of the places in
/// the file only its name is kept.
ClusterSpec exportCluster(ClusterOp cluster);

/// Builds a `pipe.cluster` at the builder's insertion point. The spec must have
/// passed the reader.
ClusterOp importCluster(const ClusterSpec &cluster, mlir::OpBuilder &builder);

/// The cluster as stage assignment sees it: equal nodes in a row. A cluster of
/// several device kinds or unlike nodes gives nothing and a sentence in
/// `error`.
std::optional<PartitionCluster> exportPartitionCluster(ClusterOp cluster,
                                                       std::string &error);

/// Builds a `pipe.constraint` for each, at the builder's insertion point, with
/// the place of its line.
void importConstraints(const std::vector<ConstraintSpec> &constraints,
                       mlir::OpBuilder &builder);
/// The constraints of a module, in order.
std::vector<ConstraintSpec> exportConstraints(mlir::ModuleOp module);

/// What a library needs of a link class; of none, a free link without a name.
rt::Link exportLink(LinkAttr link);

/// What calls and transfers share on its nodes. A device's port in a node has
/// the bandwidth of the node's link class, that to other nodes the network's
/// unless the nodes say otherwise.
std::vector<rt::NodeResources> exportResources(ClusterOp cluster);

//===----------------------------------------------------------------------===//
// Programs
//===----------------------------------------------------------------------===//

/// A program with what it names.
struct ProgramParts {
  ProgramOp program;
  model::GraphOp graph;
  ClusterOp cluster;
};

/// The one program of a module; nothing, and a sentence in `error`, if there is
/// none or more than one.
std::optional<ProgramParts> findProgram(mlir::ModuleOp module,
                                        std::string &error);

/// Of a program: the layers of the model in the order of the stages, where cuts
/// are not those of a chain. Each is then a segment of its own.
constexpr llvm::StringLiteral kOrderAttr = "takt.order";

/// The model of a program as its stages have it: layers, and their costs
/// (nothing if a layer has none), in the order of the stages.
struct StagedModel {
  Graph graph;
  std::optional<CostTable> costs;
  std::vector<Segment> segments;
  std::vector<int32_t> order; ///< layers of the model; empty: as they are
};
StagedModel exportModel(const ProgramParts &parts);

/// Costs of the layers on one kind of device, in the order of the stages.
std::optional<CostTable> exportCosts(const ProgramParts &parts,
                                     llvm::StringRef device);

/// The assignment that a program states. `StageChoice::option` indexes
/// `replicaOptions`, the options of the graph's costs; -1 for a number of
/// replicas that is not among them.
Partition exportPartition(ProgramOp program,
                          const std::vector<int64_t> &replicaOptions);

/// Where stages share devices: their ranks, and what each holds.
void exportPlacement(ProgramOp program, PartitionProblem &problem);

/// The compute actions of every role.
Schedule exportSchedule(ProgramOp program);

/// Compute actions as the attribute of a role.
ActionsAttr importActions(const std::vector<Action> &actions,
                          mlir::MLIRContext *context);

} // namespace takt::pipe
