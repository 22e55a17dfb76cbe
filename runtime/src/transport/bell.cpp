//===- bell.cpp - waking a rank that waits --------------------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// A ring raises the count and then reads the number of sleepers; a sleeper
// raises that number and then has the kernel compare the count. Both are
// sequentially consistent, so either the ringer sees the sleeper or the sleeper
// sees the ring. A sleeper that is killed leaves the number raised, which costs
// a system call a ring and nothing else.
//
//===----------------------------------------------------------------------===//

#include "takt-rt/transport/bell.h"

#include <climits>
#include <ctime>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <thread>
#include <unistd.h>

namespace takt::rt {

static_assert(std::atomic<uint32_t>::is_always_lock_free);
static_assert(sizeof(std::atomic<uint32_t>) == sizeof(uint32_t));

using Clock = std::chrono::steady_clock;

void Bell::ring() {
  count.fetch_add(1, std::memory_order_seq_cst);
  if (sleepers.load(std::memory_order_seq_cst) != 0)
    syscall(SYS_futex, &count, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

static void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

void Bell::wait(uint32_t seen, Nanos spin, MoveTime until) {
  constexpr int kLooksAClock = 32;
  constexpr int kYields = 4;
  if (spin > 0) {
    Clock::time_point end =
        std::min(until, Clock::now() + std::chrono::nanoseconds(spin));
    do {
      for (int i = 0; i < kLooksAClock; ++i) {
        if (rings() != seen)
          return;
        relax();
      }
    } while (Clock::now() < end);
  }
  for (int i = 0; i < kYields; ++i) {
    if (rings() != seen)
      return;
    std::this_thread::yield();
  }
  sleepers.fetch_add(1, std::memory_order_seq_cst);
  while (count.load(std::memory_order_seq_cst) == seen) {
    timespec left{};
    if (until != MoveTime::max()) {
      Nanos nanos = (until - Clock::now()) / std::chrono::nanoseconds(1);
      if (nanos <= 0)
        break;
      left.tv_sec = nanos / 1'000'000'000;
      left.tv_nsec = nanos % 1'000'000'000;
    }
    syscall(SYS_futex, &count, FUTEX_WAIT, seen,
            until == MoveTime::max() ? nullptr : &left, nullptr, 0);
  }
  sleepers.fetch_sub(1, std::memory_order_seq_cst);
}

} // namespace takt::rt
