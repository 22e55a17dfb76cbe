//===- Roofline.cpp - times from arithmetic and traffic -------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// A phase takes as long as its arithmetic or its memory traffic, whichever is
// longer, and the launch of its kernels (Williams, Waterman, Patterson 2009,
// doi 10.1145/1498765.1498785).
//
//===----------------------------------------------------------------------===//
#include "Needs.h"

#include "takt/Cost/Cost.h"

#include <cmath>

using namespace takt;

std::vector<int64_t> takt::replicaOptions(int64_t microBatchSize,
                                          int64_t maxReplicas) {
  std::vector<int64_t> options;
  for (int64_t r = 1; r <= std::min(microBatchSize, maxReplicas); ++r)
    if (microBatchSize % r == 0)
      options.push_back(r);
  return options;
}

int takt::optimizerStates(rt::OptimizerKind kind) {
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

namespace {

Nanos timeOf(const Work &work, const DeviceKindSpec &device) {
  if (work.kernels == 0)
    return 0;
  double compute = device.flops > 0 ? work.flops / device.flops : 0;
  double memory =
      device.memoryBandwidth > 0 ? work.bytes / device.memoryBandwidth : 0;
  return Nanos(std::llround(std::max(compute, memory) * 1e9)) +
         work.kernels * device.kernelOverhead;
}

/// What a profiled layer states, for another number of samples.
Nanos scaled(Nanos time, int64_t from, int64_t to) {
  return Nanos(std::llround(double(time) * double(to) / double(from)));
}

} // namespace

CostTable takt::rooflineCosts(const Graph &graph, const rt::Training &training,
                              const DeviceKindSpec &device,
                              const std::vector<int64_t> &options) {
  CostTable table;
  table.source = "roofline";
  table.replicaOptions = options;
  std::vector<bool> needsGrad = valuesNeedingGrad(graph);
  int states = optimizerStates(training.optimizer);
  for (const Layer &layer : graph.layers) {
    PhaseNeeds needs = phaseNeeds(graph, layer, needsGrad);
    LayerTimes times;
    for (int64_t option : options) {
      int64_t samples = training.microBatchSize() / option;
      LayerWork work = layerWork(graph, layer, samples, states);
      Nanos forward = timeOf(work.forward, device);
      Nanos inputGrad = timeOf(work.inputGrad, device);
      Nanos weightGrad = timeOf(work.weightGrad, device);
      if (layer.kind == LayerKind::Profiled) {
        const ProfiledCost &own = layer.profiled;
        forward = scaled(own.forward, own.samples, samples);
        inputGrad = scaled(own.inputGrad, own.samples, samples);
        weightGrad = scaled(own.weightGrad, own.samples, samples);
        // The first layer of a profile was timed with its whole backward.
        needs.inputGrad = true;
      }
      times.forward.push_back(forward);
      times.inputGrad.push_back(needs.inputGrad ? inputGrad : 0);
      times.weightGrad.push_back(needs.weightGrad ? weightGrad : 0);
      times.update = needs.update ? timeOf(work.update, device) : 0;
    }
    table.layers.push_back(std::move(times));
  }
  return table;
}
