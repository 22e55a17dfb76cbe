//===- Verify.cpp - independent check of an assignment --------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Recomputes everything an assignment states from the segments, device by
// device, without the functions the solver uses. It is slow and simple.
//
//===----------------------------------------------------------------------===//

#include "takt/Partition/Problem.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace takt {

namespace {

class AnswerCheck {
public:
  AnswerCheck(const PartitionProblem &problem, const Partition &partition)
      : problem(problem), partition(partition),
        stages(partition.stages.size()) {}

  std::optional<std::string> run() {
    if (auto fault = checkCover())
      return fault;
    if (auto fault = checkWishes())
      return fault;
    if (auto fault = checkSideConstraints())
      return fault;
    if (auto fault = checkDevices())
      return fault;
    for (int64_t s = 0; s < stages; ++s)
      if (auto fault = checkStage(s))
        return fault;
    return checkObjective();
  }

private:
  const StageChoice &at(int64_t s) const { return partition.stages[s]; }
  int64_t replicas(int64_t s) const {
    return problem.replicaOptions[at(s).option];
  }

  std::optional<std::string> checkCover() const {
    int64_t next = 0;
    const int64_t options = problem.replicaOptions.size();
    const int64_t segments = problem.segments.size();
    for (int64_t s = 0; s < stages; ++s) {
      if (at(s).begin != next || at(s).end <= at(s).begin)
        return fmt::format("stage {} covers segments [{}, {}), expected a "
                           "range from {}",
                           s, at(s).begin, at(s).end, next);
      if (at(s).end > segments)
        return fmt::format("stage {} ends at segment {} of {}", s, at(s).end,
                           segments);
      if (at(s).option < 0 || at(s).option >= options)
        return fmt::format("stage {} has replica option {} of {}", s,
                           at(s).option, options);
      next = at(s).end;
    }
    if (next != segments)
      return fmt::format("the stages cover {} of {} segments", next, segments);
    return std::nullopt;
  }

  /// What the user asked for: counts, cuts, replicas.
  std::optional<std::string> checkWishes() const {
    if (problem.stages != 0 && stages != problem.stages)
      return fmt::format("{} stages where {} were asked for", stages,
                         problem.stages);
    if (problem.maxStages != 0 && stages > problem.maxStages)
      return fmt::format("{} stages where at most {} are allowed", stages,
                         problem.maxStages);
    if (problem.cuts && stages != int64_t(problem.cuts->size()) + 1)
      return fmt::format("{} stages where the cuts given make {}", stages,
                         problem.cuts->size() + 1);
    for (int64_t s = 0; s + 1 < stages; ++s) {
      if (problem.cuts && (*problem.cuts)[s] != at(s).end)
        return fmt::format("stage {} ends before segment {}, the cut given is "
                           "{}",
                           s, at(s).end, (*problem.cuts)[s]);
      const SegmentCost &last = problem.segments[at(s).end - 1];
      if (!problem.cuts && !last.mayCutAfter)
        return fmt::format("stage {} ends after segment '{}', where no cut is "
                           "allowed",
                           s, last.name);
    }
    for (int64_t s = 0; s < stages; ++s)
      if (problem.replicas && replicas(s) != *problem.replicas)
        return fmt::format("stage {} has {} replicas where {} were asked for",
                           s, replicas(s), *problem.replicas);
    return std::nullopt;
  }

  std::optional<std::string> checkSideConstraints() const {
    std::vector<int64_t> stageOf;
    for (int64_t s = 0; s < stages; ++s)
      stageOf.insert(stageOf.end(), at(s).end - at(s).begin, s);
    for (const SegmentPair &pair : problem.apart)
      if (stageOf[pair.first] == stageOf[pair.second])
        return fmt::format("stage {} holds segments '{}' and '{}', which must "
                           "be kept apart",
                           stageOf[pair.first],
                           problem.segments[pair.first].name,
                           problem.segments[pair.second].name);
    for (const StagePin &pin : problem.pins)
      if (stageOf[pin.segment] != pin.stage)
        return fmt::format("segment '{}' lies in stage {}, it is pinned to {}",
                           problem.segments[pin.segment].name,
                           stageOf[pin.segment], pin.stage);
    return std::nullopt;
  }

