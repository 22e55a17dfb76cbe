//===- crew.h - the threads behind a trainer --------------------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// A thread a rank of this process, started once, all of which run the same step
// or none. The thread that owns the crew starts a step, watches progress and
// collects what went wrong.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "worker.h"

#include "takt-rt/transport/patience.h"
#include "takt-rt/transport/team.h"

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
  /// `ranks`: those of this process. Everything must outlive the crew.
  Crew(const Plan &plan, const Source &source, Exchange &exchange,
       const std::vector<int32_t> &ranks, const Interrupt &interrupt,
       const Patience &patience);
  ~Crew();

  /// Runs one step on the ranks of this process and returns its time. Rethrows
  /// the first failure of a rank, or the reason of the interrupt; throws
  /// `Error` (Timeout) when nothing moves.
  Nanos runStep(int64_t step);

  /// The devices of this process's ranks; not while a step is under way.
  const std::vector<std::unique_ptr<Worker>> &workers() const { return ranks; }
  /// Null when the rank is none of this process.
  HostDevice *device(int32_t rank) const;

private:
  using Clock = std::chrono::steady_clock;

  void loop(Worker &rank);
  void stop();
  bool watch(std::unique_lock<std::mutex> &lock);
  uint64_t progress() const;
  std::string hangReport(int64_t step) const;
  std::string chain() const;
  int32_t size() const { return static_cast<int32_t>(ranks.size()); }
  bool isStopped() const { return stopping || interrupt.isRaised(); }

  const Plan &plan;
  Exchange &exchange;
  const Interrupt &interrupt;
  const Patience &patience;
  Nanos spin; ///< how long an idle rank polls before it sleeps
  std::vector<std::unique_ptr<Worker>> ranks;
  std::vector<std::thread> threads;

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
