//===- checkpointing.h - checkpoints of a run -------------------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Where a run begins, what it saves while it goes on, and what it says of both.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "run.h"

#include "takt-rt/checkpoint/folder.h"
#include "takt-rt/checkpoint/writer.h"
#include "takt-rt/core/plan.h"
#include "takt-rt/data/source.h"
#include "takt-rt/host/trainer.h"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace takt::run {

/// The part of a run that a process has.
struct Share {
  std::vector<int32_t> ranks; ///< of this process
  rt::Gather *gather;         ///< outlives the checkpoints
  std::string run;            ///< a word of all its processes and no other run
};

/// How a run speaks to people; silent where another process speaks for all.
struct Voice {
  std::function<void(const std::string &)> say;  ///< of what goes well
  std::function<void(const std::string &)> warn; ///< of what does not
};

class Checkpointing {
public:
  /// Opens the checkpoint to go on from, if one is asked for, checks it against
  /// the plan and gives the plan its seed. `planHash` is of the plan as it was
  /// read. Throws `rt::Error` (BadInput) when it cannot be loaded or is of
  /// another model.
  Checkpointing(const RunOptions &options, rt::Plan &plan, uint64_t planHash,
                Voice voice);

  /// Steps done before this run.
  int64_t firstStep() const { return resumed ? resumed->manifest.step : 0; }

  /// The source from the sample on that comes next.
  std::unique_ptr<rt::Source> place(std::unique_ptr<rt::Source> source) const;

  /// Tells a trainer where to begin.
  void prepare(rt::TrainerOptions &options) const;

  /// Loads the state, and takes the folder to save to. The trainer must outlive
  /// what is saved.
  void begin(rt::Trainer &trainer, const rt::Source &source,
             const Share &share);

  /// After a step, with the number of all steps done; saves when it is time,
  /// and always when the run ends with this step.
  void stepDone(int64_t steps, bool isLast);

  /// Waits for the last checkpoint. Throws `rt::Error` (BadInput) when it could
  /// not be written.
  void finish();

private:
  void resume();
  void report();
  int64_t samplesAfter(int64_t steps) const;

  const RunOptions &options;
  rt::Plan &plan;
  Voice voice;
  std::string planHash;
  std::optional<rt::Checkpoint> resumed;
  std::string data; ///< description of the source
  std::unique_ptr<rt::CheckpointWriter> writer;
  std::string lastError;
  int32_t failedRank = -1; ///< whose that is, if another process's
};

} // namespace takt::run
