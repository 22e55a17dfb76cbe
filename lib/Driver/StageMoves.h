//===- StageMoves.h - what may cross a cut of a graph -----------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// A layer of a stage whose results nobody in the stage reads may lie in the
// next one, and a layer that reads nothing of its stage in the one before. What
// is kept together moves together, with all in the stage that it would leave
// behind its readers.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "takt/Cost/Cost.h"
#include "takt/Partition/Constraints.h"

#include <nlohmann/json_fwd.hpp>

namespace takt {

/// The model and the problem that stages of a graph were assigned in.
struct StagedProblem {
  Graph graph; ///< layers in the order of the stages
  CostTable costs;
  rt::Training training;
  std::vector<ConstraintSpec> constraints;
  PartitionProblem problem; ///< of its layers, with the constraints
};

struct StageMove {
  std::vector<std::string> layers;
  bool later = false;   ///< into the stage behind the cut, else before
  std::string fault;    ///< why that cannot be; then nothing below counts
  Nanos difference = 0; ///< of the objective
  Bytes before = 0, behind = 0; ///< more memory of the stages at the cut
};

/// All moves over the cut after stage `cut`, the cheapest first.
std::vector<StageMove> movesOver(const StagedProblem &staged,
                                 const Partition &partition, size_t cut);

/// One line a move, the cheapest of either direction, and a verdict.
std::vector<std::string> moveLines(const std::vector<StageMove> &moves,
                                   Nanos objective);
nlohmann::ordered_json moveJson(const StageMove &move);

} // namespace takt
