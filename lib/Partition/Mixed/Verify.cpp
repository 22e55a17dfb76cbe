//===- Verify.cpp - check of an assignment to unequal devices -------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Recomputes everything an assignment states, device by device, without the
// functions the solver uses. It is slow and simple.
//
//===----------------------------------------------------------------------===//
#include "takt/Partition/Mixed.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

namespace takt {

namespace {

class AnswerCheck {
public:
  AnswerCheck(const MixedProblem &problem, const MixedPartition &partition)
      : problem(problem), chain(problem.chain), partition(partition),
        stages(int64_t(partition.stages.size())) {}

  std::optional<std::string> run() {
    if (auto fault = checkCover())
      return fault;
    if (auto fault = checkWishes())
      return fault;
    if (auto fault = checkDevices())
      return fault;
    for (int64_t s = 0; s < stages; ++s)
      if (auto fault = checkStage(s))
        return fault;
    return checkObjective();
  }

private:
  const MixedStage &at(int64_t s) const { return partition.stages[s]; }
  const DevicePool &poolOf(int64_t s) const {
    return problem.pools[at(s).pool];
  }
  int64_t replicas(int64_t s) const {
    return chain.replicaOptions[at(s).option];
  }

  std::optional<std::string> checkCover() const {
    int64_t next = 0;
    const int64_t segments = int64_t(chain.segments.size());
    for (int64_t s = 0; s < stages; ++s) {
      if (at(s).begin != next || at(s).end <= next || at(s).end > segments)
        return fmt::format("stage {} covers segments [{}, {}), expected a "
                           "range from {} within {}",
                           s, at(s).begin, at(s).end, next, segments);
      if (at(s).option < 0 ||
          at(s).option >= int64_t(chain.replicaOptions.size()))
        return fmt::format("stage {} has replica option {}", s, at(s).option);
      if (at(s).pool < 0 || at(s).pool >= int32_t(problem.pools.size()))
        return fmt::format("stage {} is in pool {} of {}", s, at(s).pool,
                           problem.pools.size());
      next = at(s).end;
    }
    if (next != segments)
      return fmt::format("the stages cover {} of {} segments", next, segments);
    return std::nullopt;
  }

  std::optional<std::string> checkWishes() const {
    if (chain.stages != 0 && stages != chain.stages)
      return fmt::format("{} stages where {} were asked for", stages,
                         chain.stages);
    if (chain.maxStages != 0 && stages > chain.maxStages)
      return fmt::format("{} stages where at most {} are allowed", stages,
                         chain.maxStages);
    std::vector<int64_t> cuts, stageOf;
    for (int64_t s = 0; s < stages; ++s) {
      if (s > 0)
        cuts.push_back(at(s).begin);
      stageOf.insert(stageOf.end(), size_t(at(s).end - at(s).begin), s);
      if (chain.replicas && replicas(s) != *chain.replicas)
        return fmt::format("stage {} has {} replicas where {} were asked for",
                           s, replicas(s), *chain.replicas);
    }
    if (chain.cuts && cuts != *chain.cuts)
      return "the cuts are not those given";
    for (const int64_t cut : cuts)
      if (!chain.cuts && !chain.segments[cut - 1].mayCutAfter)
        return fmt::format("a stage ends after segment '{}', where no cut is "
                           "allowed",
                           chain.segments[cut - 1].name);
    for (const SegmentPair &pair : chain.apart)
      if (stageOf[pair.first] == stageOf[pair.second])
        return fmt::format("stage {} holds segments '{}' and '{}', which must "
                           "be kept apart",
                           stageOf[pair.first], chain.segments[pair.first].name,
                           chain.segments[pair.second].name);
    for (const StagePin &pin : chain.pins)
      if (stageOf[pin.segment] != pin.stage)
        return fmt::format("segment '{}' lies in stage {}, it is pinned to {}",
                           chain.segments[pin.segment].name,
                           stageOf[pin.segment], pin.stage);
    return std::nullopt;
  }

  std::optional<std::string> checkDevices() const {
    std::set<std::pair<int32_t, int64_t>> used;
    for (int64_t s = 0; s < stages; ++s)
      for (int64_t i = 0; i < replicas(s); ++i) {
        const int64_t device = at(s).firstDevice + i;
        if (device < 0 || device >= poolOf(s).devices)
          return fmt::format("stage {} uses device {} of {} '{}'", s, device,
                             poolOf(s).devices, poolOf(s).kind);
        if (!used.insert({at(s).pool, device}).second)
          return fmt::format("stage {} uses device {} of '{}', which is taken",
                             s, device, poolOf(s).kind);
      }
    return std::nullopt;
  }

