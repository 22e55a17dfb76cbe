//===- CountedNew.cpp - allocations of a thread ---------------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// The array and nothrow forms of the standard library end in these two.
//
//===----------------------------------------------------------------------===//

#include "CountedNew.h"

#include <cstdlib>
#include <new>

static thread_local uint64_t count = 0;

uint64_t takt::rt::test::allocationsHere() { return count; }

void *operator new(std::size_t bytes) {
  ++count;
  if (void *memory = std::malloc(bytes > 0 ? bytes : 1))
    return memory;
  throw std::bad_alloc();
}

void *operator new(std::size_t bytes, std::align_val_t alignment) {
  ++count;
  std::size_t grain = static_cast<std::size_t>(alignment);
  if (void *memory = std::aligned_alloc(grain, (bytes / grain + 1) * grain))
    return memory;
  throw std::bad_alloc();
}

void operator delete(void *memory) noexcept { std::free(memory); }
void operator delete(void *memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void *memory, std::align_val_t) noexcept {
  std::free(memory);
}
void operator delete(void *memory, std::size_t, std::align_val_t) noexcept {
  std::free(memory);
}
