//===- Relaxation.h - bounds from a chain without positions -------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// A relaxed problem that two small dynamic programs solve. Given limits T on
// stage and transfer times and A on all-reduces, it asks for the least sum of
// stage and transfer times, where
//
//   - every link is the best that any position could give,
//   - the neighbour over a boundary has as many replicas as one likes,
//   - a stage holds only as many micro-batches as the *fewest* stages that the
//     devices behind it allow,
//   - a number of stages that is asked for costs a price `lambda` a stage when
//     missed instead of being kept (Lagrange).
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
  bool solve(const Limits &limits, double lambda, WorkMeter &meter);

  /// Least sum of the whole chain, the price of stages settled.
  Nanos sum() const;
  /// The stages behind that sum; they may break the limits that were relaxed.
  const Stages &stages() const { return best; }

  /// Lower bound of the sum of groups [0, at) on at most `devices` devices, with
  /// the transfers over boundary `at`; `stagesLeft` is the exact number of
  /// stages there when a number is asked for. kNever: impossible.
  Nanos prefix(int32_t at, int32_t devices, int32_t stagesLeft) const {
    const Nanos bound = prefixes[index(at, devices)];
    return bound >= kNever ? kNever : bound - settle(stagesLeft);
  }

private:
  size_t index(int32_t at, int32_t devices) const {
    return size_t(at) * (chain.devices() + 1) + devices;
  }
  Nanos settle(int64_t stages) const { return price * stages; }
  bool admits(const Limits &limits, int32_t begin, int32_t end,
              int32_t option) const;
  bool fewestStages(const Limits &limits, WorkMeter &meter);
  bool leastSums(const Limits &limits, WorkMeter &meter);
  void fewestDevices(const Limits &limits, WorkMeter &meter);
  int32_t devicesLeft(const int32_t *stagesAfter, int32_t most,
                      int64_t held) const;
  void collectStages();

  const Chain &chain;
  Nanos price = 0; ///< of a stage
  /// Fewest stages that cover groups [at, size) on at most so many devices.
  std::vector<int32_t> suffixStages;
  std::vector<Nanos> prefixes;
  struct Step {
    int32_t begin, option;
  };
  std::vector<Step> steps; ///< last stage of each prefix
  Stages best;
};

} // namespace takt::partition
