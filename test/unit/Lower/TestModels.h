//===- TestModels.h - small models built by hand ------------------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Graphs and lowering problems for tests, without YAML and IR.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "takt/Lower/Lower.h"

namespace takt::test {

struct GptShape {
  int blocks = 2;
  int64_t width = 16, positions = 8, vocab = 32, heads = 2;
  bool tied = true;          ///< the head uses the embedding's weight
  bool frozenPrefix = false; ///< embeddings are not trained
};

/// tok, pos, blocks of attention and MLP with residuals, lnf, head, loss.
Graph makeGpt(const GptShape &shape);

/// linear and ReLU pairs with a mean squared error.
Graph makeMlp(int layers, int64_t width);

/// Cuts a graph before the given segments, `replicas` each, with unit costs
/// (F = 1 and B = 2 microseconds a stage) and free links.
LoweringProblem makeProblem(Graph graph, std::vector<int64_t> cuts,
                            int32_t microBatches,
                            const std::vector<int32_t> &replicas,
                            const std::string &schedule,
                            int64_t microBatchSize = 4);

} // namespace takt::test
