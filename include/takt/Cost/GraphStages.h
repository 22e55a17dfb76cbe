//===- GraphStages.h - stages of a model that is no chain -------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Stage assignment where any number of values may cross a cut. Graph assignment
// (takt/Partition/GraphProblem.h) says in which order the layers stand; that
// order, and that of the model, are cut by the chain's program, which knows
// replicas, memory and side constraints. What goes past a stage passes through
// it, so a boundary carries all that is read behind it.
//
// The objective is that of a chain. Its bound holds for every order: the times of
// all layers once, and for every further micro-batch the period that graph
// assignment has proven, of layers that share a device at no cost.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "takt/Cost/Cost.h"
#include "takt/Layer/Order.h"
#include "takt/Partition/Costs/ByModel.h"
#include "takt/Partition/GraphProblem.h"

namespace takt {

/// A model with its layers in the order of the stages.
struct StagedGraph {
  std::vector<int32_t> order; ///< layers of the model
  Graph graph;
  CostTable costs;
};
StagedGraph stagedGraph(const Graph &graph, const CostTable &costs,
                        std::vector<int32_t> order);

/// What holds for every order: nodes without what only some stages need (saved
/// tensors, copies of tied weights), links without latency, the fastest of them.
/// `problem` is that of `layerSegments(graph)`.
GraphProblem graphRelaxation(const Graph &graph, const rt::Training &training,
                             const CostTable &costs,
                             const PartitionProblem &problem);

struct GraphStages {
  StagedGraph staged;
  PartitionProblem problem; ///< of `staged`
  std::vector<SideConstraint> constraints;
  PartitionResult result;
  /// Two pins that no order keeps, as indices of constraints: what is pinned by
  /// the second reads, perhaps through others, what is pinned by the first to
  /// a later stage. Empty: there are none.
  std::vector<int32_t> contradiction;
  solver::Failure failure; ///< of the bound, which then is a weaker one
  /// Constraints of the model that no order keeps, where there is no answer.
  ClashReport clash;
};

/// `problem` is that of `layerSegments(graph)` with the user's options; its cuts
/// count layers. `constraints` are those of the model, `settings` those of each
/// question to the solver.
GraphStages solveGraphStages(const Graph &graph, const rt::Training &training,
                             const CostTable &costs,
                             const PartitionProblem &problem,
                             const std::vector<ConstraintSpec> &constraints,
                             int64_t workLimit,
                             const solver::Settings &settings,
                             std::string &error);

/// Who reads what a layer makes, and what keeps layers in order.
std::vector<SegmentTensor> layerTensors(const Graph &graph,
                                        const rt::Training &training);

/// Stages by a published model that plans graphs, with the bound of
/// `solveGraphStages`; they may not fit. A fault and nothing, or no partition,
/// where there is none.
struct ModelledGraphStages {
  GraphStages found;
  Nanos step = 0; ///< by the model's formula
};
std::optional<ModelledGraphStages>
graphStagesByModel(const Graph &graph, const rt::Training &training,
                   const CostTable &costs, const PartitionProblem &problem,
                   CostModel model, int64_t workLimit, ModelFault &fault);

} // namespace takt
