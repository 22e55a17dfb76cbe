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
#include "StageMoves.h"

#include "takt/Support/Quantity.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

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

/// Cut `c` moved by `shift` segments.
StageMove shiftedCut(const PartitionProblem &problem, const Partition &current,
                     size_t c, int64_t shift) {
  Partition moved = current;
  moved.stages[c].end += shift;
  moved.stages[c + 1].begin += shift;
  StageMove move;
  move.later = shift < 0;
  move.layers = {problem.segments[current.stages[c].end - (shift < 0)].name};
  if (moved.stages[c].begin >= moved.stages[c].end ||
      moved.stages[c + 1].begin >= moved.stages[c + 1].end) {
    move.fault = "would empty a stage";
    return move;
  }
  if (!problem.segments[moved.stages[c].end - 1].mayCutAfter) {
    move.fault = "no cut may lie there";
    return move;
  }
  evaluate(problem, moved);
  move.difference = moved.objective - current.objective;
  move.before = moved.stages[c].memory - current.stages[c].memory;
  move.behind = moved.stages[c + 1].memory - current.stages[c + 1].memory;
  const std::vector<Bytes> memory = rankMemory(problem, moved);
  for (size_t r = 0; r < memory.size(); ++r)
    if (problem.cluster.memory > 0 && memory[r] > problem.cluster.memory) {
      move.fault = fmt::format("{} {} would need {} of {} a device",
                               problem.rankOfStage.empty() ? "stage" : "rank",
                               r, formatBytes(memory[r]),
                               formatBytes(problem.cluster.memory));
      return move;
    }
  moved.bound = 0; // that of the answer need not hold here
  if (std::optional<std::string> fault = verify(problem, moved))
    move.fault = *fault;
  return move;
}

std::string movedCut(const PartitionProblem &problem, const Partition &current,
                     size_t c, int64_t shift) {
  const StageMove move = shiftedCut(problem, current, c, shift);
  const std::string line =
      fmt::format("one segment {}: ", shift < 0 ? "earlier" : "later");
  if (!move.fault.empty())
    return line + move.fault;
  double percent = current.objective > 0 ? 100.0 * double(move.difference) /
                                               double(current.objective)
                                         : 0;
  return line + fmt::format("{} {} ({:+.2f} %)",
                            formatTime(std::abs(move.difference)),
                            move.difference < 0 ? "faster" : "slower", percent);
}

} // namespace

std::string takt::explainPartition(const PartitionProblem &problem,
                                   const Partition &partition,
                                   const StagedProblem *graph) {
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
    if (graph) {
      for (const std::string &text :
           moveLines(movesOver(*graph, partition, s), partition.objective))
        line("    " + text);
      continue;
    }
    line("    " + movedCut(problem, partition, s, -1));
    line("    " + movedCut(problem, partition, s, +1));
  }
  return out;
}

nlohmann::ordered_json takt::partitionJson(const PartitionProblem &problem,
                                           const Partition &partition,
                                           const StagedProblem *graph) {
  nlohmann::ordered_json json;
  json["objective_ns"] = partition.objective;
  json["bound_ns"] = partition.bound;
  json["gap"] = partition.gap();
  json["method"] = partition.method;
  size_t busiest = 0;
  for (size_t s = 0; s < partition.stages.size(); ++s)
    if (partition.stages[s].time > partition.stages[busiest].time)
      busiest = s;
  json["busiest_stage"] = busiest;
  json["cuts"] = nlohmann::ordered_json::array();
  for (size_t s = 0; s + 1 < partition.stages.size(); ++s) {
    const StageChoice &stage = partition.stages[s];
    nlohmann::ordered_json cut;
    cut["bytes"] = problem.segments[stage.end - 1].outputWhole;
    cut["transfer_ns"] = stage.transfer;
    cut["moves"] = nlohmann::ordered_json::array();
    if (graph)
      for (const StageMove &move : movesOver(*graph, partition, s))
        cut["moves"].push_back(moveJson(move));
    else
      for (const int shift : {-1, 1})
        cut["moves"].push_back(
            moveJson(shiftedCut(problem, partition, s, shift)));
    json["cuts"].push_back(std::move(cut));
  }
  return json;
}
