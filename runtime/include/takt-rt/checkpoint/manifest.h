//===- manifest.h - what a checkpoint says of itself ------------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// The file "checkpoint.json" of a checkpoint. It is written last, so that a
// folder without it is no checkpoint; it carries a checksum of itself and of
// every file. Keys stay as they are, and new ones are appended:
//
//   format              1
//   writer              program and version
//   model               name of the model
//   step                steps that were done
//   samples             samples that were taken: where the data goes on
//   seed                of data and first weights: the whole random state
//   data                what the samples were taken from; may be empty
//   global_batch, micro_batches
//   optimizer           kind, learning_rate, momentum, beta1, beta2, epsilon,
//                       weight_decay, schedule, warmup_steps, total_steps,
//                       min_learning_rate
//   plan                hash, schedule, ranks, roles[]: stages[], replicas
//   files[]             name, bytes, crc32c (8 hexadecimal digits)
//   inputs[]            name, shape[] of a sample
//   layers[]            name, kind, heads[]: of attention, their number and
//                       size; in model order. Older files lack both lists.
//   crc32c              of the object without this key, printed without spaces
//
//===----------------------------------------------------------------------===//
#pragma once

#include "takt-rt/core/plan.h"

#include <cstdint>
#include <string>
#include <vector>

namespace takt::rt {

constexpr char kManifestFile[] = "checkpoint.json";
constexpr char kIndexFile[] = "model.safetensors.index.json";

struct CheckpointFile {
  std::string name;
  uint64_t bytes = 0;
  uint32_t crc = 0; ///< CRC-32C of the content
};

/// What tensors do not tell of a layer.
struct LayerForm {
  std::string name, kind;
  std::vector<int64_t> heads; ///< of attention: {heads, size of one}
};

struct Manifest {
  std::string writer;
  std::string model;
  int64_t step = 0;
  int64_t samples = 0;
  std::string data;
  Training training; ///< with the seed
  std::string planHash;
  std::string schedule;
  int32_t ranks = 0;
  struct RoleLayout {
    std::vector<int32_t> stages;
    int32_t replicas = 1;
  };
  std::vector<RoleLayout> roles;
  std::vector<CheckpointFile> files; ///< by name
  struct Input {
    std::string name;
    std::vector<int64_t> shape; ///< of a sample
  };
  std::vector<Input> inputs;
  std::vector<LayerForm> layers; ///< empty: not known
};

/// What a run of the plan says of itself, at step 0 and without files.
Manifest manifestOf(const Plan &plan, const std::string &planHash);

std::string formatManifest(const Manifest &manifest);

/// Throws `Error` (BadInput), naming the file and what is wrong, for everything
/// with another value than `formatManifest` wrote.
Manifest parseManifest(const std::string &text, const std::string &name);

} // namespace takt::rt
