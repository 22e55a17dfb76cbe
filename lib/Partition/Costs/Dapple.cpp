//===- Dapple.cpp - stages by DAPPLE's pivot latency ----------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// What stages cost on their devices, and the search that peels them off.
//
//===----------------------------------------------------------------------===//
#include "DapplePlacement.h"

#include "takt/Partition/Costs/Dapple.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

namespace takt {

using namespace partition;

const char *dapplePlacementName(DapplePlacement placement) {
  switch (placement) {
  case DapplePlacement::Fresh:
    return "fresh first";
  case DapplePlacement::Append:
    return "append first";
  case DapplePlacement::Scatter:
    return "scatter first";
  }
  return "";
}

std::optional<std::string> DappleProblem::check() const {
  if (layers.empty())
    return "there is nothing to assign: there are no layers";
  for (const ProfiledNode &layer : layers)
    for (const double figure : {layer.forward, layer.backward,
                                layer.outputBytes, layer.parameterBytes})
      if (!(figure >= 0) || !std::isfinite(figure))
        return fmt::format("layer '{}' has a negative figure", layer.name);
  if (profiledSamples < 1 || microBatchSamples < 1 || microBatches < 1)
    return "samples and micro-batches must be positive";
  if (microBatches > 1 << 20)
    return fmt::format("{} micro-batches are more than can be replayed",
                       microBatches);
  if (cluster.machines < 1 || cluster.devicesPerMachine < 1 ||
      cluster.machines > 4096 || cluster.devicesPerMachine > 4096)
    return fmt::format("{} machines of {} devices cannot be planned",
                       cluster.machines, cluster.devicesPerMachine);
  for (const double rate :
       {cluster.withinRate, cluster.acrossRate, cluster.reduceRate})
    if (!(rate > 0) || !std::isfinite(rate))
      return "the bandwidth of a link must be positive";
  if (!(cluster.memoryBytes >= 0) || !(stateFactor >= 0))
    return "a size is negative";
  for (size_t i = 0; i < replicaOptions.size(); ++i)
    if (replicaOptions[i] < 1 ||
        (i > 0 && replicaOptions[i] <= replicaOptions[i - 1]))
      return "replica counts must ascend from 1";
  if (placements.empty())
    return "a plan needs at least one placement";
  if (maxStages < 0)
    return "a number of stages is negative";
  return std::nullopt;
}

namespace {

double ringSeconds(const DappleCluster &cluster, const DappleStage &stage,
                   double bytes) {
  const double n = double(stage.devices.size());
  if (n == 1)
    return 0;
  const double passes = 2 * (n - 1) / n * bytes;
  if (machinesOf(cluster, stage.devices).size() > 1)
    return passes / cluster.reduceRate;
  // Within a machine n devices make n / 2 rings at once.
  return passes / cluster.withinRate / std::max(1.0, std::floor(n / 2));
}

/// Bytes of a micro-batch from one stage's devices to the next one's.
double transferSeconds(const DappleCluster &cluster, const DappleStage &from,
                       const DappleStage &to, double bytes) {
  const std::set<int64_t> targets = machinesOf(cluster, to.devices);
  int64_t crossing = 0; // senders that have to leave their machine
  for (const int32_t device : from.devices)
    crossing += targets.size() > 1 ||
                *targets.begin() != device / cluster.devicesPerMachine;
  const double pairs = double(std::min(from.devices.size(), to.devices.size()));
  if (crossing == 0)
    return bytes / pairs / cluster.withinRate;
  if (!cluster.sharedNetwork)
    return bytes / pairs / cluster.acrossRate;
  return bytes * double(crossing) / double(from.devices.size()) /
         cluster.acrossRate;
}

std::vector<PivotPhase> phasesOf(const DapplePlan &plan) {
  std::vector<PivotPhase> phases;
  for (size_t s = 0; s < plan.stages.size(); ++s) {
    const DappleStage &stage = plan.stages[s];
    phases.push_back({stage.forward, stage.backward, stage.allReduce});
    if (s + 1 < plan.stages.size())
      phases.push_back({stage.transfer, stage.transfer, 0});
  }
  return phases;
}

/// Sums of the layers in front of each, so that a stage costs no walk.
class Prefixes {
public:
  explicit Prefixes(const DappleProblem &problem) : problem(problem) {
    for (const ProfiledNode &layer : problem.layers) {
      const ProfiledNode &last = sums.back();
      ProfiledNode sum;
      sum.forward = last.forward + layer.forward;
      sum.backward = last.backward + layer.backward;
      sum.outputBytes = last.outputBytes + layer.outputBytes;
      sum.parameterBytes = last.parameterBytes + layer.parameterBytes;
      sums.push_back(sum);
    }
  }

