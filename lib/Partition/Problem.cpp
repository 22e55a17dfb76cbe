//===- Problem.cpp - what an assignment costs -----------------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// The definitions behind the solver: the check of a problem, the memory of a
// stage, and the objective of an assignment, each computed from the segments.
//
//===----------------------------------------------------------------------===//

#include "Placed.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace takt {

namespace {

/// Sums of times and of bytes stay below this, so that no int64 overflows
/// when they are multiplied out.
constexpr double kLargest = 1e18;
constexpr int64_t kMostDevices = int64_t(1) << 24;
constexpr int64_t kMostMicroBatches = int64_t(1) << 28;

std::optional<std::string> checkSizes(const PartitionProblem &problem) {
  const size_t options = problem.replicaOptions.size();
  for (const SegmentCost &segment : problem.segments) {
    const std::pair<const char *, const std::vector<int64_t> *> vectors[] = {
        {"times", &segment.time},          {"updates", &segment.update},
        {"saved bytes", &segment.saved},   {"workspaces", &segment.workspace},
        {"output bytes", &segment.output},
    };
    for (const auto &[what, values] : vectors) {
      if (values->size() != options)
        return fmt::format("segment '{}' has {} {} for {} replica options",
                           segment.name, values->size(), what, options);
      if (*std::min_element(values->begin(), values->end()) < 0)
        return fmt::format("segment '{}' has negative {}", segment.name, what);
    }
    if (std::min({segment.outputWhole, segment.weights, segment.gradients,
                  segment.optimizerState}) < 0)
      return fmt::format("segment '{}' has negative bytes", segment.name);
  }
  return std::nullopt;
}

double transferBound(const rt::Link &link, double bytes) {
  return double(link.latency) +
         (link.bytesPerSecond > 0 ? bytes * 1e9 / link.bytesPerSecond : 0.0);
}

/// Whether the worst assignment's sums stay representable.
std::optional<std::string> checkMagnitudes(const PartitionProblem &problem) {
  double time = 0, bytes = 0, sent = 0, reduced = 0;
  for (const SegmentCost &segment : problem.segments)
    for (size_t o = 0; o < problem.replicaOptions.size(); ++o) {
      time += double(segment.time[o]) + double(segment.update[o]);
      bytes += double(segment.saved[o]) + double(segment.workspace[o]) +
               double(segment.output[o]);
      if (o > 0)
        continue;
      sent += double(segment.outputWhole);
      reduced += double(segment.gradients);
      bytes += double(segment.weights) + double(segment.gradients) +
               double(segment.optimizerState);
    }
  const double devices = double(problem.cluster.devices);
  const double ends = double(problem.segments.size());
  for (const rt::Link &link :
       {problem.cluster.intraNode, problem.cluster.network})
    time += 2 * ends * transferBound(link, sent) +
            2 * devices * transferBound(link, reduced);
  const double m = double(problem.microBatches);
  if (!(time * (m + 1) < kLargest))
    return "the times add up to more than can be counted in nanoseconds";
  if (!(bytes * (m + 4) < kLargest))
    return "the tensors add up to more than can be counted in bytes";
  return std::nullopt;
}

std::optional<std::string> checkCuts(const PartitionProblem &problem) {
  if (!problem.cuts)
    return std::nullopt;
  const int64_t segments = problem.segments.size();
  int64_t last = 0;
  for (const int64_t cut : *problem.cuts) {
    if (cut <= last)
      return fmt::format("cut {} does not come after {}: cuts must ascend from "
                         "1",
                         cut, last);
    if (cut >= segments)
      return fmt::format("cut {} leaves no segment behind it, there are {}",
                         cut, segments);
    last = cut;
  }
  const int64_t stages = problem.cuts->size() + 1;
  if (problem.stages != 0 && problem.stages != stages)
    return fmt::format("{} cuts make {} stages, but {} stages are asked for",
                       stages - 1, stages, problem.stages);
  return std::nullopt;
}

/// Ranks in order of their first stages, and how much each stage holds.
std::optional<std::string> checkPlacement(const PartitionProblem &problem) {
  const std::vector<int32_t> &ranks = problem.rankOfStage;
  if (ranks.size() != problem.heldByStage.size())
    return fmt::format("{} stages have a rank, {} say how many micro-batches "
                       "they hold",
                       ranks.size(), problem.heldByStage.size());
  if (ranks.empty())
    return std::nullopt;
  if (int64_t(ranks.size()) != problem.stages)
    return fmt::format("{} stages have a rank, there are {}", ranks.size(),
                       problem.stages);
  int32_t next = 0;
  for (size_t s = 0; s < ranks.size(); ++s) {
    if (ranks[s] < 0 || ranks[s] > next)
      return fmt::format("stage {} is on rank {}, expected at most {}: ranks "
                         "count by their first stages",
                         s, ranks[s], next);
    next = std::max(next, ranks[s] + 1);
    const int64_t held = problem.heldByStage[s];
    if (held < 1 || held > problem.microBatches)
      return fmt::format("stage {} holds {} of {} micro-batches", s, held,
                         problem.microBatches);
  }
  if (problem.maxStages != 0 && problem.maxStages < problem.stages)
    return fmt::format("{} stages have a rank, at most {} are allowed",
                       problem.stages, problem.maxStages);
  return std::nullopt;
}

/// What only training has.
std::optional<std::string> checkContinuous(const PartitionProblem &problem) {
  if (!problem.continuous)
    return std::nullopt;
  if (problem.microBatches != 1)
    return fmt::format("a stage of a continuous flow holds 1 micro-batch, not "
                       "{}",
                       problem.microBatches);
  if (!problem.rankOfStage.empty())
    return "stages of a continuous flow have devices of their own";
  for (const SegmentCost &segment : problem.segments)
    if (segment.gradients > 0 ||
        *std::max_element(segment.update.begin(), segment.update.end()) > 0)
      return fmt::format("segment '{}' is trained, which a continuous flow is "
                         "not",
                         segment.name);
  return std::nullopt;
}

} // namespace

