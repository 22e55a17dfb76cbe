//===- CollBridge.cpp - the communication level and lowering --------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Reads a program into a lowering problem, and writes inserted communication
// back.
//
//===----------------------------------------------------------------------===//
#include "Coll/CollBridge.h"

#include "Model/ModelBridge.h"
#include "Pipe/PipeBridge.h"

#include "mlir/IR/Builders.h"
#include "llvm/ADT/STLExtras.h"

#include <fmt/format.h>

#include <map>

using namespace takt;
using namespace takt::coll;
using pipe::ClusterOp;
using pipe::LaneAttr;
using pipe::LaneKind;
using pipe::ProgramOp;
using pipe::ProgramParts;
using pipe::RoleOp;
using pipe::StageOp;

// Lanes carry over by number.
static_assert(int(LaneKind::Compute) == int(rt::LaneKind::Compute) &&
                  int(LaneKind::Load) == int(rt::LaneKind::Load) &&
                  int(LaneKind::RecvAct) == int(rt::LaneKind::RecvAct) &&
                  int(LaneKind::SendAct) == int(rt::LaneKind::SendAct) &&
                  int(LaneKind::RecvGrad) == int(rt::LaneKind::RecvGrad) &&
                  int(LaneKind::SendGrad) == int(rt::LaneKind::SendGrad) &&
                  int(LaneKind::Reduce) == int(rt::LaneKind::Reduce) &&
                  int(LaneKind::Tie) == int(rt::LaneKind::Tie),
              "lane kinds of IR and plan must have the same numbers");

/// Bytes of a micro-batch that cross the boundary after a stage: of all values,
/// or of their gradients.
static Bytes boundaryBytes(const LoweringProblem &problem, size_t boundary,
                           bool gradients) {
  const Graph &graph = problem.graph;
  const std::vector<bool> hasGrad = valuesNeedingGrad(graph);
  Bytes bytes = 0;
  for (int32_t value : crossingValues(graph, problem.stages[boundary].layerEnd))
    if (!gradients || hasGrad[value])
      bytes +=
          graph.values[value].type.bytes() * problem.training.microBatchSize();
  return bytes;
}

//===----------------------------------------------------------------------===//
// Export
//===----------------------------------------------------------------------===//

std::optional<LoweringProblem> coll::exportStages(ProgramParts parts,
                                                  std::string &error) {
  LoweringProblem problem;
  pipe::StagedModel staged = pipe::exportModel(parts);
  const std::optional<CostTable> &costs = staged.costs;
  if (!costs) {
    error = "the layers of model '" + parts.graph.getSymName().str() +
            "' have no costs";
    return std::nullopt;
  }
  problem.cluster = parts.cluster.getSymName().str();
  problem.schedule = parts.program.getSchedule().str();
  problem.costSource = costs->source;
  problem.resources = pipe::exportResources(parts.cluster);
  problem.graph = std::move(staged.graph);
  problem.layerNumbers = std::move(staged.order);
  problem.training = model::exportTraining(parts.graph);
  std::map<llvm::StringRef, std::optional<CostTable>> costsOf; // by kind
  for (StageOp op : parts.program.getStages()) {
    const llvm::StringRef kind =
        parts.cluster.getNodeOf(op.getDevices().front()).second.getDevice();
    auto [found, isNew] = costsOf.try_emplace(kind);
    if (isNew)
      found->second = pipe::exportCosts(parts, kind);
    const std::optional<CostTable> &costs = found->second;
    if (!costs) {
      error =
          fmt::format("stage {} runs on devices of kind '{}', for which the "
                      "layers have no costs",
                      op.getNumber(), kind.str());
      return std::nullopt;
    }
    auto option = llvm::find(costs->replicaOptions, op.getReplicas());
    if (option == costs->replicaOptions.end()) {
      error = fmt::format("stage {} has {} replicas, for which the layers have "
                          "no costs",
                          op.getNumber(), op.getReplicas());
      return std::nullopt;
    }
    size_t index = option - costs->replicaOptions.begin();
    StageInput stage;
    stage.layerBegin = op.getLayerBegin();
    stage.layerEnd = op.getLayerEnd();
    for (int32_t l = stage.layerBegin; l < stage.layerEnd; ++l) {
      const LayerTimes &times = costs->layers[l];
      stage.times.push_back({times.forward[index], times.inputGrad[index],
                             times.weightGrad[index], times.update});
    }
    problem.stages.push_back(std::move(stage));
  }
  std::vector<StageOp> stages = parts.program.getStages();
  for (RoleOp op : parts.program.getRoles()) {
    RoleInput role;
    role.stages = op.getStages().vec();
    // Stages of one role have the same devices.
    StageOp first = stages[role.stages.front()];
    role.replicas = first.getReplicas();
    role.devices = first.getDevices().vec();
    pipe::NodesAttr nodes =
        parts.cluster.getNodeOf(role.devices.front()).second;
    role.capacity = parts.cluster.lookupDevice(nodes.getDevice()).getMemory();
    problem.roles.push_back(std::move(role));
  }
  return problem;
}

