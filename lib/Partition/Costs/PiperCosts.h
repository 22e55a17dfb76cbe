//===- PiperCosts.h - what a stage of Piper's costs -------------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// The formulas of takt/Partition/Costs/Piper.h for one layer of a stage.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "takt/Partition/Costs/Piper.h"

#include <algorithm>

namespace takt::piper {

/// Edges of every node, as indices into the problem's.
struct Adjacency {
  std::vector<std::vector<int32_t>> in, out;

  explicit Adjacency(const PiperProblem &problem)
      : in(problem.nodes.size()), out(problem.nodes.size()) {
    for (size_t e = 0; e < problem.edges.size(); ++e) {
      out[problem.edges[e].from].push_back(int32_t(e));
      in[problem.edges[e].to].push_back(int32_t(e));
    }
  }
};

/// Bytes of a sample that one node moves over the ends of its stage;
/// `inStage(node)` tells who is in it.
template <typename InStage>
double crossingBytes(const PiperProblem &problem, const Adjacency &adjacency,
                     int32_t node, const PiperVariant &variant,
                     InStage inStage) {
  double bytes = 0;
  for (size_t i = 0; i < adjacency.in[node].size(); ++i) {
    const PiperEdge &edge = problem.edges[adjacency.in[node][i]];
    if (!inStage(edge.from))
      bytes += edge.bytes + variant.inBytes[i];
  }
  for (size_t i = 0; i < adjacency.out[node].size(); ++i) {
    const PiperEdge &edge = problem.edges[adjacency.out[node][i]];
    if (!inStage(edge.to))
      bytes += edge.bytes + variant.outBytes[i];
  }
  return bytes;
}

/// A node's part of its stage's seconds for a sample.
inline double nodeSeconds(const PiperProblem &problem,
                          const PiperVariant &variant, double crossing,
                          int64_t replicas) {
  const double d = double(replicas);
  return (variant.seconds + 2 * crossing / problem.bandwidth) / d +
         4 * (d - 1) / d * variant.parameterBytes / double(problem.samples) /
             problem.bandwidth;
}

/// Bytes that a device holds of a node where `replicasFromHere` is the sum of
/// the replicas of its stage and all later ones.
inline double nodeBytes(const PiperVariant &variant, int64_t replicas,
                        int64_t replicasFromHere) {
  const int64_t held = (replicasFromHere + replicas - 1) / replicas;
  return variant.fixedBytes + variant.bytesPerSample * double(held);
}

/// Numbers of replicas to choose from, ascending.
std::vector<int64_t> replicaChoices(const PiperProblem &problem);

inline int64_t mostReplicas(const PiperProblem &problem) {
  return std::min(problem.devices, problem.maxReplicas > 0 ? problem.maxReplicas
                                                           : problem.samples);
}

} // namespace takt::piper
