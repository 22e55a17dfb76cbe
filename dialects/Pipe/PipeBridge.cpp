//===- PipeBridge.cpp - pipe IR to and from plain structs -----------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Both directions for clusters; stages and roles as the libraries see them.
//
//===----------------------------------------------------------------------===//
#include "Pipe/PipeBridge.h"

#include "Model/ModelBridge.h"
#include "takt/Layer/Order.h"

#include <algorithm>
#include <map>

using namespace takt;
using namespace takt::pipe;

//===----------------------------------------------------------------------===//
// Clusters
//===----------------------------------------------------------------------===//

ClusterSpec pipe::exportCluster(ClusterOp cluster) {
  ClusterSpec spec;
  if (auto loc = cluster.getLoc()->findInstanceOf<mlir::FileLineColLoc>())
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
    kind.copyEngines = device.getCopyEngines();
    kind.transferSharePpm = device.getTransferSharePpm();
    kind.price = device.getPrice();
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
    group.networkPorts = nodes.getNetworkPorts();
    group.networkPortBandwidth = nodes.getNetworkPortBandwidth().perSecond;
    spec.nodes.push_back(std::move(group));
  }
  return spec;
}

ClusterOp pipe::importCluster(const ClusterSpec &cluster,
                              mlir::OpBuilder &builder) {
  mlir::MLIRContext *context = builder.getContext();
  mlir::SmallVector<mlir::Attribute> devices, links, nodes;
  for (const DeviceKindSpec &kind : cluster.devices)
    devices.push_back(DeviceAttr::get(context, kind.name, Rate{kind.flops},
                                      Rate{kind.memoryBandwidth}, kind.memory,
                                      kind.kernelOverhead, kind.copyEngines,
                                      kind.transferSharePpm, kind.price));
  for (const LinkSpec &link : cluster.links)
    links.push_back(
        LinkAttr::get(context, link.name, link.latency, Rate{link.bandwidth}));
  for (const NodeGroupSpec &group : cluster.nodes)
    nodes.push_back(
        NodesAttr::get(context, group.count, group.device, group.devices,
                       group.link.empty() ? mlir::StringAttr()
                                          : builder.getStringAttr(group.link),
                       group.cores, group.hostMemory, group.networkPorts,
                       Rate{group.networkPortBandwidth}));
  mlir::Location loc = builder.getUnknownLoc();
  if (!cluster.file.empty()) {
    // What most complaints about a cluster are about, of each kind.
    llvm::SmallVector<mlir::Location> places;
    for (const DeviceKindSpec &kind : cluster.devices) {
      auto memory =
          cluster.places.find("cluster.devices." + kind.name + ".memory");
      SourceLoc at{cluster.file, 1, 1};
      if (memory != cluster.places.end())
        at = memory->second;
      places.push_back(
          mlir::FileLineColLoc::get(context, at.file, at.line, at.column));
    }
    if (places.empty())
      places.push_back(mlir::FileLineColLoc::get(context, cluster.file, 1, 1));
    loc = places.size() == 1
              ? places.front()
              : mlir::FusedLoc::get(
                    context, places,
                    mlir::StringAttr::get(context, "memory of each kind"));
  }
  return ClusterOp::create(
      builder, loc, builder.getStringAttr(cluster.name),
      builder.getArrayAttr(devices), builder.getArrayAttr(links),
      builder.getArrayAttr(nodes),
      cluster.network.empty() ? mlir::StringAttr()
                              : builder.getStringAttr(cluster.network));
}

void pipe::importConstraints(const std::vector<ConstraintSpec> &constraints,
                             mlir::OpBuilder &builder) {
  for (const ConstraintSpec &constraint : constraints) {
    mlir::Location loc = builder.getUnknownLoc();
    if (!constraint.loc.file.empty())
      loc =
          mlir::FileLineColLoc::get(builder.getContext(), constraint.loc.file,
                                    constraint.loc.line, constraint.loc.column);
    const llvm::SmallVector<llvm::StringRef> names(constraint.names.begin(),
                                                   constraint.names.end());
    ConstraintOp::create(
        builder, loc,
        builder.getStringAttr(constraintKindName(constraint.kind)),
        builder.getStrArrayAttr(names),
        builder.getI64IntegerAttr(constraint.number));
  }
}

