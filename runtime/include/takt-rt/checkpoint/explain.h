//===- explain.h - what is in a checkpoint ----------------------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// The report of `takt-plan explain checkpoint`. Keys of the JSON object; they
// stay as they are, and new ones are appended:
//
//   checkpoint, model, step, samples, seed, data, optimizer, writer
//   plan               hash, schedule, ranks, roles[]: stages[], replicas
//   files[]            name, bytes
//   tensors[]          name, dtype, shape[], bytes, file, is_weight
//   passed_over[]      checkpoint, fault: newer ones that are not whole
//   fit                null without a plan, else
//     fits, same_plan
//     missing[], extra[], shapes[], changes[]
//     ranks[]          rank, role, bytes, loads[]: file, tensors[]
//
//===----------------------------------------------------------------------===//
#pragma once

#include "takt-rt/checkpoint/folder.h"
#include "takt-rt/checkpoint/restore.h"

#include <optional>
#include <string>
#include <vector>

namespace takt::rt {

/// What a rank of a plan would load, file by file.
struct RankLoads {
  int32_t rank = 0;
  std::string role;
  Bytes bytes = 0;
  std::vector<std::pair<std::string, std::vector<std::string>>> files;
};

struct CheckpointReport {
  FoundCheckpoint found;
  std::string model;                ///< the plan's
  std::optional<CheckpointFit> fit; ///< with a plan
  std::vector<RankLoads> ranks;     ///< with a plan; tensors that are there
};

/// `plan` may be null.
CheckpointReport explainCheckpoint(FoundCheckpoint found, const Plan *plan);

std::string printText(const CheckpointReport &report);
std::string toJson(const CheckpointReport &report);

} // namespace takt::rt
