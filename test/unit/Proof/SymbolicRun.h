//===- SymbolicRun.h - what a plan computes, by symbols ---------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// An oracle that shares nothing with the proof: it runs a plan rank by rank
// over memory that holds hashes of how each value came about, in an order drawn
// from a seed among all that lanes and waits allow. A plan that is right gives
// the same hashes whatever the order.
//
// Roles must have equal replica counts; buffers are kept by 64-byte pieces.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "takt-rt/core/plan.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace takt::test {

/// Hashes of the parameters and losses after a step; nothing if the run stops
/// before its end or two ends disagree about a message. `seed` draws how eager
/// each lane of each rank is.
std::optional<std::vector<uint64_t>> runSymbolically(const rt::Plan &plan,
                                                     uint32_t seed);

} // namespace takt::test
