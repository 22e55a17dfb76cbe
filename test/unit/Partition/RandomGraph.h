//===- RandomGraph.h - small graphs for the oracle --------------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Graphs that brute force can enumerate, with every feature turned on now and
// then: several inputs, skips, towers, ties, groups, gradients as tensors of
// their own, kinds of device, replicas, memory, all cost models.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "takt/Partition/GraphProblem.h"

#include <cstdint>

namespace takt::test {

/// At most 9 nodes and 3 blocks.
GraphProblem randomGraph(uint64_t seed);

} // namespace takt::test
