//===- interpreter.h - the one place that decides what runs next -*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// One interpreter runs one rank of a plan over a `Device`. The simulator is this
// interpreter over a virtual clock, execution is this interpreter over the host
// device; prediction and execution therefore cannot drift.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "takt-rt/core/plan.h"

#include <cstdint>
#include <vector>

namespace takt::rt {

/// The device table of one rank: how an instruction is begun and when it is
/// done. At most one instruction of a lane is under way at a time. A device may
/// finish an instruction inside `begin` (host kernels do).
class Device {
public:
  virtual ~Device() = default;
  /// Runs a procedure for a micro-batch (-1: the step).
  virtual void call(int lane, const Procedure &procedure, int32_t microBatch) = 0;
  /// Fills the Batch slots of a micro-batch.
  virtual void load(int lane, int32_t microBatch) = 0;
  virtual void send(int lane, uint16_t channel, int32_t microBatch) = 0;
  virtual void recv(int lane, uint16_t channel, int32_t microBatch) = 0;
  virtual void allReduce(int lane, uint16_t group) = 0;
  /// True once the instruction under way on the lane has completed; makes
  /// progress on it if the device needs the caller's thread for that.
  virtual bool done(int lane) = 0;
};

/// One executed instruction; predicted and measured runs produce the same.
struct Record {
  int32_t rank = 0;
  uint16_t lane = 0;
  uint32_t instr = 0;
  Nanos begin = 0;
  Nanos end = 0;
};

/// Told of all that a rank does, on the thread that does it.
class RankObserver {
public:
  virtual ~RankObserver() = default;
  virtual void stepBegan(int64_t step) = 0;
  virtual void began(int lane, uint32_t instr) = 0;
  virtual void completed(int lane, uint32_t instr) = 0;
  virtual void stepEnded() = 0;
};

/// How far a lane has come in a step.
struct LaneProgress {
  uint32_t completed = 0; ///< instructions
  bool running = false;   ///< the next one is under way
};

/// Runs one rank through one step.
class Interpreter {
public:
  Interpreter(const Plan &plan, int32_t rank, Device &device);

  /// Starts a step: all counts to zero.
  void reset(int64_t step = 0);
  /// Tells an observer from now on; null: nobody.
  void observe(RankObserver *newObserver) { observer = newObserver; }
  /// Begins every instruction whose waits hold and whose lane is free, and
  /// completes those that are done, until nothing more moves. Returns true if
  /// anything began or completed.
  bool advance();
  bool finished() const { return remaining == 0; }
  const std::vector<LaneProgress> &progress() const { return lanes; }
  /// Instructions completed on a lane in this step.
  uint32_t count(int lane) const { return lanes[lane].completed; }
  /// Index of the instruction under way on a lane, or -1.
  int64_t underWay(int lane) const {
    return lanes[lane].running ? int64_t(lanes[lane].completed) : -1;
  }

private:
  bool ready(int lane) const;
  void begin(int lane);
  bool visit(bool compute);

  const Plan &plan;
  const Role &role;
  Device &device;
  std::vector<LaneProgress> lanes;
  uint64_t remaining = 0;
  RankObserver *observer = nullptr;
};

} // namespace takt::rt
