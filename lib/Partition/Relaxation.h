//===- Relaxation.h - bounds from a chain without positions -----*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// A relaxed problem that small dynamic programs solve. Given limits T on stage
// and transfer times and A on all-reduces, it asks for the least sum of stage
// and transfer times, where
//
//   - every link is the best that any position could give,
//   - the neighbour over a boundary has as many replicas as one likes,
//   - unless a number of stages is asked for, a stage holds only as many
//     micro-batches as the *fewest* stages that the devices behind it allow.
//
// Each of these only adds solutions, so the least sum is a lower bound, for the
// whole chain and for every prefix on every number of devices. The prefix
// bounds are what prunes the exact search.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "Chain.h"

namespace takt::partition {

/// Limits of a search: stage and transfer times <= time, all-reduces <= reduce.
struct Limits {
  Nanos time = kNever, reduce = kNever;
};

class Relaxation {
public:
  explicit Relaxation(const Chain &chain);

  /// Solves the relaxed problem; false when it has no solution or the meter
  /// runs out (the bounds are then those of nothing).
  bool solve(const Limits &limits, WorkMeter &meter);

  /// Least sum of the whole chain.
  Nanos sum() const { return table[index(layers, chain.size(), devices)]; }
  /// Stages with that sum; they may break what was relaxed.
  const Stages &stages() const { return best; }

  /// Lower bound of the sum of groups [0, at), transfers over boundary `at`
  /// included, on at most `most` devices in front of it and with `count`
  /// stages: exactly so many if a number of stages is asked for, else at most.
  /// kNever: impossible.
  Nanos prefix(int32_t at, int32_t most, int32_t count) const {
    return table[index(std::min(count, layers), at, most)];
  }

private:
  size_t index(int64_t layer, int64_t at, int64_t count) const {
    return size_t((layer * (chain.size() + 1) + at) * (devices + 1) + count);
  }

  /// A stage that keeps the limits, without its end and option.
  struct Candidate {
    int32_t begin;
    int32_t held; ///< most micro-batches in flight
    Nanos time;
  };
  void listCandidates(WorkMeter &meter);
  /// Candidates of an end and option, the narrowest first.
  const Candidate *beginOf(int32_t end, int32_t option) const {
    return &candidates[starts[end * chain.numOptions() + option]];
  }
  const Candidate *endOf(int32_t end, int32_t option) const {
    return &candidates[starts[end * chain.numOptions() + option + 1]];
  }

  // What the rest of the chain needs, from its end.
  void suffixByDevices(WorkMeter &meter);
  void suffixByStages(WorkMeter &meter);

  // Sums, from the start.
  void fillLayer(int32_t layer, WorkMeter &meter);
  void fillPrefix(int32_t layer, int32_t end, WorkMeter &meter);
  int32_t largestIndex(int32_t layer, int32_t end, int64_t held) const;
  Nanos leastTransfer(int32_t end, int32_t option) const {
    return end < chain.size() ? chain.leastTransfer(end, option) : 0;
  }
  void trace();
  Stage lastStage(int32_t layer, int32_t end, int32_t count) const;

  const Chain &chain;
  const int32_t devices;
  /// Layers count the stages of a prefix; 0 where the number is free: then the
  /// one layer is its own predecessor.
  int32_t layers = 0;
  bool exact = false; ///< layers are exact numbers of stages
  Limits limits;

  std::vector<Candidate> candidates;
  std::vector<size_t> starts; ///< in `candidates`, by end and option

  /// If exact: fewest devices for groups [at, size) in so many stages, by
  /// stages and boundary. Else: fewest stages for them, by boundary and
  /// devices.
  std::vector<int32_t> suffix;
  std::vector<Nanos> table;   ///< by layer, boundary, devices
  std::vector<int32_t> first; ///< first possible index, by layer and boundary
  Stages best;
};

} // namespace takt::partition
