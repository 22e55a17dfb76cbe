//===- watch.cpp - what an input makes the reader do ------------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Not instrumented itself. The table of branches is indexed by the distance of
// code addresses from this file's own, so that where the program is loaded does
// not decide which mutants are kept.
//
//===----------------------------------------------------------------------===//
#include "watch.h"

#include "fuzz.h"

#include <bitset>

// GCC's sanitizer runtime has these but ships no header for them.
extern "C" int __sanitizer_install_malloc_and_free_hooks(
    void (*onAllocation)(const volatile void *, size_t),
    void (*onRelease)(const volatile void *));
extern "C" size_t __sanitizer_get_allocated_size(const volatile void *memory);

namespace takt::fuzz {

namespace {

std::bitset<1 << 20> seen;
size_t numSeen = 0;
bool isNew = false;
uint64_t count = 0;
size_t live = 0, peak = 0;

void onAllocation(const volatile void *, size_t bytes) {
  live += bytes;
  if (live > peak)
    peak = live;
  if (live > kMostBytes)
    broken("an input of a few bytes takes less than 1 GiB of memory");
}

void onRelease(const volatile void *memory) {
  size_t bytes = __sanitizer_get_allocated_size(memory);
  live = bytes < live ? live - bytes : 0;
}

} // namespace

void startWatch() {
  __sanitizer_install_malloc_and_free_hooks(onAllocation, onRelease);
}

void beginInput() {
  count = 0;
  peak = live;
  isNew = false;
}

uint64_t branches() { return count; }
size_t peakBytes() { return peak; }
bool reachedNewCode() { return isNew; }
size_t knownBranches() { return numSeen; }

void countBranch(uintptr_t from) {
  if (++count == kMostBranches)
    broken("an input of a few bytes is read in bounded work");
  size_t slot = (from - reinterpret_cast<uintptr_t>(&startWatch)) % seen.size();
  if (seen[slot])
    return;
  seen[slot] = true;
  ++numSeen;
  isNew = true;
}

} // namespace takt::fuzz

/// The compiler calls this at every branch of instrumented code.
extern "C" void __sanitizer_cov_trace_pc() {
  takt::fuzz::countBranch(
      reinterpret_cast<uintptr_t>(__builtin_return_address(0)));
}
