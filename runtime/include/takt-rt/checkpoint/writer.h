//===- writer.h - checkpoints while training goes on ------------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Between two steps the state is copied; a thread of the writer's own then puts
// it on the disk while the next steps run. One copy exists: a checkpoint that
// falls due while the one before it is still being written waits for that.
//
// Each process writes the shards of its ranks into "DIR/.step-N.RUN.tmp"; when
// all have reported, the process that commits adds the index and the manifest,
// brings all to the disk and renames the folder. What goes wrong on the way
// leaves the checkpoints before as they are. Old ones are removed after that,
// renamed first, so that no half one keeps a checkpoint's name.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "takt-rt/checkpoint/gather.h"
#include "takt-rt/checkpoint/manifest.h"
#include "takt-rt/checkpoint/state.h"

#include <memory>
#include <string>
#include <vector>

namespace takt::rt {

struct CheckpointOptions {
  std::string folder;
  int64_t keep = 0;   ///< checkpoints that stay, newest first; 0: all
  std::string writer; ///< program and version
  /// A word that all processes of this run share and no other run has.
  std::string run;
  int64_t startStep = 0; ///< steps done before this run
  /// The ranks of this process; empty: all of the plan.
  std::vector<int32_t> ranks;
};

/// What became of a checkpoint; on processes that do not commit, of their part.
struct CheckpointOutcome {
  int64_t step = 0;
  std::string path;
  std::string error;   ///< empty when it is on the disk
  int32_t failedRank = -1; ///< whose error that is, if another process's
  std::string warning; ///< an old one could not be removed
  Bytes bytes = 0;     ///< of all files
  Nanos time = 0;      ///< of writing, beside training
};

class CheckpointWriter {
public:
  /// Prepares the folder, on the process that commits: makes it, takes it for
  /// this run, removes what earlier runs left unfinished. Throws `Error`
  /// (BadInput) when that fails, another run has it, or it holds checkpoints
  /// beyond `startStep`, which would be mistaken for this run's; those that are
  /// not whole are put aside as "broken-step-N". Plan and gather must outlive
  /// the writer; `memory` must be good until it is destroyed.
  CheckpointWriter(const Plan &plan, CheckpointOptions options,
                   StateMemory memory, Gather &gather);
  /// Waits for what is being written.
  ~CheckpointWriter();

  /// Copies the state, which no step may be changing, and begins to write it.
  /// `at` says step, samples and the rest; its files are filled in.
  void save(Manifest at);

  /// Waits for what is being written.
  void wait();

  /// What was finished since this was last asked.
  std::vector<CheckpointOutcome> outcomes();

private:
  class Impl;
  std::unique_ptr<Impl> impl;
};

} // namespace takt::rt
