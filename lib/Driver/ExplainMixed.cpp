//===- ExplainMixed.cpp - why the stages are on their devices -------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// For every stage: what each other kind of device would make of it; for every
// cut: what the step would take if it lay one segment earlier or later,
// everything else kept.
//
//===----------------------------------------------------------------------===//
#include "Compiler.h"

#include "Model/ModelBridge.h"
#include "Pipe/PipeBridge.h"
#include "Pipe/PipePools.h"
#include "takt/Cost/MixedStages.h"
#include "takt/Support/Quantity.h"

#include <fmt/format.h>

#include <algorithm>

using namespace takt;

namespace {

std::string percent(double now, double then) {
  return fmt::format("{:+.2f} %", now > 0 ? 100 * (then - now) / now : 0.0);
}

/// Objective of changed stages; a sentence if they cannot be.
std::string valued(const MixedProblem &problem, const MixedPartition &current,
                   MixedPartition changed) {
  evaluate(problem, changed);
  for (const MixedStage &stage : changed.stages) {
    const DevicePool &pool = problem.pools[stage.pool];
    if (pool.memory > 0 && stage.memory > pool.memory)
      return fmt::format("would need {} of {} a '{}'",
                         formatBytes(stage.memory), formatBytes(pool.memory),
                         pool.kind);
  }
  changed.bound = 0;                // that of the answer need not hold here
  MixedProblem unlimited = problem; // limits are spoken of as what they cost
  unlimited.maxTime = 0;
  unlimited.maxPrice = -1;
  if (auto fault = verify(unlimited, changed))
    return *fault;
  std::string text =
      fmt::format("a step of {} ({})", formatTime(changed.time),
                  percent(double(current.time), double(changed.time)));
  if (problem.objective == StageObjective::Price || problem.maxPrice >= 0)
    text += fmt::format(" at {:.6g} ({})", changed.price(),
                        percent(current.price(), changed.price()));
  return text;
}

std::string movedCut(const MixedProblem &problem, const MixedPartition &current,
                     size_t c, int64_t shift) {
  const std::string where =
      fmt::format("one segment {}: ", shift < 0 ? "earlier" : "later");
  MixedPartition moved = current;
  moved.stages[c].end += shift;
  moved.stages[c + 1].begin += shift;
  for (size_t s : {c, c + 1})
    if (moved.stages[s].begin >= moved.stages[s].end)
      return where + "would empty a stage";
  if (!problem.chain.segments[moved.stages[c].end - 1].mayCutAfter)
    return where + "no cut may lie there";
  return where + valued(problem, current, std::move(moved));
}

/// A place for the stage in another pool, behind all that is taken there.
std::string movedStage(const MixedProblem &problem,
                       const MixedPartition &current, size_t s, int32_t pool) {
  const DevicePool &other = problem.pools[pool];
  const MixedStage &stage = current.stages[s];
  const int64_t replicas = problem.chain.replicaOptions[stage.option];
  Nanos time = 0;
  for (int64_t i = stage.begin; i < stage.end; ++i)
    time += other.time[i][stage.option];
  std::string text =
      fmt::format("on '{}': {} a micro-batch ({})", other.kind,
                  formatTime(time), percent(double(stage.time), double(time)));
  if (other.memory > 0 && stage.memory > other.memory)
    return text + fmt::format(", needs {} of {}", formatBytes(stage.memory),
                              formatBytes(other.memory));
  MixedPartition moved = current;
  int64_t taken = 0;
  for (const MixedStage &own : current.stages)
    if (own.pool == pool)
      taken = std::max(taken, own.firstDevice +
                                  problem.chain.replicaOptions[own.option]);
  if (taken + replicas > other.devices)
    return text + fmt::format(", {} of {} are taken", taken, other.devices);
  moved.stages[s].pool = pool;
  moved.stages[s].firstDevice = taken;
  return text + ", " + valued(problem, current, std::move(moved));
}

} // namespace

