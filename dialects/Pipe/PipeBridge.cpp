//===- PipeBridge.cpp - clusters to and from plain structs ----------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Both directions for `pipe.cluster`.
//
//===----------------------------------------------------------------------===//
#include "Pipe/PipeBridge.h"

using namespace takt;
using namespace takt::pipe;

ClusterSpec takt::exportCluster(ClusterOp cluster) {
  ClusterSpec spec;
  if (auto loc = mlir::dyn_cast<mlir::FileLineColLoc>(cluster.getLoc()))
    spec.file = loc.getFilename().str();
  spec.name = cluster.getSymName().str();
  spec.network = cluster.getNetwork().value_or("").str();
  for (auto device : cluster.getDevices().getAsRange<DeviceAttr>()) {
    DeviceKindSpec kind;
    kind.name = device.getName().str();
    kind.flops = device.getFlops().perSecond;
    kind.memoryBandwidth = device.getMemoryBandwidth().perSecond;
    kind.memory = device.getMemory();
    kind.kernelOverhead = device.getKernelOverhead();
    spec.devices.push_back(std::move(kind));
  }
  for (auto link : cluster.getLinks().getAsRange<LinkAttr>()) {
    LinkSpec cls;
    cls.name = link.getName().str();
    cls.latency = link.getLatency();
    cls.bandwidth = link.getBandwidth().perSecond;
    spec.links.push_back(std::move(cls));
  }
  for (auto nodes : cluster.getNodes().getAsRange<NodesAttr>()) {
    NodeGroupSpec group;
    group.count = nodes.getCount();
    group.device = nodes.getDevice().str();
    group.devices = nodes.getDevices();
    group.cores = nodes.getCores();
    group.hostMemory = nodes.getHostMemory();
    if (nodes.getLink())
      group.link = nodes.getLink().str();
    spec.nodes.push_back(std::move(group));
  }
  return spec;
}

mlir::Operation *takt::importCluster(const ClusterSpec &cluster,
                                     mlir::OpBuilder &builder) {
  mlir::MLIRContext *context = builder.getContext();
  mlir::SmallVector<mlir::Attribute> devices, links, nodes;
  for (const DeviceKindSpec &kind : cluster.devices)
    devices.push_back(DeviceAttr::get(context, kind.name, Rate{kind.flops},
                                      Rate{kind.memoryBandwidth}, kind.memory,
                                      kind.kernelOverhead));
  for (const LinkSpec &link : cluster.links)
    links.push_back(
        LinkAttr::get(context, link.name, link.latency, Rate{link.bandwidth}));
  for (const NodeGroupSpec &group : cluster.nodes)
    nodes.push_back(NodesAttr::get(
        context, group.count, group.device, group.devices,
        group.link.empty() ? mlir::StringAttr()
                           : builder.getStringAttr(group.link),
        group.cores, group.hostMemory));
  mlir::Location loc = builder.getUnknownLoc();
  if (!cluster.file.empty())
    loc = mlir::FileLineColLoc::get(context, cluster.file, 1, 1);
  return ClusterOp::create(
      builder, loc, builder.getStringAttr(cluster.name),
      builder.getArrayAttr(devices), builder.getArrayAttr(links),
      builder.getArrayAttr(nodes),
      cluster.network.empty() ? mlir::StringAttr()
                              : builder.getStringAttr(cluster.network));
}