  /// False if not one micro-batch fits beside the parameters.
  bool fill(DappleStage &stage) const {
    const ProfiledNode &a = sums[stage.begin], &b = sums[stage.end];
    const double share =
        double(problem.microBatchSamples) / double(problem.profiledSamples);
    const double each = share / double(stage.devices.size());
    const double parameters = b.parameterBytes - a.parameterBytes;
    stage.forward = (b.forward - a.forward) * each;
    stage.backward = (b.backward - a.backward) * each;
    stage.allReduce = ringSeconds(problem.cluster, stage, parameters);
    stage.mostInFlight = problem.microBatches;
    const double saved = (b.outputBytes - a.outputBytes) * each;
    const double left =
        problem.cluster.memoryBytes - problem.stateFactor * parameters;
    if (problem.cluster.memoryBytes == 0)
      return true;
    if (left < saved)
      return false;
    if (saved > 0)
      stage.mostInFlight = int64_t(
          std::min(double(problem.microBatches), std::floor(left / saved)));
    return true;
  }

  void join(DappleStage &from, const DappleStage &to) const {
    const double share =
        double(problem.microBatchSamples) / double(problem.profiledSamples);
    from.transfer =
        transferSeconds(problem.cluster, from, to,
                        problem.layers[from.end - 1].outputBytes * share);
  }

private:
  const DappleProblem &problem;
  std::vector<ProfiledNode> sums{1};
};

void value(const DappleProblem &problem, DapplePlan &plan) {
  const std::vector<PivotPhase> phases = phasesOf(plan);
  plan.pivot = pivotOf(phases, problem.microBatches);
  plan.seconds = pivotSeconds(phases, problem.microBatches);
}

void replay(const DappleProblem &problem, DapplePlan &plan) {
  const std::vector<PivotPhase> phases = phasesOf(plan);
  const int64_t stages = int64_t(plan.stages.size());
  for (const bool deep : {false, true}) {
    std::vector<int64_t> warmUp;
    for (int64_t s = 0; s < stages; ++s)
      warmUp.push_back(std::min(deep ? 2 * (stages - s) - 1 : stages - s,
                                plan.stages[s].mostInFlight));
    const double seconds = replaySeconds(phases, warmUp, problem.microBatches);
    if (!deep || seconds < plan.replaySeconds) {
      plan.replaySeconds = seconds;
      plan.deepWarmUp = deep;
    }
  }
}

/// Plans in reach: `plan.stages` but for the last one are peeled off.
struct Partial {
  std::vector<DappleStage> peeled;
  double seconds = 0;
};

class Search {
public:
  explicit Search(const DappleProblem &problem)
      : problem(problem), prefixes(problem),
        layers(int32_t(problem.layers.size())),
        mostStages(problem.maxStages == 0 ? layers : problem.maxStages) {}

