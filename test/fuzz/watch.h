//===- watch.h - what an input makes the reader do --------------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Counts the branches of instrumented code and the bytes that are allocated, so
// that a hang or a memory bomb is found by counting and not by a clock.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <cstddef>
#include <cstdint>

namespace takt::fuzz {

/// Of one input. Beyond these the program ends as if a promise was broken.
constexpr uint64_t kMostBranches = 1'000'000'000;
constexpr size_t kMostBytes = size_t(1) << 30;

/// Starts counting memory; once, before the first input.
void startWatch();
/// Begins a new input.
void beginInput();
uint64_t branches(); ///< taken by this input so far
size_t peakBytes();  ///< allocated at one time during this input
/// True if the input took a branch that none before it took.
bool reachedNewCode();
size_t knownBranches(); ///< different ones taken by all inputs

} // namespace takt::fuzz