  std::optional<std::string> checkDevices() const {
    std::set<int64_t> used;
    for (int64_t s = 0; s < stages; ++s) {
      const int64_t first = firstOfRank(s);
      if (first < s && (at(s).firstDevice != at(first).firstDevice ||
                        replicas(s) != replicas(first)))
        return fmt::format("stages {} and {} share a rank but not its devices",
                           first, s);
      if (replicas(s) != replicas(0) && !problem.rankOfStage.empty())
        return fmt::format("stages 0 and {} have {} and {} replicas, ranks of "
                           "several stages have the same",
                           s, replicas(0), replicas(s));
      for (int64_t i = 0; first == s && i < replicas(s); ++i) {
        const int64_t device = at(s).firstDevice + i;
        if (device < 0 || device >= problem.cluster.devices)
          return fmt::format("stage {} uses device {}, there are {}", s, device,
                             problem.cluster.devices);
        if (!used.insert(device).second)
          return fmt::format("stage {} uses device {}, which is taken", s,
                             device);
      }
    }
    const int64_t count = used.size();
    if (*used.rbegin() != count - 1)
      return "the devices used are not the first ones of the cluster";
    if (problem.useAllDevices && count != problem.cluster.devices)
      return fmt::format("{} of {} devices are used, all were asked for", count,
                         problem.cluster.devices);
    return std::nullopt;
  }

  std::optional<std::string> checkStage(int64_t s) const {
    const StageChoice &stage = at(s);
    if (auto fault = compare(s, "time", stage.time, timeOf(s)))
      return fault;
    if (auto fault = compare(s, "transfer", stage.transfer, transferOf(s)))
      return fault;
    if (auto fault = compare(s, "all-reduce", stage.allReduce, reduceOf(s)))
      return fault;
    if (auto fault = compare(s, "micro-batches in flight", stage.inFlight,
                             inFlightOf(s)))
      return fault;
    const Bytes memory = memoryOf(s);
    if (auto fault = compare(s, "memory", stage.memory, memory))
      return fault;
    const Bytes rank = memoryOfRank(s);
    if (problem.cluster.memory != 0 && rank > problem.cluster.memory)
      return fmt::format("stage {} needs {} bytes a device, there are {}", s,
                         rank, problem.cluster.memory);
    return std::nullopt;
  }

  /// The first stage of the rank that a stage is on.
  int64_t firstOfRank(int64_t s) const {
    if (problem.rankOfStage.empty())
      return s;
    int64_t first = 0;
    while (problem.rankOfStage[first] != problem.rankOfStage[s])
      ++first;
    return first;
  }

  bool sameRank(int64_t s, int64_t other) const {
    return firstOfRank(s) == firstOfRank(other);
  }

  std::optional<std::string> compare(int64_t s, const char *what, int64_t said,
                                     int64_t found) const {
    if (said == found)
      return std::nullopt;
    return fmt::format("stage {} states {} {}, recomputed {}", s, what, said,
                       found);
  }

  Nanos timeOf(int64_t s) const {
    Nanos time = 0;
    for (int64_t i = at(s).begin; i < at(s).end; ++i)
      time += problem.segments[i].time[at(s).option];
    return time;
  }

  /// The link among the devices of two stages, by the nodes they lie in.
  const rt::Link &linkOf(int64_t one, int64_t other) const {
    std::set<int64_t> nodes;
    for (const int64_t s : {one, other})
      for (int64_t i = 0; i < replicas(s); ++i)
        nodes.insert((at(s).firstDevice + i) / problem.cluster.devicesPerNode);
    return nodes.size() == 1 ? problem.cluster.intraNode
                             : problem.cluster.network;
  }

