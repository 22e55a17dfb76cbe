//===- Cuts.cpp - cuts by layer name --------------------------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Resolves `--cuts`.
//
//===----------------------------------------------------------------------===//
#include "Cuts.h"

#include "takt/Support/NearestName.h"

#include <fmt/format.h>

#include <algorithm>

using namespace takt;

bool takt::resolveCuts(const Graph &graph, const std::vector<Segment> &segments,
                       const std::vector<std::string> &names,
                       std::vector<int64_t> &cuts, std::string &error) {
  cuts.clear();
  for (const std::string &name : names) {
    auto matches = [&](const Layer &layer) {
      return layer.name == name ||
             layer.name.compare(0, name.size() + 1, name + ".") == 0;
    };
    auto layer =
        std::find_if(graph.layers.begin(), graph.layers.end(), matches);
    if (layer == graph.layers.end()) {
      std::vector<std::string> known;
      for (const Layer &l : graph.layers)
        known.push_back(l.name);
      error = fmt::format("no layer is named '{}'{}", name,
                          nearestHint(name, known));
      return false;
    }
    int32_t index = int32_t(layer - graph.layers.begin());
    auto after = std::find_if(
        segments.begin(), segments.end(),
        [&](const Segment &segment) { return segment.begin >= index; });
    if (after == segments.begin()) {
      error = fmt::format("'{}' is the first layer, which begins stage 0 anyway",
                          layer->name);
      return false;
    }
    if (after == segments.end() || after->begin != index) {
      error = fmt::format("no stage can begin at '{}': two values are alive "
                          "there; the cut before it is at '{}'",
                          layer->name,
                          graph.layers[(after - 1)->begin].name);
      if (after != segments.end())
        error += fmt::format(", the one after it at '{}'",
                             graph.layers[after->begin].name);
      return false;
    }
    cuts.push_back(after - segments.begin());
  }
  if (!std::is_sorted(cuts.begin(), cuts.end()) ||
      std::adjacent_find(cuts.begin(), cuts.end()) != cuts.end()) {
    error = "cuts must be in the order of the layers, each once";
    return false;
  }
  return true;
}
