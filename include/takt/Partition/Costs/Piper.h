//===- Piper.h - Piper's planner ------------------------------ -*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// A graph of layers cut into ordered stages; stage i runs on d_i replicas of
// t_i devices each, and every layer in one of the variants that are there for
// t_i: with or without recomputation of activations, say (Tarnawski et al.
// 2021, "Piper: Multidimensional Planner for DNN Parallelization", NeurIPS).
// Samples are micro-batches. The objective is the time per sample of the
// slowest stage,
//
//     (compute + 2 transfers / bandwidth) / d
//         + 4 (d - 1) / d parameters / (samples bandwidth)
//
// with compute that of its layers and transfers, over each edge that enters or
// leaves the stage, the bytes of the edge and those that the layer's variant
// adds to it. A device holds, of the sums of its layers,
//
//     fixedBytes + bytesPerSample ceil((d_i + d_{i+1} + ...) / d_i).
//
// The planner of the paper chooses variants of a stage by the ratio of time to
// memory; here that choice is exact, too, so answers may be better.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace takt {

/// One way to run a layer. Sizes are bytes of one device.
struct PiperVariant {
  std::string name;
  double seconds = 0; ///< forward and backward of a sample
  double parameterBytes = 0;
  double bytesPerSample = 0, fixedBytes = 0;
  /// Added to each edge in, and out, in the order of the problem's edges.
  std::vector<double> inBytes, outBytes;
};

struct PiperNode {
  std::string name;
  std::map<int64_t, std::vector<PiperVariant>> variants; ///< by t
};

struct PiperEdge {
  int32_t from = 0, to = 0;
  double bytes = 0; ///< of a sample, one way
};

struct PiperProblem {
  std::vector<PiperNode> nodes;
  std::vector<PiperEdge> edges;
  int64_t devices = 1;
  double memoryBytes = 0; ///< of a device
  double bandwidth = 0;   ///< bytes/s of a device
  int64_t samples = 1;    ///< micro-batches between two updates
  /// Numbers of replicas that a stage may have, ascending; empty: divisors of
  /// the samples.
  std::vector<int64_t> replicaOptions;
  /// Most replicas of all stages together; 0: the samples.
  int64_t maxReplicas = 0;

  std::optional<std::string> check() const;
};

struct PiperStage {
  std::vector<int32_t> nodes;    ///< ascending
  std::vector<int32_t> variants; ///< of each node, for `tensor`
  int64_t replicas = 1, tensor = 1;
  double seconds = 0; ///< per sample
  double bytes = 0;   ///< of a device
};

struct PiperPlan {
  std::vector<PiperStage> stages; ///< first to last
  double seconds = 0;             ///< per sample: of the slowest stage
  double bound = 0;               ///< proven: no plan takes less
  int64_t downSets = 0;           ///< looked at: all, or those of one order
  int64_t work = 0;               ///< stages looked at

  /// Differences below 1e-9 of the answer are not looked for.
  bool proven() const { return bound >= seconds * (1 - 2e-9); }
};

struct PiperSettings {
  int64_t maxDownSets = 20000;          ///< above: one order of the layers
  int64_t workLimit = int64_t(1) << 32; ///< then the best so far
};

/// Nothing if no plan was found; `ruledOut` tells that there is none.
std::optional<PiperPlan> solvePiper(const PiperProblem &problem,
                                    const PiperSettings &settings = {},
                                    bool *ruledOut = nullptr);

/// All plans one by one; for tests, up to about 5 nodes.
std::optional<PiperPlan> bruteForcePiper(const PiperProblem &problem);

std::optional<std::string> verify(const PiperProblem &problem,
                                  const PiperPlan &plan);

} // namespace takt
