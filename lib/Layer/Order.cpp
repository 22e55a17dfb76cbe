//===- Order.cpp - layers in the order of their stages --------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Stages are ranges of an order of all layers. That of the model is one; stages of
// a graph may need another, in which branches stand beside each other otherwise.
//
//===----------------------------------------------------------------------===//
#include "takt/Layer/Order.h"

#include <algorithm>
#include <set>

using namespace takt;

bool takt::isOrder(const Graph &graph, const std::vector<int32_t> &order) {
  if (order.size() != graph.layers.size())
    return false;
  std::vector<bool> stood(order.size());
  for (int32_t layer : order) {
    if (layer < 0 || size_t(layer) >= order.size() || stood[layer])
      return false;
    for (int32_t id : graph.layers[layer].inputs)
      if (int32_t producer = graph.values[id].producer;
          producer >= 0 && !stood[producer])
        return false;
    stood[layer] = true;
  }
  return true;
}

Graph takt::inOrder(Graph graph, const std::vector<int32_t> &order) {
  std::vector<Layer> layers;
  for (int32_t layer : order) {
    graph.values[graph.layers[layer].output].producer = int32_t(layers.size());
    layers.push_back(std::move(graph.layers[layer]));
  }
  graph.layers = std::move(layers);
  return graph;
}

std::vector<Segment> takt::layerSegments(const Graph &graph) {
  std::vector<Segment> segments;
  for (int32_t l = 0; l < int32_t(graph.layers.size()); ++l)
    segments.push_back({l, l + 1, graph.layers[l].output});
  segments.back().output = -1;
  return segments;
}

bool takt::isChain(const Graph &graph, const std::vector<Segment> &segments) {
  auto learns = [](const Layer &layer) {
    return !layer.params.empty() || layer.profiled.parameters > 0;
  };
  return std::all_of(
      segments.begin(), segments.end(), [&](const Segment &segment) {
        return std::count_if(graph.layers.begin() + segment.begin,
                             graph.layers.begin() + segment.end,
                             learns) <= kMostOfABlock;
      });
}

namespace {

/// A list of layers in which each adds a term to one sum: two terms may come in
/// any order, more may not.
void keepOrder(const std::vector<int32_t> &terms,
               std::set<std::pair<int32_t, int32_t>> &pairs) {
  for (size_t i = 1; terms.size() > 2 && i < terms.size(); ++i)
    if (terms[i] != terms[i - 1])
      pairs.insert({terms[i - 1], terms[i]});
}

} // namespace

std::vector<std::pair<int32_t, int32_t>> takt::fixedOrder(const Graph &graph) {
  const std::vector<bool> hasGrad = valuesNeedingGrad(graph);
  std::vector<std::vector<int32_t>> readers(graph.values.size());
  std::vector<std::vector<int32_t>> users(graph.params.size());
  for (size_t l = 0; l < graph.layers.size(); ++l) {
    for (int32_t id : graph.layers[l].inputs)
      if (hasGrad[id])
        readers[id].push_back(int32_t(l));
    for (int32_t param : graph.layers[l].params)
      if (graph.params[param].trainable)
        users[param].push_back(int32_t(l));
  }
  std::set<std::pair<int32_t, int32_t>> pairs;
  for (const auto *sums : {&readers, &users})
    for (const std::vector<int32_t> &terms : *sums)
      keepOrder(terms, pairs);
  return {pairs.begin(), pairs.end()};
}
