//===- crew.h - the threads behind a trainer --------------------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// A thread a rank, started once, all of which run the same step or none. The
// thread that owns the crew starts a step, watches progress and collects what
// went wrong.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "takt-rt/core/interpreter.h"
#include "takt-rt/host/channels.h"
#include "takt-rt/host/host_device.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace takt::rt::host {

class Crew {
public:
  Crew(const Plan &plan, const Source &source, double timeoutSeconds);
  ~Crew();

  /// Runs one step on all ranks and returns its time. Rethrows the first
  /// failure of a rank; throws `Error` (Timeout) when nothing moves.
  Nanos runStep(int64_t step);

  /// A rank's device; not while a step is under way.
  HostDevice &device(int32_t rank) { return *ranks[rank]->device; }
  int32_t size() const { return static_cast<int32_t>(ranks.size()); }

private:
  using Clock = std::chrono::steady_clock;

  struct Rank {
    std::unique_ptr<HostDevice> device;
    std::unique_ptr<Interpreter> interpreter;
    std::atomic<uint64_t> progress{0}; ///< rises whenever something moved
    Clock::time_point end;             ///< of its last step
    std::thread thread;
  };

  void loop(int32_t rank);
  void runRank(int32_t rank);
  void stop();
  bool watch(std::unique_lock<std::mutex> &lock);
  uint64_t progress() const;
  std::string hangReport(int64_t step) const;
  std::string rankReport(int32_t rank) const;

  const Plan &plan;
  Exchange exchange;
  double timeoutSeconds;
  Nanos spin; ///< how long an idle rank polls before it sleeps
  std::vector<std::unique_ptr<Rank>> ranks;

  std::mutex mutex;
  std::condition_variable stepStarts, stepEnds;
  uint64_t generation = 0; ///< steps started
  int32_t arrived = 0;     ///< ranks that ended the step
  bool quit = false;
  int64_t currentStep = 0;
  Clock::time_point start;
  std::exception_ptr failure; ///< first of any rank
  std::atomic<bool> stopping{false};
};

} // namespace takt::rt::host