  std::optional<DapplePlan> run() {
    const Occupancy none(size_t(problem.cluster.machines));
    closeWith({}, none, 0);
    open.resize(size_t(layers));
    open[0].emplace(none, Partial());
    for (int32_t begin = 0; begin < layers; ++begin)
      for (const auto &[used, partial] : open[size_t(begin)])
        peel(begin, used, partial);
    if (!best)
      return std::nullopt;
    best->work = work;
    replay(problem, *best);
    return best;
  }

private:
  /// All next stages of a partial plan.
  void peel(int32_t begin, const Occupancy &used, const Partial &partial) {
    if (int64_t(partial.peeled.size()) + 2 > mostStages)
      return;
    const int64_t left =
        problem.cluster.machines * problem.cluster.devicesPerMachine -
        countOf(used);
    for (int64_t count = 1; count < left; ++count) {
      if (!mayReplicate(problem, count))
        continue;
      std::set<std::vector<int32_t>> tried;
      for (const DapplePlacement placement : problem.placements) {
        DappleStage stage;
        stage.placement = placement;
        Occupancy after = used;
        stage.devices = takeDevices(problem.cluster, after, placement, count);
        if (!tried.insert(stage.devices).second)
          continue;
        for (int32_t end = begin + 1; end < layers; ++end) {
          stage.begin = begin;
          stage.end = end;
          std::vector<DappleStage> peeled = partial.peeled;
          if (!prefixes.fill(stage))
            break; // longer stages need more
          if (!peeled.empty())
            prefixes.join(peeled.back(), stage);
          peeled.push_back(stage);
          keep(std::move(peeled), after, end);
        }
      }
    }
  }

  void keep(std::vector<DappleStage> peeled, const Occupancy &used,
            int32_t end) {
    const double seconds = closeWith(peeled, used, end);
    auto [at, isNew] = open[size_t(end)].emplace(used, Partial());
    if (isNew || seconds < at->second.seconds)
      at->second = {std::move(peeled), seconds};
  }

  /// The plan with all that is left as last stage; its time, or that of no
  /// plan.
  double closeWith(const std::vector<DappleStage> &peeled,
                   const Occupancy &used, int32_t begin) {
    ++work;
    DapplePlan plan{peeled};
    DappleStage last;
    last.begin = begin;
    last.end = layers;
    Occupancy after = used;
    const int64_t left =
        problem.cluster.machines * problem.cluster.devicesPerMachine -
        countOf(used);
    last.devices = takeDevices(problem.cluster, after, last.placement, left);
    const bool fits = prefixes.fill(last);
    if (!plan.stages.empty())
      prefixes.join(plan.stages.back(), last);
    plan.stages.push_back(std::move(last));
    value(problem, plan);
    if (problem.byReplay)
      replay(problem, plan);
    if (!fits || !mayReplicate(problem, left)) // says how good the front is
      return rankOf(problem, plan);
    if (!best || rankOf(problem, plan) < rankOf(problem, *best))
      best = plan;
    return rankOf(problem, plan);
  }

  const DappleProblem &problem;
  const Prefixes prefixes;
  const int32_t layers;
  const int64_t mostStages;
  std::vector<std::map<Occupancy, Partial>> open; ///< by layers peeled
  std::optional<DapplePlan> best;
  int64_t work = 0;
};

} // namespace

bool evaluate(const DappleProblem &problem, DapplePlan &plan) {
  const Prefixes prefixes(problem);
  bool fits = true;
  for (size_t s = 0; s < plan.stages.size(); ++s) {
    fits &= prefixes.fill(plan.stages[s]);
    plan.stages[s].transfer = 0;
    if (s > 0)
      prefixes.join(plan.stages[s - 1], plan.stages[s]);
  }
  value(problem, plan);
  replay(problem, plan);
  return fits;
}

std::optional<DapplePlan> solveDapple(const DappleProblem &problem) {
  if (problem.check())
    return std::nullopt;
  return Search(problem).run();
}

std::optional<DapplePlan> dataParallelDapple(const DappleProblem &problem) {
  DapplePlan plan;
  DappleStage all;
  all.end = int32_t(problem.layers.size());
  Occupancy none(size_t(problem.cluster.machines));
  all.devices =
      takeDevices(problem.cluster, none, all.placement,
                  problem.cluster.machines * problem.cluster.devicesPerMachine);
  plan.stages.push_back(std::move(all));
  if (!evaluate(problem, plan))
    return std::nullopt;
  return plan;
}

} // namespace takt
