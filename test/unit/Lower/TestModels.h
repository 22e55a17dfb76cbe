//===- TestModels.h - small models built by hand ------------------*- C++
//-*-===//
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

/// tok, blocks of rotary grouped attention (4 heads, 2 of keys and values) and
/// a gated MLP with root-mean-square norms, head, loss.
Graph makeLlama(int blocks, int64_t width, int64_t positions);

/// linear and ReLU pairs with a mean squared error; `shared`: all with the
/// parameters of the first.
Graph makeMlp(int layers, int64_t width, bool shared = false);

/// A random model of linear, normalising, activating and adding layers whose
/// values are read by layers near and far: `layers` of them, and what joins all
/// that is left to a mean squared error.
Graph makeSkips(uint64_t seed, int layers, int64_t width);

/// Cuts a graph before the given segments, `replicas` each, with unit costs
/// (F = 1 and B = 2 microseconds a stage) and free links.
LoweringProblem makeProblem(Graph graph, std::vector<int64_t> cuts,
                            int32_t microBatches,
                            const std::vector<int32_t> &replicas,
                            const std::string &schedule,
                            int64_t microBatchSize = 4);

/// The same, cut before the given layers: several values may cross.
LoweringProblem cutBefore(Graph graph, std::vector<int32_t> cuts,
                          int32_t microBatches,
                          const std::vector<int32_t> &replicas,
                          const std::string &schedule,
                          int64_t microBatchSize = 4);

/// The same with several stages a role: list r of the schedule is what role r
/// does, with the replicas of its first stage.
LoweringProblem placeStages(LoweringProblem problem, const Schedule &schedule);

/// Interleaved 1F1B: stage s on rank s mod `ranks`, micro-batches through the
/// chunks of a rank in groups of `ranks`, which divides `microBatches`
/// (Narayanan et al. 2021, arXiv 2104.04473). `split`: I and W for B.
Schedule interleaved(int32_t ranks, int32_t chunks, int32_t microBatches,
                     bool split = false);

/// Two stages a rank, s and 2 ranks - 1 - s, as soon as each can run: a rank
/// prefers input gradients, then forwards of its later stage.
Schedule vShaped(int32_t ranks, int32_t microBatches, bool split = false);

} // namespace takt::test
