//===- OrderSearch.h - good orders to cut -----------------------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// A biased random-key genetic algorithm: an order is given by a key a node, the
// ready node with the smallest key comes next, and its fitness is the best cut
// of that order. The same seed gives the same answer.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "DownSetProgram.h"

namespace takt::graphcut {

/// The best answer found: no worse than the cut of the smallest-first order.
/// With `fixedOnly`, only a few orders that need no search. No blocks: no order
/// tried keeps the limits.
GraphPartition searchOrders(const Context &context, uint64_t seed,
                            bool fixedOnly, Meter &meter);

} // namespace takt::graphcut