static bool exportLanes(ProgramOp program, LoweringProblem &problem,
                        std::string &error) {
  if (problem.roles.empty()) {
    error = "the program has no roles: there is no schedule";
    return false;
  }
  for (RoleOp role : program.getRoles()) {
    int32_t number = role.getNumber();
    if (!role.getLanesAttr()) {
      error = fmt::format("role {} has no lanes: communication is not inserted",
                          number);
      return false;
    }
    for (auto lane : role.getLanesAttr().getAsRange<LaneAttr>()) {
      LaneInput input;
      input.kind = static_cast<rt::LaneKind>(lane.getKind());
      input.actions = lane.getActions().getActions().vec();
      problem.roles[number].lanes.push_back(std::move(input));
    }
  }
  return true;
}

/// Links of the boundaries, checking sizes against the graph.
static bool exportChannels(ProgramOp program, LoweringProblem &problem,
                           std::string &error) {
  problem.boundaryLinks.resize(problem.stages.size() - 1);
  // Nothing is sent where one role has both sides.
  const std::vector<int32_t> roleOf = problem.roleOfStage();
  std::vector<bool> seen(problem.boundaryLinks.size());
  for (size_t boundary = 0; boundary < seen.size(); ++boundary)
    seen[boundary] = roleOf[boundary] == roleOf[boundary + 1];
  for (ChannelOp channel : program.getBody().getOps<ChannelOp>()) {
    size_t boundary = std::min(channel.getFrom(), channel.getTo());
    const Bytes bytes = boundaryBytes(
        problem, boundary, channel.getKind() == ChannelKind::Gradient);
    if (channel.getBytes() != bytes) {
      error =
          fmt::format("channel '{}' carries {} bytes a micro-batch, the "
                      "model has {}",
                      channel.getSymName().str(), channel.getBytes(), bytes);
      return false;
    }
    problem.boundaryLinks[boundary] = pipe::exportLink(channel.getLink());
    seen[boundary] = true;
  }
  for (size_t boundary = 0; boundary < seen.size(); ++boundary)
    if (!seen[boundary]) {
      error = fmt::format("stages {} and {} have no channel between them",
                          boundary, boundary + 1);
      return false;
    }
  return true;
}

static bool exportGroups(ProgramOp program, LoweringProblem &problem,
                         std::string &error) {
  const std::vector<int32_t> roleOf = problem.roleOfStage();
  std::vector<bool> seen(problem.stages.size());
  for (GroupOp group : program.getBody().getOps<GroupOp>()) {
    const int32_t number = group.getStage();
    StageInput &stage = problem.stages[number];
    problem.roles[roleOf[number]].groupLink = pipe::exportLink(group.getLink());
    seen[number] = true;
    if (!group.getBucket())
      continue;
    // Buckets stand in their order; their layers are checked with the problem.
    if (*group.getBucket() != int32_t(stage.bucketBegins.size())) {
      error = fmt::format("group '{}' is of bucket {}, expected bucket {}",
                          group.getSymName().str(), *group.getBucket(),
                          stage.bucketBegins.size());
      return false;
    }
    stage.bucketBegins.push_back(*group.getLayer());
  }
  for (const RoleInput &role : problem.roles)
    for (const LaneInput &lane : role.lanes)
      for (const CommAction &action : lane.actions)
        if (action.kind == CommKind::Reduce && !seen[action.stage]) {
          error = fmt::format("stage {} reduces gradients but has no group",
                              action.stage);
          return false;
        }
  return true;
}

static bool exportTies(ProgramOp program, LoweringProblem &problem,
                       std::string &error) {
  for (TieOp op : program.getBody().getOps<TieOp>()) {
    auto param = llvm::find_if(problem.graph.params, [&](const rt::Param &p) {
      return op.getParam() == p.name;
    });
    if (param == problem.graph.params.end()) {
      error = fmt::format("tie '{}' is of '{}', which is no parameter of the "
                          "model",
                          op.getSymName().str(), op.getParam().str());
      return false;
    }
    TieInput tie;
    tie.param = param - problem.graph.params.begin();
    tie.stages = op.getStages().vec();
    problem.ties.push_back(std::move(tie));
    problem.tieLinks.push_back(pipe::exportLink(op.getLinkAttr()));
  }
  return true;
}

