//===- ByModel.h - stages by a published model ------------------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Poses a problem of stage assignment to the planner of a published system and
// brings its answer back: stages, and the time that its own formula expects.
// What Takt alone knows (kept inputs, updates, side constraints) is not asked;
// whoever takes the answer has to check it against the problem. What a planner
// knows and Takt has not (tensor parallelism, recomputation, two versions of
// the weights) it may not choose.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "takt/Partition/Problem.h"

#include <optional>
#include <string>
#include <vector>

namespace takt {

enum class CostModel : uint8_t {
  Takt,            ///< the objective of Problem.h
  PipeDream,       ///< steady state of single micro-batches, levels of links
  Dapple,          ///< pivot latency of a step
  TwoBw,           ///< equal blocks, replicas of whole pipelines
  DnnPartitioning, ///< load of the busiest device, no replicas; graphs
  Piper,           ///< time per sample, replicas by stage; graphs
};

/// "takt", "pipedream", "dapple", "2bw", "dnn-partitioning", "piper".
const char *costModelName(CostModel model);
std::optional<CostModel> parseCostModel(const std::string &name);
/// "'takt', 'pipedream', ... and 'piper'".
std::string costModelNames();
/// Whether its planner cuts graphs and not only chains.
bool plansGraphs(CostModel model);

struct ModelledStages {
  std::vector<StageChoice> stages; ///< segments and replicas only
  Nanos step = 0; ///< micro-batches by the formula, without a step's other ends
  /// Of graphs: the segments in the order that the stages cut.
  std::vector<int32_t> order;
};

/// Why there are no stages.
struct ModelFault {
  std::string text;
  bool infeasible = false; ///< nothing fits by the formula; else bad input
};

/// Stages by a model other than Takt's on devices in their order, or a fault;
/// PipeDream and DAPPLE take all devices. `forward`: of each segment's time on
/// one device, for the whole micro-batch. Numbers of stages, cuts, replicas and
/// placements that the problem asks for are refused, but for the most stages
/// with DAPPLE and dnn-partitioning.
std::optional<ModelledStages> stagesByModel(const PartitionProblem &problem,
                                            CostModel model,
                                            const std::vector<Nanos> &forward,
                                            ModelFault &fault);

/// What one segment of a graph makes and others read.
struct SegmentTensor {
  int32_t producer = 0;
  std::vector<int32_t> readers; ///< ascending
  Bytes bytes = 0;              ///< of a micro-batch, one way; 0: order only
  bool gradient = true;         ///< one flows back
};

/// The same for segments that are a graph, with a model that plans graphs.
std::optional<ModelledStages>
graphStagesByModel(const PartitionProblem &problem, CostModel model,
                   const std::vector<SegmentTensor> &tensors,
                   ModelFault &fault);

} // namespace takt
