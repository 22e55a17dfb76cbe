//===- bell.h - waking a rank that waits ------------------------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// A bell tells one rank that something it may wait for has happened. It holds
// no pointer and no lock, so that it also works in memory that processes share;
// the sleep is Linux's futex.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "takt-rt/core/plan.h"

#include <atomic>
#include <chrono>
#include <cstdint>

namespace takt::rt {

using MoveTime = std::chrono::steady_clock::time_point;

/// The sleeper reads `rings` before it polls and passes what it read to
/// `wait`, so that a ring in between is not lost.
class Bell {
public:
  uint32_t rings() const { return count.load(std::memory_order_acquire); }
  void ring();
  /// Returns when `rings()` differs from `seen`, or at `until`: spins for
  /// `spin` nanoseconds, gives way to other threads for a while, then sleeps.
  void wait(uint32_t seen, Nanos spin, MoveTime until = MoveTime::max());

private:
  std::atomic<uint32_t> count{0};
  std::atomic<uint32_t> sleepers{0};
};

} // namespace takt::rt
