//===- PipePools.h - clusters of unequal devices ----------------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// A cluster as assignment to unequal devices sees it (takt/Partition/Mixed.h):
// node groups of one kind, size and link are one pool.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "Pipe/PipeDialect.h"
#include "takt/Partition/Mixed.h"

#include <string>
#include <vector>

namespace takt::pipe {

struct ClusterPools {
  std::vector<DevicePool> pools; ///< without times
  /// By pool: the cluster's numbers of its devices, node by node.
  std::vector<std::vector<int32_t>> devices;
  rt::Link network;
};
ClusterPools exportPools(ClusterOp cluster);

/// Kinds of device that nodes have, each once.
std::vector<std::string> usedKinds(ClusterOp cluster);

/// Where the memory of a kind stands in the cluster file, or else the cluster.
mlir::Location locationOfKind(ClusterOp cluster, llvm::StringRef kind);

/// The assignment that a program states. `MixedStage::option` indexes
/// `replicaOptions`; -1 for a number that is not among them.
MixedPartition exportMixed(ProgramOp program, const ClusterPools &pools,
                           const std::vector<int64_t> &replicaOptions);

} // namespace takt::pipe
