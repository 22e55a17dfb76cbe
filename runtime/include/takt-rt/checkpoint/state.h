//===- state.h - the state that a checkpoint holds --------------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// What training carries from step to step, as tensors with global names: each
// parameter by its own name and, behind a point, what the optimizer keeps of
// it:
//
//   sgd       nothing
//   momentum  NAME.momentum
//   adamw     NAME.adam_m, NAME.adam_v
//
// Names do not depend on stages, ranks or replicas; the shape is the
// parameter's. A tensor is written once, by the first replica of the first role
// that holds it.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "takt-rt/core/plan.h"

#include <functional>
#include <map>
#include <string>
#include <vector>

namespace takt::rt {

/// A tensor of the state on one rank.
struct StateTensor {
  std::string name;
  std::vector<int64_t> shape;
  bool isWeight = true; ///< otherwise the optimizer's
  /// Wherever the rank keeps it; equal in all places between steps.
  std::vector<BufferRef> places;
};

/// What every rank of a role holds: weights, then the optimizer's tensors, each
/// in the order of `role.params`.
std::vector<StateTensor> stateOfRole(const Plan &plan, const Role &role);

/// What one rank writes: a file of weights and one of the optimizer's tensors,
/// whose name is empty when there are none of them.
struct CheckpointShard {
  int32_t rank = 0;
  std::string weightFile, optimizerFile;
  std::vector<StateTensor> weights, optimizer;
};

/// The shards of a plan by rank; ranks that write nothing have none. Files are
/// "model-00001-of-00004.safetensors" and
/// "optimizer-00001-of-00004.safetensors". Throws `Error` (BadInput) when two
/// tensors would have one name.
std::vector<CheckpointShard> checkpointShards(const Plan &plan);

/// The first element of a persistent float buffer of a rank that this process
/// holds.
using StateMemory = std::function<float *(int32_t rank, const BufferRef &)>;

} // namespace takt::rt
