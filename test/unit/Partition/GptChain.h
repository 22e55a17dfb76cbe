//===- GptChain.h - the chain of a large language model ---------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// A partition problem of the size that planning is for, from closed formulas:
// equal blocks of attention and MLP, an embedding and a head, on nodes of 8
// devices. Used by tests and by the benchmark.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "takt/Partition/Problem.h"

#include <fmt/format.h>

namespace takt::test {

struct GptChainShape {
  int blocks = 96;
  double width = 2048, positions = 1024, vocabulary = 50000;
  int64_t devices = 64;
  double memoryGiB = 60; ///< binds: about a third above the least that works
  int64_t microBatchSize = 64;
  bool uneven = false; ///< blocks differ by up to 20 %
};

inline PartitionProblem gptChain(const GptChainShape &shape) {
  PartitionProblem problem;
  problem.replicaOptions = {1, 2, 4, 8, 16, 32, 64};
  problem.microBatches = 64;
  problem.cluster.devices = shape.devices;
  problem.cluster.devicesPerNode = 8;
  problem.cluster.intraNode = {"nvlink", 3000, 300e9};
  problem.cluster.network = {"network", 10000, 25e9};
  problem.cluster.memory = Bytes(shape.memoryGiB * double(1 << 30));
  const double activation = 4 * shape.positions * shape.width;
  const double logits = 4 * shape.positions * shape.vocabulary;

  /// Floating-point operations and bytes of one sample; `weights` in elements.
  auto add = [&](std::string name, double flops, double weights, double saved,
                 double workspace, double output) {
    SegmentCost segment;
    segment.name = std::move(name);
    segment.weights = segment.gradients = Bytes(4 * weights);
    segment.optimizerState = 2 * segment.weights;
    segment.outputWhole = Bytes(output * double(shape.microBatchSize));
    for (const int64_t replicas : problem.replicaOptions) {
      const double share = double(shape.microBatchSize) / double(replicas);
      segment.time.push_back(Nanos(flops * share / 200e3) + 20000);
      segment.update.push_back(Nanos(weights * 16 / 1500) + 5000);
      segment.saved.push_back(Bytes(saved * share));
      segment.workspace.push_back(Bytes(workspace * share));
      segment.output.push_back(Bytes(output * share));
    }
    problem.segments.push_back(std::move(segment));
  };

  const double t = shape.positions, w = shape.width, v = shape.vocabulary;
  add("tok", 3 * t * w, v * w, 4 * t, activation, activation);
  for (int i = 0; i < shape.blocks; ++i) {
    const double factor = shape.uneven ? 1 + 0.01 * (i * 7919 % 21) : 1;
    add(fmt::format("h.{}.attn", i), factor * (24 * t * w * w + 12 * t * t * w),
        4 * w * w, 6 * activation, 4 * activation, activation);
    add(fmt::format("h.{}.mlp", i), factor * 48 * t * w * w, 8 * w * w,
        10 * activation, 8 * activation, activation);
  }
  add("lnf", 30 * t * w, 2 * w, activation, activation, activation);
  add("head", 6 * t * w * v, v * w, activation + logits, 2 * logits, 0);
  return problem;
}

} // namespace takt::test
