//===- Order.h - layers in the order of their stages ------------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Stages are ranges of an order of all layers. On a chain that is the model's;
// branches of a graph may stand in another.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "takt/Layer/Graph.h"

#include <utility>
#include <vector>

namespace takt {

/// Whether `order` names every layer once, and none before what it reads.
bool isOrder(const Graph &graph, const std::vector<int32_t> &order);

/// The graph with its layers in another order; values and parameters keep their
/// numbers.
Graph inOrder(Graph graph, const std::vector<int32_t> &order);

/// Every layer for itself: where a graph may be cut. Any number of values may
/// cross the end of such a segment; `Segment::output` is that of the layer.
std::vector<Segment> layerSegments(const Graph &graph);

/// Layers with parameters in a segment of a chain: half a transformer block has
/// three or four.
constexpr int kMostOfABlock = 4;

/// Whether cuts that one value crosses are near enough to each other to be all
/// that stage assignment needs: no segment has more than `kMostOfABlock` layers
/// with parameters.
bool isChain(const Graph &graph, const std::vector<Segment> &segments);

/// Pairs of layers that stages must not exchange: the first comes before the
/// second. Where three or more gradients are added up, of a value or of a tied
/// parameter, another order of them would be another sum in its last bits.
std::vector<std::pair<int32_t, int32_t>> fixedOrder(const Graph &graph);

} // namespace takt