bool Compiler::explainMixed() const {
  std::string error;
  const std::optional<pipe::ProgramParts> parts =
      pipe::findProgram(*module, error);
  if (!parts)
    return false;
  const pipe::StagedModel staged = pipe::exportModel(*parts);
  const bool equal =
      pipe::exportPartitionCluster(parts->cluster, error).has_value();
  if (!staged.costs ||
      (equal && options.objective == "time" && options.maxPrice < 0))
    return false;
  explainPools(*parts, staged);
  return true;
}

/// Of unequal devices, or of what a step costs.
void Compiler::explainPools(const pipe::ProgramParts &parts,
                            const pipe::StagedModel &staged) const {
  const pipe::ClusterPools pools = pipe::exportPools(parts.cluster);
  MixedRequest request;
  request.options.cluster.network = pools.network;
  if (schedule == "gpipe" ||
      (scheduleFile && std::string(memoryPolicy(*scheduleFile)) == "gpipe"))
    request.options.inFlight = InFlightPolicy::GPipe;
  request.pools = pools.pools;
  if (options.objective == "price")
    request.objective = StageObjective::Price;
  request.maxPrice = options.maxPrice;
  for (const std::string &kind : pipe::usedKinds(parts.cluster))
    if (std::optional<CostTable> costs = pipe::exportCosts(parts, kind))
      request.costs.push_back({kind, std::move(*costs)});
  std::string error;
  const std::optional<MixedProblem> problem = mixedProblem(
      staged.graph, staged.segments, model::exportTraining(parts.graph),
      request, pipe::exportConstraints(*module), error);
  if (!problem)
    return;
  const MixedPartition partition =
      pipe::exportMixed(parts.program, pools, problem->chain.replicaOptions);
  auto line = [&](const std::string &text) { err << text << '\n'; };
  line("why these stages");
  line(fmt::format(
      "  objective {}: a step of {}{}, bound {}, gap {:.2f} % ({})",
      options.objective, formatTime(partition.time),
      partition.rate > 0 ? fmt::format(" at {:.6g}", partition.price())
                         : std::string(),
      formatTime(partition.bound), 100 * partition.gap(), partition.method));
  Nanos longest = 0;
  for (const MixedStage &stage : partition.stages)
    longest = std::max({longest, stage.time, stage.transfer});
  for (size_t s = 0; s < partition.stages.size(); ++s) {
    const MixedStage &stage = partition.stages[s];
    const DevicePool &pool = problem->pools[stage.pool];
    const int64_t replicas = problem->chain.replicaOptions[stage.option];
    line(fmt::format(
        "  stage {}: {} .. {} on {} x '{}', {} a micro-batch{}, {}{} a device, "
        "{} in flight",
        s, staged.graph.layers[staged.segments[stage.begin].begin].name,
        staged.graph.layers[staged.segments[stage.end - 1].end - 1].name,
        replicas, pool.kind, formatTime(stage.time),
        stage.time == longest ? " (the longest)" : "",
        formatBytes(stage.memory),
        pool.memory > 0 ? " of " + formatBytes(pool.memory) : std::string(),
        stage.inFlight));
    const bool named = problem->pools.size() > 1;
    if (named)
      line(fmt::format("    on '{}' because", pool.kind));
    for (int32_t k = 0; k < int32_t(problem->pools.size()); ++k)
      if (k != stage.pool)
        line("      " + movedStage(*problem, partition, s, k));
    if (s + 1 == partition.stages.size())
      break;
    const SegmentCost &cut = problem->chain.segments[stage.end - 1];
    line(fmt::format("  cut {}: {} forth{} a micro-batch, {}", s,
                     formatBytes(cut.outputWhole),
                     cut.gradientCrosses ? " and back" : "",
                     formatTime(stage.transfer)));
    line("    " + movedCut(*problem, partition, s, -1));
    line("    " + movedCut(*problem, partition, s, +1));
  }
}