std::vector<ConstraintSpec> pipe::exportConstraints(mlir::ModuleOp module) {
  std::vector<ConstraintSpec> constraints;
  for (ConstraintOp op : module.getOps<ConstraintOp>()) {
    ConstraintSpec constraint;
    constraint.kind = *parseConstraintKind(op.getKind().str()); // verified
    for (auto name : op.getLayers().getAsRange<mlir::StringAttr>())
      constraint.names.push_back(name.str());
    constraint.number = op.getNumber();
    if (auto loc = mlir::dyn_cast<mlir::FileLineColLoc>(op.getLoc()))
      constraint.loc = {loc.getFilename().str(), int(loc.getLine()),
                        int(loc.getColumn())};
    constraints.push_back(std::move(constraint));
  }
  return constraints;
}

rt::Link pipe::exportLink(LinkAttr link) {
  if (!link)
    return {};
  return {link.getName().str(), link.getLatency(),
          link.getBandwidth().perSecond};
}

std::vector<rt::NodeResources> pipe::exportResources(ClusterOp cluster) {
  std::vector<rt::NodeResources> resources;
  double network = 0;
  if (std::optional<llvm::StringRef> name = cluster.getNetwork())
    network = exportLink(cluster.lookupLink(*name)).bytesPerSecond;
  for (auto nodes : cluster.getNodes().getAsRange<NodesAttr>()) {
    DeviceAttr device = cluster.lookupDevice(nodes.getDevice());
    rt::NodeResources group;
    group.nodes = int32_t(nodes.getCount());
    group.devices = int32_t(nodes.getDevices());
    group.cores = int32_t(nodes.getCores());
    group.kind = device.getName().str();
    group.price = device.getPrice();
    group.copyEngines = int32_t(device.getCopyEngines());
    group.transferShare = double(device.getTransferSharePpm()) / 1e6;
    group.memoryBytesPerSecond = device.getMemoryBandwidth().perSecond;
    if (nodes.getLink())
      group.portBytesPerSecond =
          exportLink(cluster.lookupLink(nodes.getLink())).bytesPerSecond;
    double port = nodes.getNetworkPortBandwidth().perSecond;
    group.networkBytesPerSecond = port > 0 ? port : network;
    group.networkPorts = int32_t(nodes.getNetworkPorts());
    resources.push_back(group);
  }
  return resources;
}

std::optional<PartitionCluster>
pipe::exportPartitionCluster(ClusterOp cluster, std::string &error) {
  auto groups = cluster.getNodes().getAsRange<NodesAttr>();
  NodesAttr first = *groups.begin();
  for (NodesAttr group : groups) {
    if (group.getDevice() != first.getDevice()) {
      error = "cluster '" + cluster.getSymName().str() +
              "' has devices of kinds '" + first.getDevice().str() + "' and '" +
              group.getDevice().str() +
              "'; stages are assigned to devices of one kind only";
      return std::nullopt;
    }
    if (group.getDevices() != first.getDevices() ||
        group.getLink() != first.getLink()) {
      error = "cluster '" + cluster.getSymName().str() +
              "' has nodes that differ in devices or link; stages are "
              "assigned to equal nodes only";
      return std::nullopt;
    }
  }
  PartitionCluster result;
  result.devices = cluster.getNumDevices();
  result.devicesPerNode = first.getDevices();
  result.memory = cluster.lookupDevice(first.getDevice()).getMemory();
  if (first.getLink())
    result.intraNode = exportLink(cluster.lookupLink(first.getLink()));
  if (std::optional<llvm::StringRef> network = cluster.getNetwork())
    result.network = exportLink(cluster.lookupLink(*network));
  return result;
}

//===----------------------------------------------------------------------===//
// Programs
//===----------------------------------------------------------------------===//

