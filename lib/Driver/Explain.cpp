//===- Explain.cpp - why the stages are where they are --------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// For every cut: what crosses it, and what the step would take if it lay one
// segment earlier or later, everything else kept.
//
//===----------------------------------------------------------------------===//
#include "Compiler.h"

#include "takt/Support/Quantity.h"

#include <fmt/format.h>

#include <algorithm>

using namespace takt;

namespace {

/// The first layer of a segment named "first .. last", or the last.
std::string endOf(const SegmentCost &segment, bool first) {
  size_t dots = segment.name.find(" .. ");
  if (dots == std::string::npos)
    return segment.name;
  return first ? segment.name.substr(0, dots) : segment.name.substr(dots + 4);
}

/// Objective with cut `c` moved by `shift` segments; a sentence if that cannot
/// be.
std::string movedCut(const PartitionProblem &problem, const Partition &current,
                     size_t c, int64_t shift) {
  Partition moved = current;
  moved.stages[c].end += shift;
  moved.stages[c + 1].begin += shift;
  const char *where = shift < 0 ? "earlier" : "later";
  if (moved.stages[c].begin >= moved.stages[c].end ||
      moved.stages[c + 1].begin >= moved.stages[c + 1].end)
    return fmt::format("one segment {}: would empty a stage", where);
  if (!problem.segments[moved.stages[c].end - 1].mayCutAfter)
    return fmt::format("one segment {}: no cut may lie there", where);
  evaluate(problem, moved);
  const std::vector<Bytes> memory = rankMemory(problem, moved);
  for (size_t r = 0; r < memory.size(); ++r)
    if (problem.cluster.memory > 0 && memory[r] > problem.cluster.memory)
      return fmt::format("one segment {}: {} {} would need {} of {} a device",
                         where, problem.rankOfStage.empty() ? "stage" : "rank",
                         r, formatBytes(memory[r]),
                         formatBytes(problem.cluster.memory));
  moved.bound = 0; // that of the answer need not hold here
  if (std::optional<std::string> fault = verify(problem, moved))
    return fmt::format("one segment {}: {}", where, *fault);
  Nanos difference = moved.objective - current.objective;
  double percent = current.objective > 0
                       ? 100.0 * double(difference) / double(current.objective)
                       : 0;
  return fmt::format("one segment {}: {} {} ({:+.2f} %)", where,
                     formatTime(std::abs(difference)),
                     difference < 0 ? "faster" : "slower", percent);
}

} // namespace

std::string takt::explainPartition(const PartitionProblem &problem,
                                   const Partition &partition) {
  std::string out;
  auto line = [&](const std::string &text) { out += text + "\n"; };
  // Of each rank; a stage is one unless the schedule places several on it.
  const bool isPlaced = !problem.rankOfStage.empty();
  std::vector<Nanos> busy(partition.stages.size()), tails(busy.size());
  Nanos longest = 0, sum = 0;
  for (size_t s = 0; s < partition.stages.size(); ++s) {
    const StageChoice &stage = partition.stages[s];
    const size_t rank = isPlaced ? problem.rankOfStage[s] : s;
    busy[rank] += stage.time;
    tails[rank] += stage.allReduce;
    longest = std::max({longest, busy[rank], stage.transfer});
    sum += stage.time + stage.transfer;
  }
  const Nanos reduce = *std::max_element(tails.begin(), tails.end());
  line("why these stages");
  if (problem.continuous)
    line(fmt::format("  objective {} = longest stage or transfer, the period; "
                     "a micro-batch passes in {}",
                     formatTime(partition.objective), formatTime(sum)));
  else
    line(fmt::format("  objective {} = sum of stages and transfers {} + {} "
                     "more micro-batches "
                     "x longest {} + longest all-reduce and update {}",
                     formatTime(partition.objective), formatTime(sum),
                     problem.microBatches - 1, formatTime(longest),
                     formatTime(reduce)));
  line(fmt::format("  bound {}, gap {:.2f} % ({})", formatTime(partition.bound),
                   100 * partition.gap(), partition.method));
  for (size_t s = 0; s < partition.stages.size(); ++s) {
    const StageChoice &stage = partition.stages[s];
    int64_t replicas = problem.replicaOptions[stage.option];
    line(fmt::format(
        "  stage {}: {} .. {} on {} device{}, {} a micro-batch{}, {}{} a "
        "device, "
        "{} in flight",
        s, endOf(problem.segments[stage.begin], true),
        endOf(problem.segments[stage.end - 1], false), replicas,
        replicas == 1 ? "" : "s", formatTime(stage.time),
        isPlaced ? fmt::format(" (rank {}: {}{})", problem.rankOfStage[s],
                               formatTime(busy[problem.rankOfStage[s]]),
                               busy[problem.rankOfStage[s]] == longest
                                   ? ", the longest"
                                   : "")
        : stage.time == longest ? std::string(" (the longest)")
                                : std::string(),
        formatBytes(stage.memory),
        problem.cluster.memory > 0
            ? " of " + formatBytes(problem.cluster.memory)
            : std::string(),
        stage.inFlight));
    if (s + 1 == partition.stages.size())
      break;
    line(fmt::format(
        "  cut {}: {} forth{} a micro-batch, {}", s,
        formatBytes(problem.segments[stage.end - 1].outputWhole),
        problem.segments[stage.end - 1].gradientCrosses ? " and back" : "",
        formatTime(stage.transfer)));
    line("    " + movedCut(problem, partition, s, -1));
    line("    " + movedCut(problem, partition, s, +1));
  }
  return out;
}
