//===- restore.h - training goes on from a checkpoint -----------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// A checkpoint fits every plan of its model: stages, replicas, schedule and
// cluster may be others, as tensors are found by their global names.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "takt-rt/checkpoint/folder.h"
#include "takt-rt/checkpoint/state.h"

#include <string>
#include <vector>

namespace takt::rt {

/// A checkpoint beside a plan.
struct CheckpointFit {
  std::vector<std::string> missing; ///< tensors that only the plan has
  std::vector<std::string> extra;   ///< tensors that only the checkpoint has
  /// Sentences: other shapes and types of tensors, and another layer, which
  /// would compute something else with the same tensors.
  std::vector<std::string> shapes;
  /// Sentences: what goes on in another way than before, such as the batch, or
  /// under another name.
  std::vector<std::string> changes;
  bool samePlan = false;

  bool fits() const {
    return missing.empty() && extra.empty() && shapes.empty();
  }
};

CheckpointFit compare(const Checkpoint &checkpoint, const Plan &plan,
                      const std::string &planHash);

/// Throws `Error` (BadInput) that names the tensors when the checkpoint is not
/// of the plan's model and optimizer.
void requireFit(const CheckpointFit &fit, const Checkpoint &checkpoint,
                const Plan &plan);

/// Fills the state of one rank, from the files it needs. The checkpoint fits.
void loadRank(const Checkpoint &checkpoint, const Plan &plan, int32_t rank,
              const StateMemory &memory);

} // namespace takt::rt