std::optional<std::string> PartitionProblem::check() const {
  if (segments.empty())
    return "there is nothing to assign: the chain has no segments";
  if (cluster.devices < 1 || cluster.devicesPerNode < 1)
    return fmt::format("a cluster needs devices, not {} in nodes of {}",
                       cluster.devices, cluster.devicesPerNode);
  if (cluster.devices > kMostDevices)
    return fmt::format("{} devices are more than the {} that can be planned",
                       cluster.devices, kMostDevices);
  if (cluster.memory < 0)
    return "the memory of a device is negative";
  for (const rt::Link &link : {cluster.intraNode, cluster.network})
    if (link.latency < 0 || !(link.bytesPerSecond >= 0))
      return fmt::format("link '{}' has a negative latency or bandwidth",
                         link.name);
  if (microBatches < 1)
    return fmt::format("a step needs at least 1 micro-batch, not {}",
                       microBatches);
  if (microBatches > kMostMicroBatches)
    return fmt::format("{} micro-batches are more than the {} that can be "
                       "planned",
                       microBatches, kMostMicroBatches);
  if (replicaOptions.empty() || replicaOptions.front() < 1)
    return "replica counts start at 1";
  for (size_t i = 1; i < replicaOptions.size(); ++i)
    if (replicaOptions[i] <= replicaOptions[i - 1])
      return fmt::format("replica counts must ascend: {} after {}",
                         replicaOptions[i], replicaOptions[i - 1]);
  if (stages < 0 || maxStages < 0)
    return "a number of stages is negative";
  const int64_t count = segments.size();
  for (const SegmentPair &pair : apart)
    if (pair.first < 0 || pair.second < pair.first || pair.second >= count)
      return fmt::format(
          "segments {} and {} cannot be kept apart, there are {}", pair.first,
          pair.second, count);
  for (const StagePin &pin : pins)
    if (pin.segment < 0 || pin.segment >= count || pin.stage < 0)
      return fmt::format("segment {} of {} cannot be pinned to stage {}",
                         pin.segment, count, pin.stage);
  if (auto fault = checkSizes(*this))
    return fault;
  if (auto fault = checkMagnitudes(*this))
    return fault;
  if (auto fault = checkPlacement(*this))
    return fault;
  if (auto fault = checkContinuous(*this))
    return fault;
  return checkCuts(*this);
}

