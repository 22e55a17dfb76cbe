//===- GraphClash.h - constraints that no order keeps -----------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// "Is there any order and any cut that keeps these?" without times. A truth a
// layer and stage, "lies here or before", closed under predecessors; what
// depends on the order within a stage, and what a stage keeps beside its
// parameters, is left out, so that a question without an answer is a proof.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "takt/Cost/GraphStages.h"
#include "takt/Support/Search.h"

#include <functional>
#include <set>

namespace takt {

class GraphQuestion {
public:
  /// `edges` of the layers, all to one further down the model.
  GraphQuestion(const Graph &graph, const GraphProblem &relaxed,
                const PartitionProblem &base,
                const std::vector<std::pair<int32_t, int32_t>> &edges,
                const std::vector<ConstraintSpec> &specs);

  /// Whether it is small enough to be decided fast.
  bool fits() const;
  /// A rule for each of the constraints that are `kept`, in this order.
  solver::Problem pose(const std::vector<int32_t> &kept) const;

  /// The layers by the stages of an answer.
  std::vector<int32_t> orderOf(const solver::Values &values) const;

private:
  struct Posing;
  const Graph &graph;
  const GraphProblem &relaxed;
  const PartitionProblem &base;
  const std::vector<std::pair<int32_t, int32_t>> &edges;
  const std::vector<ConstraintSpec> &specs;
  int64_t stages = 1; ///< most
};

struct GraphClashInput {
  const Graph &graph;
  const GraphProblem &relaxed;
  const PartitionProblem &base;
  const std::vector<std::pair<int32_t, int32_t>> &edges;
  const std::vector<ConstraintSpec> &specs;
  const solver::Settings &settings;
};
/// Stages with only these constraints.
using AssignWithout = std::function<GraphStages(const std::set<int32_t> &kept)>;

/// Which constraints clash whatever the order, and what to give up. No lists:
/// that is not proven of any.
ClashReport explainGraphClash(const GraphClashInput &input,
                              const AssignWithout &assign);

} // namespace takt
