//===- LayerTimes.cpp - where the times of layers come from ---------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Two sources of one table: the roofline of Williams, Waterman and Patterson
// 2009 ("Roofline: an insightful visual performance model", CACM 52(4)), and
// times that a run measured. What a layer of kind `profiled` states about
// itself holds under both.
//
//===----------------------------------------------------------------------===//

#include "takt/Cost/Cost.h"

#include <fmt/format.h>

#include <algorithm>

namespace takt {

namespace {

/// Longer times (11 days) are cut off, so that sums stay in range.
constexpr double kLongest = 1e15;

Nanos toNanos(double nanos) {
  return static_cast<Nanos>(std::min(std::max(nanos, 0.0), kLongest) + 0.5);
}

/// A time measured for `of` samples, for `samples` of them.
Nanos scaled(Nanos time, int64_t samples, int64_t of) {
  return toNanos(double(time) * double(samples) /
                 double(std::max<int64_t>(1, of)));
}

Nanos rooflineTime(const Work &work, const DeviceKindSpec &device) {
  const double compute = device.flops > 0 ? work.flops * 1e9 / device.flops : 0;
  const double memory = device.memoryBandwidth > 0
                            ? work.bytes * 1e9 / device.memoryBandwidth
                            : 0;
  return toNanos(std::max(compute, memory) +
                 double(work.kernels) * double(device.kernelOverhead));
}

/// Which backward phases of a layer have anything to do: there are no input
/// gradients in front of the first trained parameter and no weight gradients of
/// frozen ones.
struct Phases {
  bool inputGrad = false, weightGrad = false;
};

Phases phasesOf(const Graph &graph, const Layer &layer,
                const std::vector<bool> &needsGrad) {
  Phases phases;
  if (!needsGrad[layer.output])
    return phases;
  for (const int32_t id : layer.inputs)
    phases.inputGrad |= needsGrad[id];
  for (const int32_t param : layer.params)
    phases.weightGrad |= graph.params[param].trainable;
  return phases;
}

/// What a `profiled` layer states is all there is to know of it, so no phase of
/// a trained one is ruled out.
Phases statedPhases(const Layer &layer, const std::vector<bool> &needsGrad) {
  if (layer.profiled.trainable)
    return {true, true};
  return {needsGrad[layer.output], false};
}

/// Times of a `profiled` layer from its own statement.
LayerTimes statedTimes(const Layer &layer, const Phases &phases,
                       int64_t microBatchSize,
                       const std::vector<int64_t> &options) {
  const ProfiledCost &stated = layer.profiled;
  LayerTimes times;
  for (const int64_t replicas : options) {
    const int64_t samples = microBatchSize / replicas;
    times.forward.push_back(scaled(stated.forward, samples, stated.samples));
    times.inputGrad.push_back(
        phases.inputGrad ? scaled(stated.inputGrad, samples, stated.samples)
                         : 0);
    times.weightGrad.push_back(
        phases.weightGrad ? scaled(stated.weightGrad, samples, stated.samples)
                          : 0);
  }
  return times;
}

} // namespace

std::vector<int64_t> replicaOptions(int64_t microBatchSize,
                                    int64_t maxReplicas) {
  std::vector<int64_t> options;
  const int64_t most = std::min(microBatchSize, maxReplicas);
  for (int64_t replicas = 1; replicas <= most; ++replicas)
    if (microBatchSize % replicas == 0)
      options.push_back(replicas);
  return options;
}

int optimizerStates(rt::OptimizerKind kind) {
  switch (kind) {
  case rt::OptimizerKind::Sgd:
    return 0;
  case rt::OptimizerKind::Momentum:
    return 1;
  case rt::OptimizerKind::AdamW:
    return 2;
  }
  return 0;
}

CostTable rooflineCosts(const Graph &graph, const rt::Training &training,
                        const DeviceKindSpec &device,
                        const std::vector<int64_t> &options) {
  const std::vector<bool> needsGrad = valuesNeedingGrad(graph);
  const int states = optimizerStates(training.optimizer);
  CostTable table;
  table.source = "roofline";
  table.replicaOptions = options;
  for (const Layer &layer : graph.layers) {
    LayerTimes times;
    if (layer.kind == LayerKind::Profiled)
      times = statedTimes(layer, statedPhases(layer, needsGrad),
                          training.microBatchSize(), options);
    const Phases phases = phasesOf(graph, layer, needsGrad);
    for (const int64_t replicas : options) {
      const LayerWork work =
          layerWork(graph, layer, training.microBatchSize() / replicas, states);
      times.update = rooflineTime(work.update, device);
      if (layer.kind == LayerKind::Profiled)
        continue;
      times.forward.push_back(rooflineTime(work.forward, device));
      times.inputGrad.push_back(
          phases.inputGrad ? rooflineTime(work.inputGrad, device) : 0);
      times.weightGrad.push_back(
          phases.weightGrad ? rooflineTime(work.weightGrad, device) : 0);
    }
    table.layers.push_back(std::move(times));
  }
  return table;
}

CostTable profileCosts(const Graph &graph, const rt::Training &training,
                       const ProfileSpec &profile,
                       const std::vector<int64_t> &options,
                       std::vector<std::string> &missing) {
  const std::vector<bool> needsGrad = valuesNeedingGrad(graph);
  CostTable table;
  table.source = fmt::format("profile {}", profile.file);
  table.replicaOptions = options;
  for (const Layer &layer : graph.layers) {
    const bool stated = layer.kind == LayerKind::Profiled;
    const auto found = profile.layers.find(layer.name);
    LayerTimes times;
    if (found == profile.layers.end()) {
      if (!stated)
        missing.push_back(layer.name);
      table.layers.push_back(statedTimes(layer, statedPhases(layer, needsGrad),
                                         training.microBatchSize(), options));
      continue;
    }
    const ProfileEntry &entry = found->second;
    Phases phases = phasesOf(graph, layer, needsGrad);
    if (stated)
      phases = statedPhases(layer, needsGrad);
    for (const int64_t replicas : options) {
      const int64_t samples = training.microBatchSize() / replicas;
      auto share = [&](Nanos time) {
        return scaled(time, samples, profile.samples);
      };
      times.forward.push_back(share(entry.forward));
      times.inputGrad.push_back(phases.inputGrad ? share(entry.inputGrad) : 0);
      times.weightGrad.push_back(phases.weightGrad ? share(entry.weightGrad)
                                                   : 0);
    }
    times.update = entry.update;
    table.layers.push_back(std::move(times));
  }
  return table;
}

} // namespace takt
