//===- Cuts.h - cuts by layer name --------------------------------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Users name the layer that begins a stage; stage assignment counts segments.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "takt/Layer/Graph.h"

#include <string>
#include <vector>

namespace takt {

/// Segment indices before which a stage ends. A name is a layer's or the prefix
/// of a block ("h.2" is its first layer). On failure `error` says which names
/// would do nearby.
bool resolveCuts(const Graph &graph, const std::vector<Segment> &segments,
                 const std::vector<std::string> &names,
                 std::vector<int64_t> &cuts, std::string &error);

} // namespace takt
