//===- worker.h - one rank at work ------------------------------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// A rank of this process: its device, its interpreter, and the loop that runs a
// step. Whoever owns it gives it a thread.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "takt-rt/core/interpreter.h"
#include "takt-rt/host/host_device.h"
#include "takt-rt/transport/exchange.h"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>

namespace takt::rt::host {

class Worker {
public:
  using Clock = std::chrono::steady_clock;

  /// Everything must outlive the worker.
  Worker(const Plan &plan, int32_t rank, Exchange &exchange,
         const Source &source);

  /// Runs one step, whose records count from `start`; returns early once
  /// `stopped()`, for which the rank's bell must be rung. An idle rank polls
  /// for `spin` nanoseconds before it sleeps.
  template <typename Stopped>
  void run(int64_t step, Clock::time_point start, Nanos spin,
           const Stopped &stopped);

  int32_t rank() const { return number; }
  /// Not while a step is under way.
  HostDevice &device() { return itsDevice; }
  /// Likewise.
  void observe(RankObserver *observer) { itsInterpreter.observe(observer); }
  const Interpreter &interpreter() const { return itsInterpreter; }
  /// Of the last step; not while one is under way.
  Clock::time_point end() const { return itsEnd; }
  /// Rises whenever something moved.
  uint64_t progress() const { return moves.load(std::memory_order_relaxed); }
  /// The lanes with an instruction under way, a line each; not while a step is
  /// under way.
  std::string report() const;

private:
  const Plan &plan;
  int32_t number;
  Exchange &exchange;
  Bell &bell;
  HostDevice itsDevice;
  Interpreter itsInterpreter;
  std::atomic<uint64_t> moves{0};
  Clock::time_point itsEnd;
};

template <typename Stopped>
void Worker::run(int64_t step, Clock::time_point start, Nanos spin,
                 const Stopped &stopped) {
  itsDevice.beginStep(step, start);
  itsInterpreter.reset(step);
  while (!itsInterpreter.finished()) {
    // Read before advancing, so that no ring is missed.
    uint32_t rings = bell.rings();
    if (stopped())
      return;
    if (itsInterpreter.advance())
      moves.fetch_add(1, std::memory_order_relaxed);
    else
      bell.wait(rings, spin, exchange.lookBy(itsDevice.wakeAt()));
  }
  itsDevice.endStep();
  itsEnd = Clock::now();
}

} // namespace takt::rt::host
