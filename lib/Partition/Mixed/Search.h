//===- Search.h - the label search on unequal devices -----------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// What the search knows of a problem before it starts (`MixedBounds`), and the
// search itself.
//
// A label is a suffix of the chain that is already cut, grown towards the
// start, so that the number of stages behind a new one, and with it what that
// one holds, is known. Devices of a pool are handed out from its end: a stage
// takes those next to the last taken, or begins a node of its own and leaves
// some idle. One label replaces another where it is no worse in sum, longest
// time, longest all-reduce, price, stages and devices, and lies alike in its
// nodes.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "takt/Partition/Mixed.h"

#include <array>
#include <map>
#include <tuple>

namespace takt::mixed {

using Taken = std::array<int32_t, kMaxPools>;

/// Below these no assignment of what lies in front of a segment can come.
class MixedBounds {
public:
  explicit MixedBounds(const MixedProblem &problem);

  /// Sum of stage and transfer times on `devices` of any pools.
  Nanos sum(int64_t begin, int64_t devices) const;
  /// Longest stage or transfer, with these devices taken and at most `stages`
  /// more.
  Nanos longest(int64_t begin, const Taken &taken, int64_t stages) const;
  /// Millionths an hour times nanoseconds, for the devices' busy time alone.
  double paid(int64_t begin) const { return paidSums[begin]; }

private:
  void fillSums();
  const MixedProblem &problem;
  std::vector<double> speed;    ///< of a device, by pool
  std::vector<double> workSums; ///< by segment, in device time of speed 1
  std::vector<Nanos> largest;   ///< of the segments in front
  std::vector<double> paidSums;
  double widest = 0; ///< speed times replicas of the widest stage
  /// By begin and devices; without the second if that would be too many.
  std::vector<std::vector<Nanos>> sums;
};

/// The problem without times, links and prices: only what fits matters.
MixedProblem timeless(const MixedProblem &problem);

class MixedSearch {
public:
  MixedSearch(const MixedProblem &problem, const MixedBounds &bounds,
              int64_t workLimit)
      : problem(problem), chain(problem.chain), bounds(bounds),
        workLimit(workLimit) {}

  /// With a `width` only that many labels of a boundary are extended.
  void run(size_t width);

  /// An answer to beat, if it keeps the limits.
  void offer(MixedPartition found);

  const std::optional<MixedPartition> &best() const { return answer; }
  /// After a run without width: nothing costs less.
  double boundCost() const { return proven; }
  bool exhausted() const { return done >= workLimit; }
  int64_t work() const { return done; }
  void setLimit(int64_t limit) { workLimit = limit; }
  /// What is to be least: nanoseconds, or those times millionths an hour.
  double cost(int64_t rate, Nanos time) const;

private:
  struct Label {
    Nanos sum = 0, slowest = 0, reduce = 0;
    int64_t rate = 0;
    Taken taken{}; ///< from the end of each pool
    int32_t stages = 0;
    int32_t parent = -1; ///< label behind its first stage
    /// Its first stage, which takes the devices from `offset` on.
    int32_t begin = 0, option = 0, pool = -1, offset = 0;
    double least = 0; ///< cost of all its completions
  };
  /// A stage [begin, at) with an option, wherever it is.
  struct Candidate {
    int64_t begin = 0, at = 0, option = 0;
    Bytes state = 0, saved = 0, workspace = 0, gradients = 0;
    std::vector<Nanos> time, update; ///< by pool
  };

  void expand(int64_t at, size_t width);
  void grow(Candidate &stage) const;
  bool separates(const Candidate &stage) const;
  bool fits(const Candidate &stage, const DevicePool &pool, int64_t held) const;
  bool neverFits(const Candidate &stage) const;
  void extend(const std::vector<int32_t> &open, const Candidate &stage,
              int32_t pool);
  void place(int32_t behind, const Candidate &stage, int32_t pool,
             int64_t offset);
  bool mayBegin(int64_t begin) const;
  bool admits(const Candidate &stage, int64_t index) const;
  int64_t stagesLeft(const Label &label) const;
  double leastCost(const Label &label) const;
  bool isHopeless(double least) const;
  bool beats(const Label &a, const Label &b) const;
  void keep(const Label &label);
  void finish(const Label &label);
  MixedPartition collect(const Label &label) const;
  std::vector<int32_t> sift(int64_t at, size_t width);

  const MixedProblem &problem;
  const PartitionProblem &chain;
  const MixedBounds &bounds;
  int64_t workLimit, done = 0;
  double proven = 0;
  std::vector<Label> labels;
  /// By first segment of the suffix; pool and option of its first stage, taken.
  using Key = std::tuple<int32_t, int32_t, Taken>;
  std::vector<std::map<Key, std::vector<int32_t>>> boundaries;
  std::optional<MixedPartition> answer;
  double answerCost = 0;
};

} // namespace takt::mixed
