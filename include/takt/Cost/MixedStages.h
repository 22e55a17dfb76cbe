//===- MixedStages.h - stages of a model on unequal devices -----*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Poses assignment to unequal devices (takt/Partition/Mixed.h) for a costed
// model. A chain is cut as it stands, a model that is none in two orders of its
// layers: that of graph assignment on the kinds of device, and the model's own.
// Every order is cut exactly; the bound of a graph holds for all of them.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "takt/Cost/GraphStages.h"
#include "takt/Partition/Mixed.h"

namespace takt {

struct MixedRequest {
  /// Stages, cuts, replicas and policy as the user wants them, and the network;
  /// its segments are not read.
  PartitionProblem options;
  std::vector<DevicePool> pools; ///< without times
  std::vector<KindCosts> costs;  ///< of every kind of the pools
  StageObjective objective = StageObjective::Time;
  Nanos maxTime = 0;
  double maxPrice = -1;
};

struct MixedStages {
  StagedGraph staged; ///< `order` is empty for a chain
  std::vector<Segment> segments;
  MixedProblem problem;
  MixedResult result;
  /// Where the constraints alone are in the way: the one whose removal costs
  /// least, or -1 if no single one is enough.
  bool clash = false;
  int32_t relief = -1;
  Nanos reliefTime = 0; ///< of a step without it
};

/// The problem of an order of the layers; nothing and a sentence in `error` if
/// a constraint names no layer, or two contradict each other openly.
std::optional<MixedProblem>
mixedProblem(const Graph &graph, const std::vector<Segment> &segments,
             const rt::Training &training, const MixedRequest &request,
             const std::vector<ConstraintSpec> &constraints,
             std::string &error);

/// `costs` of the request are in the order of `graph`. With `asGraph` cuts
/// count layers and any number of values may cross them.
MixedStages solveMixedStages(const Graph &graph, const rt::Training &training,
                             const MixedRequest &request, bool asGraph,
                             const std::vector<ConstraintSpec> &constraints,
                             int64_t workLimit, std::string &error);

} // namespace takt
