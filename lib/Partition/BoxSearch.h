//===- BoxSearch.h - branch and bound over limits ---------------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// The objective is a sum plus two maxima, the slowest time T and the longest
// all-reduce A. Under *limits* on both, the sum alone is to be minimised, which
// dynamic programs do. The search therefore branches over boxes of limits
//
//     low.time <= T <= high.time,   low.reduce <= A <= high.reduce
//
// with the bound  least sum under `high` + (m - 1) low.time + low.reduce.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "LabelSearch.h"
#include "Thresholds.h"

#include <set>

namespace takt::partition {

class BoxSearch {
public:
  BoxSearch(const Chain &chain, WorkMeter &meter);

  /// Starts from an assignment that keeps all limits and ends with the best
  /// one, or the best seen when the meter runs out.
  void run(Stages start);

  const Stages &stages() const { return best; }
  Nanos objective() const { return bestTotal; }
  /// Proven: no assignment has a smaller objective.
  Nanos bound() const { return std::min(bestTotal, unresolved); }

private:
  struct Box {
    Limits low, high;
    Nanos sum = 0; ///< lower bound of the sum under `high`
    Nanos bound = 0;
    int64_t id = 0; ///< of creation, for a fixed order among equal bounds
    bool operator<(const Box &o) const {
      return bound != o.bound ? bound < o.bound : id < o.id;
    }
  };

  Nanos weight() const { return chain.microBatches() - 1; }
  Nanos valueAt(Nanos sum, const Limits &corner) const {
    return sum + weight() * corner.time + corner.reduce;
  }
  void consider(Stages stages);
  bool shrink(Box &box) const;
  void add(Box box);
  void addHalves(Box box, Nanos Limits::*side);
  void split(const Box &box, const Limits &corner);
  void process(Box box);
  void searchLabels(const Box &box, Limits &corner);
  Limits relaxedCorner(const Box &box) const;

  const Chain &chain;
  WorkMeter &meter;
  Thresholds thresholds;
  Relaxation relaxation;
  LabelSearch labels;
  std::set<Box> open;
  int64_t created = 0;
  Stages best;
  Nanos bestTotal = kNever;
  Nanos unresolved = kNever; ///< least bound of what was given up
  search::Running running{"stages: exact search"};
};

} // namespace takt::partition
