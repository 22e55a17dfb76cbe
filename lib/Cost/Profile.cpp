//===- Profile.cpp - times that were measured -----------------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// A profile holds one number a layer and phase, measured for one share of a
// micro-batch; other shares scale with their samples.
//
//===----------------------------------------------------------------------===//
#include "takt/Cost/Cost.h"

#include <cmath>

using namespace takt;

CostTable takt::profileCosts(const Graph &graph, const rt::Training &training,
                             const ProfileSpec &profile,
                             const std::vector<int64_t> &options,
                             std::vector<std::string> &missing) {
  // Layers that state their own costs need no measurement, and the roofline
  // takes their word; a device without rates gives all others zero.
  CostTable table = rooflineCosts(graph, training, DeviceKindSpec(), options);
  table.source = "profile " + profile.file;
  for (size_t l = 0; l < graph.layers.size(); ++l) {
    const Layer &layer = graph.layers[l];
    auto entry = profile.layers.find(layer.name);
    if (entry == profile.layers.end()) {
      if (layer.kind != LayerKind::Profiled)
        missing.push_back(layer.name);
      continue;
    }
    const ProfileEntry &measured = entry->second;
    LayerTimes &times = table.layers[l];
    times = {};
    times.update = measured.update;
    for (int64_t option : options) {
      double share = double(training.microBatchSize()) /
                     (double(option) * double(profile.samples));
      times.forward.push_back(std::llround(double(measured.forward) * share));
      times.inputGrad.push_back(
          std::llround(double(measured.inputGrad) * share));
      times.weightGrad.push_back(
          std::llround(double(measured.weightGrad) * share));
    }
  }
  return table;
}
