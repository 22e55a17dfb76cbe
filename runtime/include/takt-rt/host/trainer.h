//===- trainer.h - training from a plan -------------------------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Trains from a plan, or goes forward alone where it is one of inference: a
// thread a rank of this process, kept over the steps,
// each stepping the interpreter over its `HostDevice`. A process has all ranks,
// or one of them and talks to the others through `Seats`; then all processes
// call the same functions in the same order, and what concerns the whole run is
// returned at rank 0.
//
// A step begins on all ranks at one moment and ends when the last is done. Its
// loss is the sum over micro-batches in order, within one over the replicas in
// order, in double. Whatever fails on a rank stops all ranks and is thrown by
// `step`; a step in which no rank of this process completes anything for as
// long as patience allows ends with `Error` (Timeout), which names what each
// rank is held up in.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "takt-rt/checkpoint/safetensors.h"
#include "takt-rt/core/interpreter.h"
#include "takt-rt/core/plan.h"
#include "takt-rt/data/source.h"
#include "takt-rt/host/profile.h"
#include "takt-rt/transport/patience.h"
#include "takt-rt/transport/team.h"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace takt::rt {

/// Which ranks this process has, and its ways to the others. All outlive the
/// trainer.
struct Seats {
  std::vector<int32_t> ranks;     ///< ascending
  std::vector<int32_t> nodeRanks; ///< whose memory is this machine's
  Exchange *exchange = nullptr;
  Team *team = nullptr;
  const Interrupt *interrupt = nullptr;
  Patience *patience = nullptr;
};

struct TrainerOptions {
  /// Null: this process has all ranks.
  const Seats *seats = nullptr;
  /// First values by global name; parameters not in it are drawn from the
  /// plan's seed. Null: all are drawn.
  const TensorMap *weights = nullptr;
  double timeoutSeconds = 600; ///< without seats
  /// Messages take no less time than over the links of the plan.
  bool emulateLinks = false;
  /// Asked on every process after its share of a step.
  std::function<bool()> stopWanted;
  /// Steps that were done before: the first step is this one, counted from 0.
  int64_t firstStep = 0;
  /// Leave parameters at zero, for a caller that fills them through `state`.
  bool leaveUnset = false;
  bool trace = false; ///< fill `StepResult::records`
  /// Keep the summed gradients of the first step, as the updates read them.
  bool keepGradients = false;
  /// Fill `StepResult::outputs`, of a plan that has an output.
  bool keepOutputs = false;
};

struct StepResult {
  int64_t step = 0;  ///< counted from 0, and from the first of earlier runs
  double loss = 0;   ///< 0 when no role has a loss
  Nanos time = 0;    ///< from the common start to the last rank's end
  bool stop = false; ///< a process wanted to stop; all processes agree on it
  /// At rank 0, of all ranks when tracing: by rank, in order of completion.
  std::vector<Record> records;
  /// At rank 0, when they are kept: the plan's output for every sample of the
  /// step, in the order of the samples.
  std::vector<float> outputs;
};

class Trainer {
public:
  /// Plan and source must outlive the trainer. Throws `Error`: DoesNotFit when
  /// this machine cannot run the plan, BadInput when a weight has another
  /// shape.
  Trainer(const Plan &plan, const Source &source,
          const TrainerOptions &options = {});
  ~Trainer();

  /// Runs the next step. After an error no further step can be run.
  StepResult step();

  /// The first element of a weight or of optimizer state of a rank of this
  /// process; not while a step is under way.
  float *state(int32_t rank, const BufferRef &ref);

  /// Tells an observer what a rank of this process does, from the next step on;
  /// null: nobody.
  void observe(int32_t rank, RankObserver *observer);

  /// The parameters by global name; at rank 0.
  TensorMap weights() const;
  /// Summed gradients of the first step (with `keepGradients`); at rank 0.
  TensorMap gradients() const;

  /// Turns the clocks around every kernel on or off.
  void setProfiling(bool on);
  Profile profile() const; ///< at rank 0

private:
  class Impl;
  std::unique_ptr<Impl> impl;
};

/// Throws `Error` (BadInput) unless the tensors hold every parameter of the
/// plan with its shape; returns the names of those that are no parameter.
std::vector<std::string> checkWeights(const Plan &plan,
                                      const TensorMap &tensors,
                                      const std::string &file);

} // namespace takt::rt