std::optional<LoweringProblem> coll::exportLowering(mlir::ModuleOp module,
                                                    std::string &error) {
  std::optional<ProgramParts> parts = pipe::findProgram(module, error);
  if (!parts)
    return std::nullopt;
  std::optional<LoweringProblem> problem = exportStages(*parts, error);
  if (!problem)
    return std::nullopt;
  ProgramOp program = parts->program;
  if (!exportLanes(program, *problem, error) ||
      !exportChannels(program, *problem, error) ||
      !exportGroups(program, *problem, error) ||
      !exportTies(program, *problem, error))
    return std::nullopt;
  if (std::optional<std::string> fault = problem->check()) {
    error = *fault;
    return std::nullopt;
  }
  return problem;
}

//===----------------------------------------------------------------------===//
// Import
//===----------------------------------------------------------------------===//

static void setLanes(RoleOp role, const RoleInput &input) {
  mlir::MLIRContext *context = role.getContext();
  mlir::SmallVector<mlir::Attribute> lanes;
  for (const LaneInput &lane : input.lanes)
    lanes.push_back(
        LaneAttr::get(context, static_cast<LaneKind>(lane.kind),
                      pipe::ActionsAttr::get(context, lane.actions)));
  role.setLanesAttr(mlir::ArrayAttr::get(context, lanes));
}

void coll::importCommunication(const LoweringProblem &problem,
                               ProgramParts parts) {
  ProgramOp program = parts.program;
  ClusterOp cluster = parts.cluster;
  mlir::OpBuilder builder =
      mlir::OpBuilder::atBlockEnd(&program.getBody().front());
  mlir::Location loc = program.getLoc();
  const std::vector<int32_t> roleOf = problem.roleOfStage();

  // Among two or more devices there always is a link: that of their node or the
  // network, by the verifier of the cluster.
  auto linkAmong = [&](llvm::ArrayRef<int32_t> stages) {
    std::vector<int32_t> devices;
    for (int32_t stage : stages)
      llvm::append_range(devices, problem.roles[roleOf[stage]].devices);
    return cluster.getLinkAmong(devices);
  };
  std::vector<RoleOp> roles = program.getRoles();
  for (RoleOp role : roles)
    setLanes(role, problem.roles[role.getNumber()]);
  for (int32_t b = 0; b + 1 < int32_t(roleOf.size()); ++b) {
    if (roleOf[b] == roleOf[b + 1])
      continue;
    pipe::LinkAttr link = linkAmong({b, b + 1});
    if (roles[roleOf[b]].getLane(LaneKind::SendAct, b))
      ChannelOp::create(builder, loc, fmt::format("act{}", b),
                        ChannelKind::Activation, b, b + 1,
                        boundaryBytes(problem, b, false), link);
    if (roles[roleOf[b + 1]].getLane(LaneKind::SendGrad, b + 1))
      ChannelOp::create(builder, loc, fmt::format("grad{}", b),
                        ChannelKind::Gradient, b + 1, b,
                        boundaryBytes(problem, b, true), link);
  }
  for (const RoleInput &role : problem.roles)
    for (int32_t stage : role.stages) {
      auto isOwn = [&](const CommAction &action) {
        return action.kind == CommKind::Reduce && action.stage == stage;
      };
      if (llvm::any_of(role.lanes, [&](const LaneInput &lane) {
            return llvm::any_of(lane.actions, isOwn);
          }))
        GroupOp::create(builder, loc, fmt::format("dp{}", stage), stage,
                        mlir::IntegerAttr(), mlir::IntegerAttr(),
                        linkAmong(stage));
    }
  for (size_t k = 0; k < problem.ties.size(); ++k) {
    const TieInput &tie = problem.ties[k];
    // With all uses on one role nothing is sent.
    const bool sends = tieRuns(tie, roleOf).size() > 1;
    TieOp::create(builder, loc, fmt::format("tie{}", k),
                  problem.graph.params[tie.param].name, tie.stages,
                  sends ? linkAmong(tie.stages) : pipe::LinkAttr());
  }
}

void coll::importBuckets(const LoweringProblem &problem, ProgramParts parts) {
  ProgramOp program = parts.program;
  const std::vector<int32_t> roleOf = problem.roleOfStage();
  std::vector<RoleOp> roles = program.getRoles();
  auto groups = llvm::to_vector(program.getBody().getOps<GroupOp>());
  for (GroupOp group : groups) {
    const StageInput &stage = problem.stages[group.getStage()];
    const int32_t role = roleOf[group.getStage()];
    // Also where one all-reduce and a send are set in order.
    setLanes(roles[role], problem.roles[role]);
    if (bucketCount(stage) < 2)
      continue;
    mlir::OpBuilder builder(group);
    for (int32_t k = 0; k < bucketCount(stage); ++k)
      GroupOp::create(builder, group.getLoc(),
                      fmt::format("{}_{}", group.getSymName().str(), k),
                      group.getStage(), builder.getI32IntegerAttr(k),
                      builder.getI32IntegerAttr(stage.bucketBegins[k]),
                      group.getLink());
    group.erase();
  }
}
