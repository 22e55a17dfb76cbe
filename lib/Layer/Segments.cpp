//===- Segments.cpp - where a model may be cut ----------------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Stage assignment works on a chain. A residual block is one element of it: in
// its middle two values are alive (the branch and the sum's other operand).
//
//   embedding │ ln attn add │ ln fc gelu proj add │ ... │ ln │ head │ loss
//
//===----------------------------------------------------------------------===//
#include "takt/Layer/Graph.h"

using namespace takt;

std::vector<int32_t> takt::crossingValues(const Graph &graph, int32_t layer) {
  std::vector<bool> isRead(graph.values.size());
  for (size_t l = layer; l < graph.layers.size(); ++l)
    for (int32_t id : graph.layers[l].inputs)
      isRead[id] = true;
  std::vector<int32_t> crossing;
  for (int32_t l = 0; l < layer; ++l)
    if (isRead[graph.layers[l].output])
      crossing.push_back(graph.layers[l].output);
  return crossing;
}

std::vector<Segment> takt::chainSegments(const Graph &graph) {
  int32_t n = int32_t(graph.layers.size());
  // The last layer that reads each layer output; model inputs do not count,
  // every stage loads the ones it reads.
  std::vector<int32_t> lastUse(graph.values.size(), -1);
  for (int32_t i = 0; i < n; ++i)
    for (int32_t id : graph.layers[i].inputs)
      if (graph.values[id].producer >= 0)
        lastUse[id] = i;

  std::vector<Segment> segments;
  int32_t begin = 0;
  int32_t alive = 0; // layer outputs made so far and still to be read
  std::vector<int32_t> deaths(n, 0);
  for (int32_t i = 0; i < n; ++i) {
    alive -= deaths[i];
    int32_t output = graph.layers[i].output;
    if (lastUse[output] > i) {
      ++alive;
      ++deaths[lastUse[output]];
    }
    bool last = i + 1 == n;
    if (last || (alive == 1 && lastUse[output] > i)) {
      segments.push_back({begin, i + 1, last ? -1 : output});
      begin = i + 1;
    }
  }
  return segments;
}
