//===- SideConstraints.cpp - from layers named to segments ----------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Users name layers and blocks; stage assignment moves whole segments.
//
//===----------------------------------------------------------------------===//
#include "takt/Cost/Cost.h"

#include <fmt/format.h>

#include <algorithm>

using namespace takt;

std::vector<int32_t> takt::layersNamed(const Graph &graph,
                                       const std::string &name) {
  std::vector<int32_t> layers;
  for (int32_t l = 0; l < int32_t(graph.layers.size()); ++l) {
    const std::string &layer = graph.layers[l].name;
    if (layer == name || layer.compare(0, name.size() + 1, name + ".") == 0)
      layers.push_back(l);
  }
  return layers;
}

namespace {

int64_t segmentOf(const std::vector<Segment> &segments, int32_t layer) {
  return std::upper_bound(segments.begin(), segments.end(), layer,
                          [](int32_t l, const Segment &segment) {
                            return l < segment.begin;
                          }) -
         segments.begin() - 1;
}

/// The segments around the end of the layer, if it ends one that is not last.
void addBoundary(const std::vector<Segment> &segments, int32_t layer,
                 SideConstraint &out) {
  if (layer < 0)
    return;
  const int64_t segment = segmentOf(segments, layer);
  if (segments[segment].end == layer + 1 &&
      segment + 1 < int64_t(segments.size()))
    out.parts.push_back({segment, segment + 2});
}

} // namespace

std::optional<std::vector<SideConstraint>>
takt::sideConstraints(const Graph &graph, const std::vector<Segment> &segments,
                      const std::vector<ConstraintSpec> &specs,
                      std::string &error) {
  std::vector<SideConstraint> result;
  for (const ConstraintSpec &spec : specs) {
    SideConstraint &out = result.emplace_back();
    out.kind = spec.kind;
    out.names = spec.names;
    out.number = spec.number;
    for (const std::string &name : spec.names) {
      const std::vector<int32_t> layers = layersNamed(graph, name);
      if (layers.empty()) {
        error = fmt::format("constraint '{}' names '{}', which is no layer or "
                            "block",
                            toYaml(out), name);
        return std::nullopt;
      }
      const int32_t first = layers.front(), last = layers.back();
      if (spec.kind == ConstraintKind::NoCutAfter)
        addBoundary(segments, last, out);
      else if (spec.kind == ConstraintKind::NoCutBefore)
        addBoundary(segments, first - 1, out);
      else
        out.parts.push_back(
            {segmentOf(segments, first), segmentOf(segments, last) + 1});
    }
  }
  return result;
}
