//===- PipeDreamCosts.h - what a stage costs on a level ----------*- C++
//-*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// The formulas of PipeDream.h, one function each, for the program, the brute
// force and the check. A range is what lies after state begin - 1, up to state
// `end`.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "takt/Partition/Costs/PipeDream.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

namespace takt::partition {

constexpr double kNoPlan = std::numeric_limits<double>::infinity();

class PipeDreamCosts {
public:
  PipeDreamCosts(const PipeDreamProblem &problem, size_t level)
      : problem(problem), devices(problem.levels[level].devices),
        within(level == 0 ? 1 : double(problem.levels[level - 1].devices)),
        bandwidth(problem.levels[level].bytesPerSecond) {}

  const std::vector<int32_t> &before(int32_t state) const {
    return problem.states[size_t(state)].before;
  }
  bool isRange(int32_t begin, int32_t end) const {
    return begin == 0 || std::binary_search(before(end).begin(),
                                            before(end).end(), begin - 1);
  }
  bool mayReplicate(int64_t replicas) const {
    const auto &options = problem.replicaOptions;
    return (problem.replicas || replicas == 1) &&
           (options.empty() ||
            std::binary_search(options.begin(), options.end(), replicas));
  }
  /// `used` devices of the level from its first stage to this one.
  bool fits(int32_t begin, int32_t end, int64_t replicas, int64_t used) const {
    if (problem.memoryBytes == 0)
      return true;
    const double copies = double((devices - used + replicas - 1) / replicas);
    return copies * (sum(&ProfileState::activationBytes, begin, end) +
                     sum(&ProfileState::parameterBytes, begin, end)) <=
           problem.memoryBytes;
  }
  double stage(int32_t begin, int32_t end, double seconds,
               int64_t replicas) const {
    return (seconds + reduce(begin, end, replicas)) / double(replicas);
  }
  /// The first stage of a level.
  double alone(int32_t begin, int32_t end, double seconds,
               int64_t replicas) const {
    return (seconds + reduce(begin, end, replicas) / within) / double(replicas);
  }
  double crossing(int32_t state, int64_t replicas) const {
    if (!problem.countTransfers)
      return 0;
    return 2 * problem.states[size_t(state)].outputBytes /
           (bandwidth * double(replicas));
  }
  /// Behind the last state there is nothing to send to.
  double leaving(int32_t end, int64_t replicas) const {
    return size_t(end) + 1 == problem.states.size() ? 0
                                                    : crossing(end, replicas);
  }

private:
  double sum(double ProfileState::*figure, int32_t begin, int32_t end) const {
    return problem.states[size_t(end)].*figure -
           (begin == 0 ? 0 : problem.states[size_t(begin) - 1].*figure);
  }
  double reduce(int32_t begin, int32_t end, int64_t replicas) const {
    return 4 * double(replicas - 1) *
           sum(&ProfileState::parameterBytes, begin, end) /
           (bandwidth * double(replicas));
  }

  const PipeDreamProblem &problem;
  const int64_t devices;
  const double within, bandwidth;
};

/// Times of ranges on one machine of the level below.
class RangeTimes {
public:
  /// Of a device: sums of the profile.
  explicit RangeTimes(const PipeDreamProblem &problem)
      : states(problem.states) {}
  /// What a level within makes of each range, by begin and end.
  RangeTimes(const PipeDreamProblem &problem,
             const std::function<double(int32_t, int32_t)> &seconds)
      : states(problem.states) {
    for (int32_t begin = 0; begin < int32_t(states.size()); ++begin)
      for (int32_t end = begin; end < int32_t(states.size()); ++end)
        table.push_back(seconds(begin, end));
  }
  double at(int32_t begin, int32_t end) const {
    if (table.empty())
      return states[size_t(end)].seconds -
             (begin == 0 ? 0 : states[size_t(begin) - 1].seconds);
    const size_t b = size_t(begin), n = states.size();
    return table[b * n - b * (b - 1) / 2 + size_t(end) - b];
  }

private:
  const std::vector<ProfileState> &states;
  std::vector<double> table;
};

} // namespace takt::partition
