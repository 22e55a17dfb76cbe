//===- PlacedCosts.cpp - what an assignment to given ranks costs ----------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Devices belong to ranks, in their order; what does not leave a rank takes no
// time and lies in one buffer instead of two.
//
//===----------------------------------------------------------------------===//
#include "Placed.h"

#include <algorithm>

namespace takt {

using namespace partition;

int64_t numRanks(const PartitionProblem &problem) {
  int32_t most = -1;
  for (const int32_t rank : problem.rankOfStage)
    most = std::max(most, rank);
  return most + 1;
}

namespace partition {

StageMemory placedMemory(const PartitionProblem &problem, int64_t option,
                         int64_t stage, int64_t begin, int64_t end) {
  const int64_t stages = problem.rankOfStage.size();
  const int64_t held = problem.heldByStage[stage];
  StageMemory memory;
  for (int64_t i = begin; i < end; ++i) {
    const SegmentCost &segment = problem.segments[i];
    memory.held += segment.weights + segment.gradients +
                   segment.optimizerState + held * segment.saved[option];
    memory.workspace = std::max(memory.workspace, segment.workspace[option]);
  }
  auto isLocal = [&](int64_t boundary) {
    return problem.rankOfStage[boundary] == problem.rankOfStage[boundary + 1];
  };
  if (stage > 0 && !isLocal(stage - 1)) {
    const SegmentCost &before = problem.segments[begin - 1];
    memory.held +=
        (held + 1 + (before.gradientCrosses ? 2 : 0)) * before.output[option];
  }
  if (stage + 1 < stages) {
    const SegmentCost &last = problem.segments[end - 1];
    const int64_t ways = last.gradientCrosses ? 2 : 1;
    // What stays is alive within the flight of the first of the two stages.
    memory.held += ways * (isLocal(stage) ? held : 2) * last.output[option];
  }
  return memory;
}

namespace {

/// The link among the devices of two ranks.
const rt::Link &linkBetween(const PartitionCluster &cluster, int64_t replicas,
                            int64_t one, int64_t other) {
  const int64_t first = std::min(one, other) * replicas;
  const int64_t last = (std::max(one, other) + 1) * replicas - 1;
  // Nodes are equal and in a row: ends in one node have all between in it.
  return first / cluster.devicesPerNode == last / cluster.devicesPerNode
             ? cluster.intraNode
             : cluster.network;
}

} // namespace

Nanos boundaryTime(const PartitionProblem &problem, int64_t option,
                   int64_t stage, int64_t end) {
  const int64_t from = problem.rankOfStage[stage];
  const int64_t to = problem.rankOfStage[stage + 1];
  if (from == to)
    return 0;
  const SegmentCost &last = problem.segments[end - 1];
  const int64_t replicas = problem.replicaOptions[option];
  const Bytes share = (last.outputWhole + replicas - 1) / replicas;
  return (last.gradientCrosses ? 2 : 1) *
         linkBetween(problem.cluster, replicas, from, to).time(share);
}

Nanos reduceTime(const PartitionProblem &problem, int64_t option, int64_t stage,
                 int64_t begin, int64_t end) {
  const int64_t replicas = problem.replicaOptions[option];
  const int64_t rank = problem.rankOfStage[stage];
  Nanos time = 0;
  Bytes gradients = 0;
  for (int64_t i = begin; i < end; ++i) {
    time += problem.segments[i].update[option];
    gradients += problem.segments[i].gradients;
  }
  if (gradients > 0)
    time +=
        rt::allReduceTime(linkBetween(problem.cluster, replicas, rank, rank),
                          replicas, gradients);
  return time;
}

void evaluatePlaced(const PartitionProblem &problem, Partition &partition) {
  const int64_t stages = partition.stages.size();
  std::vector<Nanos> busy(numRanks(problem), 0), reduce(numRanks(problem), 0);
  Nanos sum = 0, slowest = 0;
  for (int64_t s = 0; s < stages; ++s) {
    StageChoice &stage = partition.stages[s];
    const int64_t rank = problem.rankOfStage[s];
    stage.firstDevice = rank * problem.replicaOptions[stage.option];
    stage.time = 0;
    for (int64_t i = stage.begin; i < stage.end; ++i)
      stage.time += problem.segments[i].time[stage.option];
    stage.inFlight = problem.heldByStage[s];
    const StageMemory memory =
        placedMemory(problem, stage.option, s, stage.begin, stage.end);
    stage.memory = memory.held + memory.workspace;
    stage.allReduce =
        reduceTime(problem, stage.option, s, stage.begin, stage.end);
    stage.transfer =
        s + 1 < stages ? boundaryTime(problem, stage.option, s, stage.end) : 0;
    busy[rank] += stage.time;
    reduce[rank] += stage.allReduce;
    sum += stage.time + stage.transfer;
    slowest = std::max(slowest, stage.transfer);
  }
  slowest = std::max(slowest, *std::max_element(busy.begin(), busy.end()));
  partition.objective = sum + (problem.microBatches - 1) * slowest +
                        *std::max_element(reduce.begin(), reduce.end());
}

} // namespace partition

std::vector<Bytes> rankMemory(const PartitionProblem &problem,
                              const Partition &partition) {
  std::vector<Bytes> memory;
  if (problem.rankOfStage.empty()) {
    for (const StageChoice &stage : partition.stages)
      memory.push_back(stage.memory);
    return memory;
  }
  memory.assign(numRanks(problem), 0);
  std::vector<Bytes> workspace(memory.size(), 0);
  for (size_t s = 0; s < partition.stages.size(); ++s) {
    const StageChoice &stage = partition.stages[s];
    const int32_t rank = problem.rankOfStage[s];
    const StageMemory own =
        placedMemory(problem, stage.option, int64_t(s), stage.begin, stage.end);
    memory[rank] += own.held;
    workspace[rank] = std::max(workspace[rank], own.workspace);
  }
  for (size_t r = 0; r < memory.size(); ++r)
    memory[r] += workspace[r];
  return memory;
}

} // namespace takt
