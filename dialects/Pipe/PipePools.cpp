//===- PipePools.cpp - clusters of unequal devices ------------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Pools keep the order in which their first nodes stand in the cluster.
//
//===----------------------------------------------------------------------===//
#include "Pipe/PipePools.h"

#include "Pipe/PipeBridge.h"

#include <algorithm>
#include <map>
#include <tuple>

using namespace takt;
using namespace takt::pipe;

ClusterPools pipe::exportPools(ClusterOp cluster) {
  ClusterPools result;
  if (std::optional<llvm::StringRef> network = cluster.getNetwork())
    result.network = exportLink(cluster.lookupLink(*network));
  std::map<std::tuple<llvm::StringRef, int64_t, llvm::StringRef>, size_t> known;
  int32_t next = 0;
  for (auto nodes : cluster.getNodes().getAsRange<NodesAttr>()) {
    auto [found, isNew] =
        known.try_emplace({nodes.getDevice(), nodes.getDevices(),
                           nodes.getLink() ? nodes.getLink().getValue() : ""},
                          result.pools.size());
    if (isNew) {
      DeviceAttr device = cluster.lookupDevice(nodes.getDevice());
      DevicePool pool;
      pool.kind = device.getName().str();
      pool.devices = 0;
      pool.devicesPerNode = nodes.getDevices();
      pool.memory = device.getMemory();
      pool.price = device.getPrice();
      if (nodes.getLink())
        pool.intraNode = exportLink(cluster.lookupLink(nodes.getLink()));
      result.pools.push_back(std::move(pool));
      result.devices.emplace_back();
    }
    const int64_t count = nodes.getCount() * nodes.getDevices();
    result.pools[found->second].devices += count;
    for (int64_t i = 0; i < count; ++i)
      result.devices[found->second].push_back(next++);
  }
  return result;
}

std::vector<std::string> pipe::usedKinds(ClusterOp cluster) {
  std::vector<std::string> kinds;
  for (auto nodes : cluster.getNodes().getAsRange<NodesAttr>())
    if (std::find(kinds.begin(), kinds.end(), nodes.getDevice()) == kinds.end())
      kinds.push_back(nodes.getDevice().str());
  return kinds;
}

mlir::Location pipe::locationOfKind(ClusterOp cluster, llvm::StringRef kind) {
  auto all = mlir::dyn_cast<mlir::FusedLoc>(cluster.getLoc());
  if (!all)
    return cluster.getLoc();
  auto devices = cluster.getDevices().getAsRange<DeviceAttr>();
  size_t index = 0;
  for (DeviceAttr device : devices) {
    if (device.getName() == kind && index < all.getLocations().size())
      return all.getLocations()[index];
    ++index;
  }
  return cluster.getLoc();
}

MixedPartition pipe::exportMixed(ProgramOp program, const ClusterPools &pools,
                                 const std::vector<int64_t> &replicaOptions) {
  MixedPartition partition;
  partition.time = program.getObjectiveNs();
  partition.bound = program.getBoundNs();
  partition.method = program.getMethod().str();
  for (StageOp op : program.getStages()) {
    MixedStage stage;
    stage.begin = op.getSegmentBegin();
    stage.end = op.getSegmentEnd();
    auto option = std::find(replicaOptions.begin(), replicaOptions.end(),
                            op.getReplicas());
    stage.option =
        option == replicaOptions.end() ? -1 : option - replicaOptions.begin();
    for (size_t k = 0; k < pools.devices.size(); ++k) {
      const std::vector<int32_t> &own = pools.devices[k];
      auto at = std::find(own.begin(), own.end(), op.getDevices().front());
      if (at == own.end())
        continue;
      stage.pool = int32_t(k);
      stage.firstDevice = at - own.begin();
      partition.rate += pools.pools[k].price * op.getReplicas();
    }
    stage.time = op.getForwardNs() + op.getBackwardNs();
    stage.transfer = op.getTransferNs();
    stage.allReduce = op.getAllReduceNs();
    stage.memory = op.getMemoryBytes();
    stage.inFlight = op.getInFlight();
    partition.stages.push_back(stage);
  }
  return partition;
}
