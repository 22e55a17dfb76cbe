//===- store.h - the folder that a run writes to ----------------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// What the one process that commits does: it owns the folder.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "disk.h"

#include "takt-rt/checkpoint/writer.h"

#include <memory>
#include <string>
#include <vector>

namespace takt::rt {

/// Where the shards of a step go before they are a checkpoint.
std::string temporaryFolder(const CheckpointOptions &options, int64_t step);

class CheckpointStore {
public:
  /// See `CheckpointWriter`.
  explicit CheckpointStore(const CheckpointOptions &options);

  /// Makes the shards in the temporary folder a checkpoint; returns its path.
  std::string commit(const Plan &plan, Manifest manifest);
  /// Removes the temporary folder of a step that failed.
  void discard(int64_t step) noexcept;
  /// Removes the oldest checkpoints beyond those to keep.
  void removeOld();

private:
  void removeUnfinished();
  void checkNewer();

  const CheckpointOptions &options;
  std::unique_ptr<disk::FolderLock> lock;
  std::vector<std::string> paths; ///< whole ones; those of this run come last
};

} // namespace takt::rt
