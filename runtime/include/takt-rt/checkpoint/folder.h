//===- folder.h - checkpoints in a folder -----------------------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// A run keeps its checkpoints in one folder, each in a folder of its own:
//
//   DIR/step-00000200/checkpoint.json           what it is, and checksums
//                     model.safetensors.index.json
//                     model-00001-of-00002.safetensors ...
//                     optimizer-00001-of-00002.safetensors ...
//
// A folder gets such a name only once all that is in it is on the disk, by
// renaming it; all else in DIR begins with a point or another word and is never
// read.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "takt-rt/checkpoint/manifest.h"
#include "takt-rt/checkpoint/safetensors.h"

#include <map>
#include <string>
#include <utility>
#include <vector>

namespace takt::rt {

/// "step-00000200"; eight digits or more.
std::string checkpointName(int64_t step);

/// Steps and paths of the folders that are named as checkpoints, by step; they
/// may be damaged. None for a folder that is not there.
std::vector<std::pair<int64_t, std::string>>
listCheckpoints(const std::string &folder);

struct StoredTensor {
  std::string file; ///< path
  TensorInfo info;
};

/// A checkpoint that can be loaded.
struct Checkpoint {
  std::string path;
  Manifest manifest;
  std::map<std::string, StoredTensor> tensors; ///< by global name
};

/// How much of a checkpoint's files is looked at.
enum class Check : uint8_t {
  Sizes,   ///< every file is there and has its size
  Contents ///< and its checksum
};

/// Opens the checkpoint in exactly this folder. Throws `Error` (BadInput) with
/// the name of the file that is missing, cut short or damaged.
Checkpoint openCheckpoint(const std::string &path, Check check);

struct FoundCheckpoint {
  Checkpoint checkpoint;
  /// Newer ones that cannot be loaded: path and why.
  std::vector<std::pair<std::string, std::string>> passedOver;
};

/// Opens a checkpoint with its contents checked: `path` itself if it is one,
/// else the newest in it that is whole. Throws `Error` (BadInput) when there is
/// none, with what is wrong with each.
FoundCheckpoint findCheckpoint(const std::string &path);

} // namespace takt::rt