std::optional<ProgramParts> pipe::findProgram(mlir::ModuleOp module,
                                              std::string &error) {
  auto programs = module.getOps<ProgramOp>();
  if (programs.empty() || std::next(programs.begin()) != programs.end()) {
    error = programs.empty() ? "the module has no stages ('pipe.program')"
                             : "the module has more than one 'pipe.program'";
    return std::nullopt;
  }
  // The verifier has seen to it that both symbols resolve.
  ProgramParts parts;
  parts.program = *programs.begin();
  parts.graph =
      module.lookupSymbol<model::GraphOp>(parts.program.getModelAttr());
  parts.cluster =
      module.lookupSymbol<ClusterOp>(parts.program.getClusterAttr());
  return parts;
}

pipe::StagedModel pipe::exportModel(const ProgramParts &parts) {
  StagedModel staged{model::exportGraph(parts.graph),
                     model::exportCosts(parts.graph),
                     {},
                     {}};
  ProgramOp program = parts.program;
  auto order = program->getAttrOfType<mlir::DenseI32ArrayAttr>(kOrderAttr);
  if (!order) {
    staged.segments = chainSegments(staged.graph);
    return staged;
  }
  staged.order = order.asArrayRef().vec();
  staged.graph = inOrder(std::move(staged.graph), staged.order);
  staged.segments = layerSegments(staged.graph);
  staged.costs = exportCosts(parts, {});
  return staged;
}

std::optional<CostTable> pipe::exportCosts(const ProgramParts &parts,
                                           llvm::StringRef device) {
  std::optional<CostTable> costs = model::exportCosts(parts.graph, device);
  ProgramOp program = parts.program;
  auto order = program->getAttrOfType<mlir::DenseI32ArrayAttr>(kOrderAttr);
  if (!costs || !order)
    return costs;
  const std::vector<LayerTimes> times = costs->layers;
  for (int32_t i = 0; i < order.size(); ++i)
    costs->layers[i] = times[order[i]];
  return costs;
}

Partition pipe::exportPartition(ProgramOp program,
                                const std::vector<int64_t> &replicaOptions) {
  Partition partition;
  partition.objective = program.getObjectiveNs();
  partition.bound = program.getBoundNs();
  partition.method = program.getMethod().str();
  for (StageOp stage : program.getStages()) {
    StageChoice choice;
    choice.begin = stage.getSegmentBegin();
    choice.end = stage.getSegmentEnd();
    auto option = std::find(replicaOptions.begin(), replicaOptions.end(),
                            stage.getReplicas());
    choice.option =
        option == replicaOptions.end() ? -1 : option - replicaOptions.begin();
    choice.firstDevice = stage.getDevices().front();
    choice.time = stage.getForwardNs() + stage.getBackwardNs();
    choice.transfer = stage.getTransferNs();
    choice.allReduce = stage.getAllReduceNs();
    choice.memory = stage.getMemoryBytes();
    choice.inFlight = stage.getInFlight();
    partition.stages.push_back(choice);
  }
  return partition;
}

void pipe::exportPlacement(ProgramOp program, PartitionProblem &problem) {
  std::map<int32_t, int32_t> rankOf; // of the first device
  std::vector<int32_t> ranks;
  std::vector<int64_t> held;
  for (StageOp stage : program.getStages()) {
    ranks.push_back(
        rankOf.try_emplace(stage.getDevices().front(), int32_t(rankOf.size()))
            .first->second);
    held.push_back(stage.getInFlight());
  }
  if (rankOf.size() == ranks.size())
    return;
  problem.stages = int64_t(ranks.size());
  problem.rankOfStage = std::move(ranks);
  problem.heldByStage = std::move(held);
}

Schedule pipe::exportSchedule(ProgramOp program) {
  Schedule schedule;
  schedule.name = program.getSchedule().str();
  for (RoleOp role : program.getRoles()) {
    std::vector<Action> actions;
    for (const CommAction &action : role.getActions().getActions())
      actions.push_back({action.stage, action.compute, action.microBatch});
    schedule.roles.push_back(std::move(actions));
  }
  return schedule;
}

ActionsAttr pipe::importActions(const std::vector<Action> &actions,
                                mlir::MLIRContext *context) {
  std::vector<CommAction> list;
  list.reserve(actions.size());
  for (const Action &action : actions) {
    CommAction call;
    call.stage = action.stage;
    call.compute = action.kind;
    call.microBatch = action.microBatch;
    list.push_back(call);
  }
  return ActionsAttr::get(context, list);
}