  /// By the nodes that the devices of two stages lie in.
  const rt::Link &linkOf(int64_t one, int64_t other) const {
    std::set<std::pair<int32_t, int64_t>> nodes;
    for (const int64_t s : {one, other})
      for (int64_t i = 0; i < replicas(s); ++i)
        nodes.insert(
            {at(s).pool, (at(s).firstDevice + i) / poolOf(s).devicesPerNode});
    return nodes.size() == 1 ? poolOf(one).intraNode : chain.cluster.network;
  }

  Nanos timeOf(int64_t s) const {
    Nanos time = 0;
    for (int64_t i = at(s).begin; i < at(s).end; ++i)
      time += poolOf(s).time[i][at(s).option];
    return time;
  }

  Nanos transferOf(int64_t s) const {
    if (s + 1 == stages)
      return 0;
    const SegmentCost &last = chain.segments[at(s).end - 1];
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
      bytes += chain.segments[i].gradients;
      time += poolOf(s).update[i][at(s).option];
    }
    if (bytes > 0)
      time += rt::allReduceTime(linkOf(s, s), replicas(s), bytes);
    return time;
  }

  int64_t heldBy(int64_t s) const {
    const int64_t m = chain.microBatches, rest = stages - s;
    return chain.inFlight == InFlightPolicy::GPipe || m < rest ? m : rest;
  }

  Bytes memoryOf(int64_t s) const {
    const int64_t option = at(s).option;
    Bytes bytes = 0, largest = 0;
    for (int64_t i = at(s).begin; i < at(s).end; ++i) {
      const SegmentCost &segment = chain.segments[i];
      bytes += segment.weights + segment.gradients + segment.optimizerState +
               heldBy(s) * segment.saved[option];
      largest = std::max(largest, segment.workspace[option]);
    }
    if (s > 0) {
      const SegmentCost &before = chain.segments[at(s).begin - 1];
      bytes += before.output[option] *
               (heldBy(s) + (before.gradientCrosses ? 3 : 1));
    }
    if (s + 1 < stages) {
      const SegmentCost &last = chain.segments[at(s).end - 1];
      bytes += last.output[option] * (last.gradientCrosses ? 4 : 2);
    }
    return bytes + largest;
  }

  std::optional<std::string> checkStage(int64_t s) const {
    const MixedStage &stage = at(s);
    const std::tuple<const char *, int64_t, int64_t> figures[] = {
        {"time", stage.time, timeOf(s)},
        {"transfer", stage.transfer, transferOf(s)},
        {"all-reduce", stage.allReduce, reduceOf(s)},
        {"micro-batches in flight", stage.inFlight, heldBy(s)},
        {"memory", stage.memory, memoryOf(s)},
    };
    for (const auto &[what, said, found] : figures)
      if (said != found)
        return fmt::format("stage {} states {} {}, recomputed {}", s, what,
                           said, found);
    if (poolOf(s).memory != 0 && stage.memory > poolOf(s).memory)
      return fmt::format("stage {} needs {} bytes a device, '{}' has {}", s,
                         stage.memory, poolOf(s).kind, poolOf(s).memory);
    return std::nullopt;
  }

  std::optional<std::string> checkObjective() const {
    Nanos time = 0, slowest = 0, reduce = 0;
    int64_t rate = 0;
    for (int64_t s = 0; s < stages; ++s) {
      time += at(s).time + at(s).transfer;
      slowest = std::max({slowest, at(s).time, at(s).transfer});
      reduce = std::max(reduce, at(s).allReduce);
      rate += poolOf(s).price * replicas(s);
    }
    time += (chain.microBatches - 1) * slowest + reduce;
    if (time != partition.time || rate != partition.rate)
      return fmt::format("a step is stated as {} ns at {} millionths an hour, "
                         "recomputed {} ns at {}",
                         partition.time, partition.rate, time, rate);
    if (partition.bound > partition.time)
      return fmt::format("the bound {} ns lies above the step of {} ns",
                         partition.bound, partition.time);
    if (problem.maxTime > 0 && time > problem.maxTime)
      return fmt::format("a step takes {} ns, at most {} ns were asked for",
                         time, problem.maxTime);
    if (problem.maxPrice >= 0 && priceOf(rate, time) > problem.maxPrice)
      return fmt::format("a step costs {}, at most {} was asked for",
                         priceOf(rate, time), problem.maxPrice);
    return std::nullopt;
  }

  const MixedProblem &problem;
  const PartitionProblem &chain;
  const MixedPartition &partition;
  const int64_t stages;
};

} // namespace

std::optional<std::string> verify(const MixedProblem &problem,
                                  const MixedPartition &partition) {
  if (auto fault = problem.check())
    return fault;
  return AnswerCheck(problem, partition).run();
}

} // namespace takt
