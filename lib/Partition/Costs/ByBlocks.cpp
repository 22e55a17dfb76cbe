//===- ByBlocks.cpp - stages of equal blocks ------------------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// PipeDream-2BW's planner cuts a model of equal blocks. The blocks of a chain
// are its longest run of segments that repeat in sizes (times are measured, and
// differ); what stands before it goes to the first stage and what follows to
// the last, and the formula spreads it over all.
//
//===----------------------------------------------------------------------===//
#include "Translate.h"

#include "takt/Partition/Costs/TwoBw.h"

#include <fmt/format.h>

#include <algorithm>

namespace takt {

using namespace translate;

namespace {

/// Segments of a block: half a transformer layer is one.
constexpr int64_t kMostOfABlock = 16;

struct Run {
  int64_t begin = 0, length = 0, blocks = 0; ///< `length` segments a block
};

bool alike(const SegmentCost &a, const SegmentCost &b) {
  return a.weights == b.weights && a.gradients == b.gradients &&
         a.outputWhole == b.outputWhole && a.saved == b.saved;
}

/// The run that covers the most segments, of the shortest blocks.
Run longestRun(const std::vector<SegmentCost> &segments) {
  const int64_t count = int64_t(segments.size());
  Run best;
  for (int64_t length = 1; length <= std::min(kMostOfABlock, count / 2);
       ++length) {
    int64_t same = 0; // segments before `i` like those a block further on
    for (int64_t i = 0; i + length <= count; ++i) {
      const bool goesOn =
          i + length < count && alike(segments[i], segments[i + length]);
      if (goesOn) {
        ++same;
        continue;
      }
      const int64_t blocks = same / length + 1;
      if (blocks > 1 && blocks * length > best.blocks * best.length)
        best = {i - same, length, blocks};
      same = 0;
    }
  }
  return best;
}

} // namespace

std::optional<ModelledStages>
translate::stagesOfBlocks(const PartitionProblem &problem, ModelFault &fault) {
  const Run run = longestRun(problem.segments);
  if (run.blocks == 0) {
    fault.text = "the cost model '2bw' cuts equal blocks, and no segments of "
                 "this model repeat";
    return std::nullopt;
  }
  const PartitionCluster &cluster = problem.cluster;
  const int64_t m = problem.microBatches;
  std::optional<TwoBwPlan> best;
  double bestTime = 0; // of m micro-batches
  for (size_t o = 0; o < problem.replicaOptions.size(); ++o) {
    // A sample is a replica's share of a micro-batch.
    const int64_t replicas = problem.replicaOptions[o];
    TwoBwProblem own;
    own.blocks = run.blocks;
    own.devices = cluster.devices;
    own.devicesPerServer = cluster.devicesPerNode;
    own.withinRate = rateOf(cluster.intraNode);
    own.acrossRate = rateOf(cluster.network);
    own.memoryBytes = cluster.memory > 0 ? double(cluster.memory) : kAllBytes;
    own.batch = m * replicas;
    own.schedule = problem.inFlight == InFlightPolicy::GPipe
                       ? TwoBwSchedule::GPipe
                       : TwoBwSchedule::Flush;
    for (const SegmentCost &segment : problem.segments) {
      own.parameterBytes += double(segment.weights);
      own.activationBytesPerSample += double(segment.saved[o]);
      own.secondsPerSample += double(segment.time[o]) * 1e-9;
    }
    own.inputBytesPerSample =
        double(problem.segments[run.begin + run.length - 1].output[o]);
    if (auto wrong = own.check()) {
      fault.text = *wrong;
      return std::nullopt;
    }
    for (int64_t depth = 1;
         depth <= run.blocks && depth * replicas <= cluster.devices; ++depth) {
      if (run.blocks % depth != 0 || m % depth != 0)
        continue;
      const auto plan = valueTwoBw(own, replicas, depth, 1, false);
      if (!plan)
        continue;
      const double time = double(m) * double(replicas) / plan->samplesPerSecond;
      if (!best || time < bestTime ||
          (time == bestTime &&
           replicas * depth < best->replicas * best->depth)) {
        best = plan;
        bestTime = time;
      }
    }
  }
  if (!best) {
    fault = {fmt::format("by the cost model '2bw', {} devices of {} bytes hold "
                         "no layout of {} equal blocks",
                         cluster.devices, cluster.memory, run.blocks),
             true};
    return std::nullopt;
  }
  ModelledStages found;
  const auto option = std::find(problem.replicaOptions.begin(),
                                problem.replicaOptions.end(), best->replicas);
  for (int64_t s = 0; s < best->depth; ++s) {
    StageChoice stage;
    const auto cut = [&](int64_t number) {
      return run.begin + number * (run.blocks / best->depth) * run.length;
    };
    stage.begin = s == 0 ? 0 : cut(s);
    stage.end =
        s + 1 == best->depth ? int64_t(problem.segments.size()) : cut(s + 1);
    stage.option = option - problem.replicaOptions.begin();
    found.stages.push_back(stage);
  }
  found.step = toNanos(bestTime);
  return found;
}

} // namespace takt
