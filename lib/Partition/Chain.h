//===- Chain.h - a partition problem made fast to ask -----------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// What the solver's parts share. Segments that can never be separated (no cut
// allowed between them, or cuts given by the user) are one *group*; all of the
// solver speaks of groups. Time, memory and all-reduce of any stage, a range of
// groups, take constant time.
//
// Side constraints. Segments to be kept apart bound how far a stage may reach,
// which is asked wherever memory is. Pins speak of a stage's number, which a
// search from the end of the chain knows only where the number of stages is
// given: solvePartition tries one after the other.
//
// Positions. Stages use devices in order, so whether a stage or a boundary
// crosses nodes depends only on the position of its first device modulo
// `period`. The period is 1 where positions do not matter: one node, or nodes
// of one device.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "takt/Partition/Problem.h"
#include "takt/Support/Search.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace takt::partition {

/// Greater than every objective; sums of a few do not overflow.
constexpr Nanos kNever = std::numeric_limits<int64_t>::max() / 8;

/// A stage as the solver sees it: groups [begin, end) on the replicas of an
/// option of the chain.
struct Stage {
  int32_t begin = 0, end = 0, option = 0;
  bool operator==(const Stage &o) const {
    return begin == o.begin && end == o.end && option == o.option;
  }
};
using Stages = std::vector<Stage>; ///< in order of the chain

/// Objective of an assignment with its parts; `total` is kNever when it breaks
/// a limit.
struct Score {
  Nanos total = kNever, sum = 0, slowest = 0, reduce = 0;
};

/// Transitions looked at, and when to stop. The search for a first answer goes
/// on when the process is interrupted.
struct WorkMeter {
  int64_t done = 0;
  int64_t limit = 0;
  bool mayBreak = true;
  bool exhausted() const {
    return done >= limit || (mayBreak && search::interrupted());
  }
};

class Chain {
public:
  explicit Chain(const PartitionProblem &problem);

  const PartitionProblem &problem() const { return source; }
  int32_t size() const { return int32_t(firstSegment.size()) - 1; }
  /// First segment of a group; of `size()`: the number of segments.
  int32_t segment(int32_t group) const { return firstSegment[group]; }
  int32_t numOptions() const { return int32_t(counts.size()); }
  int32_t replicas(int32_t option) const { return counts[option]; }
  int32_t problemOption(int32_t option) const { return sourceOption[option]; }
  /// Devices that some assignment can use.
  int32_t devices() const { return deviceLimit; }
  int64_t microBatches() const { return source.microBatches; }
  bool useAllDevices() const { return source.useAllDevices; }

  /// Stage count that is asked for, 0 if free, and the largest possible one.
  int32_t exactStages() const { return exact; }
  int32_t maxStages() const { return most; }

  /// Micro-batches held by a stage with `after` stages behind it.
  int64_t inFlight(int64_t after) const {
    return source.inFlight == InFlightPolicy::GPipe
               ? source.microBatches
               : std::min(source.microBatches, after + 1);
  }
  bool memoryLimited() const { return source.cluster.memory != 0; }
  bool inFlightVaries() const {
    return source.inFlight == InFlightPolicy::OneFOneB &&
           source.microBatches > 1;
  }

  Nanos time(int32_t begin, int32_t end, int32_t option) const {
    const std::vector<Nanos> &sums = timeSums[option];
    return sums[end] - sums[begin];
  }

  /// Gradient all-reduce and update of a stage.
  Nanos reduce(int32_t begin, int32_t end, int32_t option, bool network) const;
  /// The least any position gives.
  Nanos leastReduce(int32_t begin, int32_t end, int32_t option) const;

  /// Transfers over the boundary before group `at`; `option` is the one of the
  /// side with fewer replicas.
  Nanos transfer(int32_t at, int32_t option, bool network) const {
    return transfers[network][option][at];
  }
  /// The least that a neighbour of a stage with `option` can make it.
  Nanos leastTransfer(int32_t at, int32_t option) const;

  Bytes memory(int32_t begin, int32_t end, int32_t option,
               int64_t inFlight) const {
    return baseMemory(begin, end, option) +
           inFlight * memoryPerFlight(begin, end, option);
  }
  bool fits(int32_t begin, int32_t end, int32_t option,
            int64_t inFlight) const {
    return end <= reach[begin] &&
           (!memoryLimited() ||
            memory(begin, end, option, inFlight) <= source.cluster.memory);
  }
  /// Most micro-batches in flight that fit; 0: none (the stage does not fit, or
  /// holds what must be kept apart), microBatches(): any.
  int64_t maxInFlight(int32_t begin, int32_t end, int32_t option) const;
  /// Whether neither this stage nor any wider one around it fits.
  bool neverFits(int32_t begin, int32_t end, int32_t option) const;

  /// Whether stage number `index` may hold these groups. Only with
  /// `exactStages()` does a search know the index.
  bool hasPins() const { return !pins.empty(); }
  bool admits(int32_t begin, int32_t end, int32_t index) const {
    for (size_t p = firstPin[begin]; p < firstPin[end]; ++p)
      if (pins[p].second != index)
        return false;
    return true;
  }

  int32_t period() const { return positionPeriod; }
  /// Whether `count` devices from `position` on cross a node boundary.
  bool crosses(int64_t position, int64_t count) const {
    if (oneNode)
      return false;
    const int64_t node = source.cluster.devicesPerNode;
    return position % node + count > node;
  }

  /// Judges complete stages in order.
  Score score(const Stages &stages) const;
  /// The answer in the terms of the problem, evaluated.
  Partition toPartition(const Stages &stages) const;

private:
  void buildGroups();
  void buildOptions();
  void buildSideConstraints();
  void buildSums();
  void buildTransfers();
  Bytes share(int32_t boundary, int32_t option) const {
    return outputs[option][boundary];
  }
  Bytes memoryPerFlight(int32_t begin, int32_t end, int32_t option) const {
    return savedSums[option][end] - savedSums[option][begin] +
           share(begin, option);
  }
  Bytes baseMemory(int32_t begin, int32_t end, int32_t option) const;
  Bytes workspace(int32_t begin, int32_t end, int32_t option) const;

  const PartitionProblem &source;
  std::vector<int32_t> firstSegment;
  std::vector<int32_t> counts, sourceOption;
  std::vector<int32_t> reach; ///< by first group: the furthest end of a stage
  std::vector<std::pair<int32_t, int64_t>> pins; ///< group, stage; ascending
  std::vector<size_t> firstPin; ///< by group: its first in `pins`
  int32_t deviceLimit = 0, exact = 0, most = 0;
  int32_t positionPeriod = 1;
  bool oneNode = true;

  using Table = std::vector<std::vector<int64_t>>; ///< by option, group
  Table timeSums, updateSums, savedSums;
  Table outputs;                ///< share that crosses before a group
  std::vector<Bytes> stateSums; ///< weights, gradients, optimizer state
  std::vector<Bytes> gradientSums;
  std::vector<bool> gradientCrosses; ///< over the boundary before a group
  Table transfers[2];                ///< by network, option, boundary
  /// Largest workspace of 2^k groups from each on: by option, k, group.
  std::vector<Table> workspaceMax;
};

} // namespace takt::partition
