//===- BruteForce.cpp - every assignment, one by one ----------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// The oracle of the solver's tests. Enumerates all cuts and replica counts and
// judges each by the definitions alone.
//
//===----------------------------------------------------------------------===//

#include "takt/Partition/Problem.h"

#include <algorithm>
#include <tuple>

namespace takt {

namespace {

class Enumeration {
public:
  explicit Enumeration(const PartitionProblem &problem) : problem(problem) {}

  std::optional<Partition> run() {
    extend(0, 0);
    return best;
  }

private:
  /// Adds stages to `current`, which ends before segment `begin` and uses
  /// `devices` devices.
  void extend(int64_t begin, int64_t devices) {
    const int64_t segments = problem.segments.size();
    if (begin == segments) {
      judge(devices);
      return;
    }
    const int64_t options = problem.replicaOptions.size();
    for (int64_t end = begin + 1; end <= segments; ++end) {
      if (end < segments && !mayEnd(end))
        continue;
      for (int64_t option = 0; option < options; ++option) {
        const int64_t replicas = problem.replicaOptions[option];
        if (problem.rankOfStage.empty() &&
            devices + replicas > problem.cluster.devices)
          break;
        if (problem.replicas && replicas != *problem.replicas)
          continue;
        StageChoice stage;
        stage.begin = begin;
        stage.end = end;
        stage.option = option;
        current.stages.push_back(stage);
        extend(end, devices + replicas);
        current.stages.pop_back();
      }
    }
  }

  bool mayEnd(int64_t end) const {
    if (problem.cuts)
      return std::count(problem.cuts->begin(), problem.cuts->end(), end) > 0;
    return problem.segments[end - 1].mayCutAfter;
  }

  void judge(int64_t devices) {
    const int64_t stages = current.stages.size();
    if (problem.cuts && stages != int64_t(problem.cuts->size()) + 1)
      return;
    if (problem.stages != 0 && stages != problem.stages)
      return;
    if (problem.maxStages != 0 && stages > problem.maxStages)
      return;
    if (!problem.rankOfStage.empty()) {
      // Ranks have devices, and all the same number of them.
      for (const StageChoice &stage : current.stages)
        if (stage.option != current.stages.front().option)
          return;
      devices = numRanks(problem) *
                problem.replicaOptions[current.stages.front().option];
      if (devices > problem.cluster.devices)
        return;
    }
    if (problem.useAllDevices && devices != problem.cluster.devices)
      return;
    if (!keepsSideConstraints())
      return;
    evaluate(problem, current);
    ++work;
    for (const Bytes memory : rankMemory(problem, current))
      if (problem.cluster.memory != 0 && memory > problem.cluster.memory)
        return;
    auto rank = [&](const Partition &partition) {
      return std::make_tuple(partition.objective,
                             problem.continuous ? latency(partition) : 0,
                             partition.stages.size());
    };
    if (best && rank(*best) <= rank(current))
      return;
    best = current;
    best->bound = best->objective;
    best->method = "brute force";
    best->work = work;
  }

  bool holds(size_t stage, int64_t segment) const {
    return segment >= current.stages[stage].begin &&
           segment < current.stages[stage].end;
  }

  bool keepsSideConstraints() const {
    for (size_t s = 0; s < current.stages.size(); ++s) {
      for (const SegmentPair &pair : problem.apart)
        if (holds(s, pair.first) && holds(s, pair.second))
          return false;
      for (const StagePin &pin : problem.pins)
        if (holds(s, pin.segment) && int64_t(s) != pin.stage)
          return false;
    }
    return true;
  }

  const PartitionProblem &problem;
  Partition current;
  std::optional<Partition> best;
  int64_t work = 0;
};

} // namespace

PartitionResult bruteForcePartition(const PartitionProblem &problem) {
  PartitionResult result;
  if (auto fault = problem.check()) {
    result.infeasible.reason = *fault;
    return result;
  }
  result.partition = Enumeration(problem).run();
  if (!result.partition)
    result.infeasible.reason = "no assignment keeps all limits";
  return result;
}

} // namespace takt