Bytes stageMemory(const PartitionProblem &problem, int64_t begin, int64_t end,
                  int64_t option, int64_t inFlight) {
  Bytes state = 0, saved = 0, workspace = 0;
  for (int64_t i = begin; i < end; ++i) {
    const SegmentCost &segment = problem.segments[i];
    state += segment.weights + segment.gradients + segment.optimizerState;
    saved += segment.saved[option];
    workspace = std::max(workspace, segment.workspace[option]);
  }
  Bytes buffers = 0;
  if (begin > 0) {
    const SegmentCost &before = problem.segments[begin - 1];
    buffers += (inFlight + 1) * before.output[option];
    buffers += before.gradientCrosses ? 2 * before.output[option] : 0;
  }
  if (end < int64_t(problem.segments.size())) {
    const SegmentCost &last = problem.segments[end - 1];
    buffers += (last.gradientCrosses ? 4 : 2) * last.output[option];
  }
  return state + inFlight * saved + buffers + workspace;
}

void evaluate(const PartitionProblem &problem, Partition &partition) {
  if (!problem.rankOfStage.empty())
    return partition::evaluatePlaced(problem, partition);
  const PartitionCluster &cluster = problem.cluster;
  const int64_t stages = partition.stages.size();
  auto replicas = [&](const StageChoice &stage) {
    return problem.replicaOptions[stage.option];
  };
  auto link = [&](int64_t first, int64_t count) -> const rt::Link & {
    const bool oneNode = first / cluster.devicesPerNode ==
                         (first + count - 1) / cluster.devicesPerNode;
    return oneNode ? cluster.intraNode : cluster.network;
  };

  Nanos sum = 0, slowest = 0, reduce = 0;
  int64_t device = 0;
  for (int64_t s = 0; s < stages; ++s) {
    StageChoice &stage = partition.stages[s];
    const int64_t own = replicas(stage);
    Nanos update = 0;
    Bytes gradients = 0;
    stage.firstDevice = device;
    stage.time = 0;
    for (int64_t i = stage.begin; i < stage.end; ++i) {
      stage.time += problem.segments[i].time[stage.option];
      update += problem.segments[i].update[stage.option];
      gradients += problem.segments[i].gradients;
    }
    stage.inFlight = problem.inFlight == InFlightPolicy::GPipe
                         ? problem.microBatches
                         : std::min(problem.microBatches, stages - s);
    stage.memory = stageMemory(problem, stage.begin, stage.end, stage.option,
                               stage.inFlight);
    stage.allReduce =
        update + (gradients > 0
                      ? rt::allReduceTime(link(device, own), own, gradients)
                      : 0);
    stage.transfer = 0;
    if (s + 1 < stages) {
      const SegmentCost &last = problem.segments[stage.end - 1];
      const int64_t next = replicas(partition.stages[s + 1]);
      const int64_t pairs = std::min(own, next);
      const Bytes share = (last.outputWhole + pairs - 1) / pairs;
      stage.transfer =
          (last.gradientCrosses ? 2 : 1) * link(device, own + next).time(share);
    }
    sum += stage.time + stage.transfer;
    slowest = std::max({slowest, stage.time, stage.transfer});
    reduce = std::max(reduce, stage.allReduce);
    device += own;
  }
  partition.objective =
      problem.continuous ? slowest
                         : sum + (problem.microBatches - 1) * slowest + reduce;
}

Nanos latency(const Partition &partition) {
  Nanos sum = 0;
  for (const StageChoice &stage : partition.stages)
    sum += stage.time + stage.transfer;
  return sum;
}

} // namespace takt
