//===- DownSetProgram.h - the best chain of down-sets -----------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Dynamic program over a lattice of down-sets, from the full set down: the best
// period of all blocks above a down-set, for every use of devices by them. On
// all down-sets of a graph it is exact over every acyclic partition; on the
// prefixes of an order over all ranges of that order.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "DeviceUse.h"

#include "takt/Support/Search.h"

namespace takt::graphcut {

/// Blocks looked at; the program stops when `done` reaches `limit`. The search
/// for a first answer goes on when the process is interrupted.
struct Meter {
  int64_t done = 0, limit = 0;
  bool mayBreak = true;
  bool exhausted() const {
    return done >= limit || (mayBreak && search::interrupted());
  }
};

/// What all programs on one problem share.
struct Context {
  explicit Context(const GraphProblem &problem);

  const GraphProblem &problem;
  Condensed graph;
  LoadRules rules;
  DeviceUse use;
  std::vector<Nanos>
      leastTime; ///< of each node, on the kind that suits it best
};

struct Answer {
  GraphPartition partition; ///< no blocks: none within the limit
  bool finished = true;     ///< false: the meter stopped it
};

/// The best partition with an objective of at most `limit`.
Answer bestChain(const Context &context, const Lattice &lattice, Nanos limit,
                 Meter &meter);

} // namespace takt::graphcut