  Nanos transferOf(int64_t s) const {
    if (s + 1 == stages || sameRank(s, s + 1))
      return 0;
    const SegmentCost &last = problem.segments[at(s).end - 1];
    const int64_t pairs = std::min(replicas(s), replicas(s + 1));
    const Bytes rest = last.outputWhole % pairs;
    const Nanos oneWay =
        linkOf(s, s + 1).time(last.outputWhole / pairs + (rest ? 1 : 0));
    return last.gradientCrosses ? oneWay + oneWay : oneWay;
  }

  Nanos reduceOf(int64_t s) const {
    Bytes bytes = 0;
    Nanos time = 0;
    for (int64_t i = at(s).begin; i < at(s).end; ++i) {
      bytes += problem.segments[i].gradients;
      time += problem.segments[i].update[at(s).option];
    }
    if (bytes > 0)
      time += rt::allReduceTime(linkOf(s, s), replicas(s), bytes);
    return time;
  }

  int64_t inFlightOf(int64_t s) const {
    if (!problem.heldByStage.empty())
      return problem.heldByStage[s];
    const int64_t m = problem.microBatches, rest = stages - s;
    if (problem.inFlight == InFlightPolicy::GPipe || m < rest)
      return m;
    return rest;
  }

  Bytes memoryOf(int64_t s) const {
    const int64_t option = at(s).option;
    Bytes bytes = 0, largest = 0;
    for (int64_t i = at(s).begin; i < at(s).end; ++i) {
      const SegmentCost &segment = problem.segments[i];
      bytes += segment.weights + segment.gradients + segment.optimizerState +
               inFlightOf(s) * segment.saved[option];
      largest = std::max(largest, segment.workspace[option]);
    }
    if (s > 0 && !sameRank(s - 1, s)) {
      const SegmentCost &before = problem.segments[at(s).begin - 1];
      bytes += before.output[option] *
               (inFlightOf(s) + 1 + (before.gradientCrosses ? 2 : 0));
    }
    if (s + 1 < stages) {
      const SegmentCost &last = problem.segments[at(s).end - 1];
      const int64_t kept = sameRank(s, s + 1) ? inFlightOf(s) : 2;
      bytes += last.output[option] * (kept + (last.gradientCrosses ? kept : 0));
    }
    return bytes + largest;
  }

  Bytes workspaceOf(int64_t s) const {
    Bytes largest = 0;
    for (int64_t i = at(s).begin; i < at(s).end; ++i)
      largest = std::max(largest, problem.segments[i].workspace[at(s).option]);
    return largest;
  }

  /// All stages of the rank of a stage, which take turns with a workspace.
  Bytes memoryOfRank(int64_t s) const {
    Bytes bytes = 0, largest = 0;
    for (int64_t other = 0; other < stages; ++other) {
      if (!sameRank(s, other))
        continue;
      bytes += memoryOf(other) - workspaceOf(other);
      largest = std::max(largest, workspaceOf(other));
    }
    return bytes + largest;
  }

  std::optional<std::string> checkObjective() const {
    Nanos objective = 0, slowest = 0, reduce = 0;
    for (int64_t s = 0; s < stages; ++s) {
      Nanos busy = 0, tail = 0; // of the rank of the stage
      for (int64_t other = 0; other < stages; ++other)
        if (sameRank(s, other)) {
          busy += at(other).time;
          tail += at(other).allReduce;
        }
      objective += at(s).time + at(s).transfer;
      slowest = std::max({slowest, busy, at(s).transfer});
      reduce = std::max(reduce, tail);
    }
    if (problem.continuous)
      objective = slowest;
    else
      objective += (problem.microBatches - 1) * slowest + reduce;
    if (objective != partition.objective)
      return fmt::format("the objective is stated as {} ns, recomputed {} ns",
                         partition.objective, objective);
    if (partition.bound > partition.objective)
      return fmt::format("the bound {} ns lies above the objective {} ns",
                         partition.bound, partition.objective);
    return std::nullopt;
  }

  const PartitionProblem &problem;
  const Partition &partition;
  const int64_t stages;
};

} // namespace

std::optional<std::string> verify(const PartitionProblem &problem,
                                  const Partition &partition) {
  if (auto fault = problem.check())
    return fault;
  return AnswerCheck(problem, partition).run();
}

} // namespace takt
