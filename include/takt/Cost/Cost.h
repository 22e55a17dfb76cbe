//===- Cost.h - time and memory of layers ------------------------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// One vocabulary of costs: per layer and phase, integer nanoseconds for each
// replica option (a micro-batch of n samples on r replicas gives each n / r), and
// bytes. Sources: roofline (Williams et al. 2009), profile file, the layer's own
// statement (`profiled`).
//
//===----------------------------------------------------------------------===//
#pragma once

#include "takt/Frontend/Spec.h"
#include "takt/Partition/Constraints.h"
#include "takt/Partition/Problem.h"

#include <optional>
#include <string>
#include <vector>

namespace takt {

/// Times of one layer, indexed by replica option.
struct LayerTimes {
  std::vector<Nanos> forward, inputGrad, weightGrad;
  Nanos update = 0; ///< does not depend on the samples
};

struct CostTable {
  std::string source; ///< "roofline" or "profile FILE"
  std::vector<int64_t> replicaOptions; ///< divisors of the micro-batch size
  std::vector<LayerTimes> layers;      ///< by Graph layer index
};

/// Of one kind of device.
struct KindCosts {
  std::string device; ///< its name; empty: of all
  CostTable table;
};

/// Divisors of the micro-batch size up to `maxReplicas`, ascending.
std::vector<int64_t> replicaOptions(int64_t microBatchSize, int64_t maxReplicas);

/// max(flops / rate, bytes / bandwidth) + kernels * overhead for every layer.
/// Phases that `valuesNeedingGrad` and frozen parameters rule out cost nothing.
CostTable rooflineCosts(const Graph &graph, const rt::Training &training,
                        const DeviceKindSpec &device,
                        const std::vector<int64_t> &options);

/// Times measured for `profile.samples` samples, scaled linearly to each share
/// (updates unscaled). `missing` receives the layers the profile lacks.
CostTable profileCosts(const Graph &graph, const rt::Training &training,
                       const ProfileSpec &profile,
                       const std::vector<int64_t> &options,
                       std::vector<std::string> &missing);

/// State tensors an optimizer keeps per parameter: 0, 1 or 2.
int optimizerStates(rt::OptimizerKind kind);

/// Layers that a constraint means: the one of that name, or all of the block.
std::vector<int32_t> layersNamed(const Graph &graph, const std::string &name);

/// Constraints in terms of segments. A sentence in `error` and nothing if one
/// names no layer of the graph.
std::optional<std::vector<SideConstraint>>
sideConstraints(const Graph &graph, const std::vector<Segment> &segments,
                const std::vector<ConstraintSpec> &specs, std::string &error);

/// The chain problem of a costed graph: times and bytes of each segment. Saved
/// bytes are an upper bound on what the lowered plan keeps, so that an accepted
/// assignment fits.
PartitionProblem partitionProblem(const Graph &graph,
                                  const std::vector<Segment> &segments,
                                  const rt::Training &training,
                                  const CostTable &costs,
                                  const PartitionCluster &cluster);

} // namespace takt
