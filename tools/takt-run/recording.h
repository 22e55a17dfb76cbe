//===- recording.h - flight recorders of a run ------------------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// What the ranks of this process are doing goes to `--record DIR`, for
// `takt-plan why-hang`; ranks that are slow are reported while the run goes on.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "checkpointing.h"
#include "run.h"

#include "takt-rt/core/plan.h"
#include "takt-rt/host/trainer.h"
#include "takt-rt/trace/flight.h"

#include <memory>
#include <set>
#include <string>
#include <vector>

namespace takt::run {

class Recording {
public:
  /// Makes a recording for each rank of this process, if one is asked for.
  /// `planHash` is of the plan as it was read; `deadline` and `predicted`, of a
  /// step, go into the recording. Throws `rt::Error` (BadInput) when a file
  /// cannot be made.
  Recording(const RunOptions &options, const rt::Plan &plan, uint64_t planHash,
            const Share &share, rt::Nanos deadline, rt::Nanos predicted);

  /// Records the ranks of a trainer, which must not run a step after this
  /// object is gone.
  void begin(rt::Trainer &trainer);

  /// After a step: says which ranks have become slow.
  void stepDone(int64_t step);

  void ended();
  void failed(int exitCode, const std::string &message);

private:
  const RunOptions &options;
  const rt::Plan &plan;
  std::vector<int32_t> ranks;
  std::vector<std::unique_ptr<rt::FlightRecorder>> recorders;
  std::set<int32_t> slow;
};

} // namespace takt::run
