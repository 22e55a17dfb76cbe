//===- ByPublishedModel.h - stages that a formula chooses -------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Stages by takt/Partition/Costs/ByModel.h, with faults where users look for
// them and the bound of Takt's own objective.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "Model/ModelBridge.h"
#include "takt/Cost/GraphStages.h"

#include <optional>

namespace takt {

struct ByPublishedModel {
  ByPublishedModel(model::GraphOp graph, CostModel model, int64_t workLimit)
      : graph(graph), model(model), workLimit(workLimit) {}

  /// Sets `step` if there are stages; without any, `result` says why, or there
  /// is an error.
  llvm::LogicalResult solve(const std::vector<Segment> &segments,
                            const CostTable &costs,
                            const PartitionProblem &problem,
                            PartitionResult &result);
  llvm::LogicalResult solveGraph(const Graph &layers,
                                 const rt::Training &training,
                                 const CostTable &costs,
                                 const PartitionProblem &problem,
                                 GraphStages &found);

  std::optional<Nanos> step; ///< by the formula

private:
  llvm::LogicalResult refuseConstraints();
  llvm::LogicalResult report(const ModelFault &fault);
  llvm::LogicalResult checkFits(const PartitionProblem &problem,
                                const Partition &partition);

  model::GraphOp graph;
  const CostModel model;
  const int64_t workLimit;
};

} // namespace takt
