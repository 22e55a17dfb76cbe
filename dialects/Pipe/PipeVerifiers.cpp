//===- PipeVerifiers.cpp - what holds in pipe IR --------------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Each operation first checks itself; the program then checks how its stages
// and roles fit together, and last how they fit the model and the cluster,
// which are found by symbol.
//
//===----------------------------------------------------------------------===//
#include "Model/ModelBridge.h"
#include "Pipe/PipeBridge.h"
#include "Pipe/PipeDialect.h"
#include "takt/Layer/Order.h"
#include "takt/Partition/Constraints.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallSet.h"
#include "llvm/ADT/StringSet.h"

#include <limits>
#include <map>

using namespace mlir;
using namespace takt::pipe;
using takt::CommAction;
using takt::CommKind;
using takt::Layer;
namespace model = takt::model;

//===----------------------------------------------------------------------===//
// Side constraints
//===----------------------------------------------------------------------===//

LogicalResult ConstraintOp::verify() {
  using takt::ConstraintKind;
  const auto kind = takt::parseConstraintKind(getKind().str());
  if (!kind)
    return emitOpError() << "is of the unknown kind '" << getKind() << "'";
  const size_t layers = getLayers().size();
  size_t least = 0, most = 0;
  switch (*kind) {
  case ConstraintKind::KeepTogether:
    least = 1;
    most = layers;
    break;
  case ConstraintKind::KeepApart:
    least = 2;
    most = layers;
    break;
  case ConstraintKind::NoCutAfter:
  case ConstraintKind::NoCutBefore:
  case ConstraintKind::Pin:
    least = most = 1;
    break;
  default:
    break;
  }
  if (layers < least || layers > most)
    return emitOpError() << "of kind '" << getKind() << "' names " << layers
                         << " layers";
  if (int64_t(getNumber()) < 0)
    return emitOpError() << "has a negative number";
  return success();
}

//===----------------------------------------------------------------------===//
// Cluster
//===----------------------------------------------------------------------===//

LogicalResult ClusterOp::verify() {
  llvm::StringSet<> devices, links;
  for (auto device : getDevices().getAsRange<DeviceAttr>())
    if (!devices.insert(device.getName()).second)
      return emitOpError() << "has two device kinds named '" << device.getName()
                           << "'";
  for (auto link : getLinks().getAsRange<LinkAttr>())
    if (!links.insert(link.getName()).second)
      return emitOpError() << "has two link classes named '" << link.getName()
                           << "'";
  if (getNodes().empty())
    return emitOpError() << "needs at least one group of nodes";

  // Device numbers are 32 bits everywhere below.
  constexpr int64_t most = std::numeric_limits<int32_t>::max();
  int64_t nodes = 0, total = 0;
  for (auto group : getNodes().getAsRange<NodesAttr>()) {
    if (!devices.contains(group.getDevice()))
      return emitOpError() << "has nodes of device kind '" << group.getDevice()
                           << "', which it does not define";
    if (group.getLink() && !links.contains(group.getLink()))
      return emitOpError() << "has nodes joined by link class '"
                           << group.getLink().getValue()
                           << "', which it does not define";
    if (group.getCount() > most || group.getDevices() > most / group.getCount())
      return emitOpError() << "has more than " << most << " devices";
    nodes += group.getCount();
    total += group.getCount() * group.getDevices();
    if (nodes > most || total > most)
      return emitOpError() << "has more than " << most << " devices";
  }
  if (std::optional<llvm::StringRef> network = getNetwork()) {
    if (!links.contains(*network))
      return emitOpError() << "has network '" << *network
                           << "', a link class that it does not define";
  } else if (nodes > 1) {
    return emitOpError() << "has " << nodes
                         << " nodes and needs a network between them";
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Stage
//===----------------------------------------------------------------------===//

LogicalResult StageOp::verify() {
  auto range = [&](llvm::StringRef what, int32_t begin,
                   int32_t end) -> LogicalResult {
    if (begin >= 0 && begin < end)
      return success();
    return emitOpError() << getNumber() << " has no " << what << ": [" << begin
                         << ", " << end << ")";
  };
  if (failed(range("layers", getLayerBegin(), getLayerEnd())) ||
      failed(range("segments", getSegmentBegin(), getSegmentEnd())))
    return failure();
  if (getReplicas() < 1)
    return emitOpError() << getNumber() << " needs at least 1 replica, got "
                         << getReplicas();
  if (int64_t(getDevices().size()) != getReplicas())
    return emitOpError() << getNumber() << " has " << getReplicas()
                         << " replicas on " << getDevices().size()
                         << " devices";
  for (auto [what, value] :
       {std::pair<llvm::StringRef, int64_t>{"forward_ns", getForwardNs()},
        {"backward_ns", getBackwardNs()},
        {"transfer_ns", getTransferNs()},
        {"all_reduce_ns", getAllReduceNs()},
        {"memory_bytes", getMemoryBytes()}})
    if (value < 0)
      return emitOpError() << getNumber() << " has a negative " << what << ": "
                           << value;
  if (getInFlight() < 1)
    return emitOpError() << getNumber()
                         << " must hold at least 1 micro-batch, got in_flight "
                         << getInFlight();
  return success();
}

//===----------------------------------------------------------------------===//
// Role
//===----------------------------------------------------------------------===//

/// The lane that does actions of a kind.
static LaneKind laneOf(CommKind kind) {
  switch (kind) {
  case CommKind::Load:
    return LaneKind::Load;
  case CommKind::SendF:
    return LaneKind::SendAct;
  case CommKind::RecvF:
    return LaneKind::RecvAct;
  case CommKind::SendB:
    return LaneKind::SendGrad;
  case CommKind::RecvB:
    return LaneKind::RecvGrad;
  case CommKind::Reduce:
    return LaneKind::Reduce;
  case CommKind::TieSend:
  case CommKind::TieRecv:
    return LaneKind::Tie;
  case CommKind::Compute:
  case CommKind::TieSum:
  case CommKind::Update:
    return LaneKind::Compute;
  }
  return LaneKind::Compute;
}

/// Whether lanes of a kind carry what crosses a boundary between stages.
static bool isTransfer(LaneKind kind) {
  return kind == LaneKind::SendAct || kind == LaneKind::RecvAct ||
         kind == LaneKind::SendGrad || kind == LaneKind::RecvGrad;
}

LogicalResult RoleOp::verify() {
  llvm::SmallSet<int32_t, 4> stages;
  for (int32_t stage : getStages())
    if (!stages.insert(stage).second)
      return emitOpError() << getNumber() << " names stage " << stage
                           << " twice";
  if (!llvm::is_sorted(getStages()))
    return emitOpError() << getNumber()
                         << " names its stages out of order; they ascend";
  if (stages.empty())
    return emitOpError() << getNumber() << " has no stage";
  auto belongs = [&](const CommAction &action) -> LogicalResult {
    if (stages.contains(action.stage))
      return success();
    return emitOpError() << getNumber() << " has action '"
                         << takt::toText(action)
                         << "' of a stage that is not its own";
  };
  for (const CommAction &action : getActions().getActions()) {
    if (failed(belongs(action)))
      return failure();
    if (action.kind != CommKind::Compute)
      return emitOpError() << getNumber() << " has action '"
                           << takt::toText(action)
                           << "' among its compute actions; it needs a lane";
    if (action.part >= 0)
      return emitOpError() << getNumber() << " has '" << takt::toText(action)
                           << "' among its compute actions; pieces stand on "
                              "the compute lane only";
  }
  if (!getLanes())
    return success();

  std::map<std::pair<LaneKind, int32_t>, int> lanes; // by kind and stage
  llvm::SmallVector<CommAction> compute;
  for (auto lane : getLanesAttr().getAsRange<LaneAttr>()) {
    // Each stage has its own lanes of transfers; buckets may be reduced on two.
    llvm::ArrayRef<CommAction> actions = lane.getActions().getActions();
    const bool isOfStage = isTransfer(lane.getKind()) && !actions.empty();
    const int32_t owner = isOfStage ? actions.front().stage : -1;
    const int most = lane.getKind() == LaneKind::Reduce ? 2 : 1;
    if (++lanes[{lane.getKind(), owner}] > most) {
      InFlightDiagnostic diag = emitOpError();
      diag << getNumber() << " has " << (most == 2 ? "three" : "two")
           << " lanes '" << stringifyLaneKind(lane.getKind()) << "'";
      if (isOfStage && stages.size() > 1)
        diag << " of stage " << owner;
      return diag;
    }
    for (const CommAction &action : lane.getActions().getActions()) {
      if (failed(belongs(action)))
        return failure();
      if (action.wait) {
        bool isReduce = action.kind == CommKind::Reduce;
        LaneKind place = isReduce ? LaneKind::SendGrad : LaneKind::Reduce;
        if (place != lane.getKind())
          return emitOpError()
                 << getNumber() << " has '" << takt::toText(action)
                 << "' on lane '" << stringifyLaneKind(lane.getKind())
                 << "'; such a wait stands on lane '"
                 << stringifyLaneKind(place) << "'";
        continue;
      }
      if (laneOf(action.kind) != lane.getKind())
        return emitOpError()
               << getNumber() << " has action '" << takt::toText(action)
               << "' on lane '" << stringifyLaneKind(lane.getKind())
               << "'; its place is lane '"
               << stringifyLaneKind(laneOf(action.kind)) << "'";
      if (isOfStage && action.stage != owner)
        return emitOpError()
               << getNumber() << " has '" << takt::toText(actions.front())
               << "' and '" << takt::toText(action)
               << "' on one lane; each stage has lanes of its own";
      if (action.kind != CommKind::Compute)
        continue;
      // Pieces count as the action they are cut from.
      CommAction whole = action;
      whole.part = -1;
      if (action.part <= 0 || compute.empty() || compute.back() != whole)
        compute.push_back(whole);
    }
  }
  if (llvm::ArrayRef(compute) != getActions().getActions())
    return emitOpError() << getNumber()
                         << " has a compute lane that differs from its actions";
  return success();
}

//===----------------------------------------------------------------------===//
// Program: how stages and roles fit together
//===----------------------------------------------------------------------===//

LogicalResult ProgramOp::verify() {
  if (getBoundNs() < 0 || getObjectiveNs() < getBoundNs())
    return emitOpError() << "needs 0 <= bound_ns <= objective_ns, got "
                         << getBoundNs() << " and " << getObjectiveNs();
  return success();
}

/// Stages in order, without gap in layers or segments; two of them share all
/// their devices or none.
static LogicalResult verifyStages(const std::vector<StageOp> &stages) {
  int32_t layer = 0, segment = 0;
  std::map<int32_t, int32_t> stageOf;
  for (auto [index, op] : llvm::enumerate(stages)) {
    StageOp stage = op;
    int32_t number = stage.getNumber();
    if (number != int32_t(index))
      return stage.emitOpError()
             << number << " stands where stage " << index << " is expected";
    if (stage.getLayerBegin() != layer)
      return stage.emitOpError()
             << number << " begins with layer " << stage.getLayerBegin()
             << ", expected " << layer;
    if (stage.getSegmentBegin() != segment)
      return stage.emitOpError()
             << number << " begins with segment " << stage.getSegmentBegin()
             << ", expected " << segment;
    layer = stage.getLayerEnd();
    segment = stage.getSegmentEnd();
    for (int32_t device : stage.getDevices()) {
      auto [it, fresh] = stageOf.try_emplace(device, number);
      StageOp first = stages[it->second];
      if (it->second == number ? !fresh
                               : first.getDevices() != stage.getDevices())
        return stage.emitOpError()
               << number << " runs on device " << device << ", which stage "
               << it->second
               << " has already; stages share all their devices or none";
    }
  }
  return success();
}

/// Micro-batches of `stage` whose forward has begun and whose backward has not
/// ended, at most, when `actions` run in order.
static int32_t peakOf(llvm::ArrayRef<CommAction> actions, int32_t stage) {
  std::vector<takt::Action> own;
  for (const CommAction &action : actions)
    if (action.stage == stage)
      own.push_back({action.stage, action.compute, action.microBatch});
  return takt::peakInFlight(own);
}

/// Every stage in the role of its devices, and no more micro-batches in flight
/// than planned.
static LogicalResult verifyRoles(const std::vector<StageOp> &stages,
                                 const std::vector<RoleOp> &roles) {
  std::map<int32_t, int32_t> roleOf;
  for (auto [index, op] : llvm::enumerate(roles)) {
    RoleOp role = op;
    int32_t number = role.getNumber();
    if (number != int32_t(index))
      return role.emitOpError()
             << number << " stands where role " << index << " is expected";
    for (int32_t stage : role.getStages()) {
      if (stage < 0 || stage >= int32_t(stages.size()))
        return role.emitOpError()
               << number << " names stage " << stage << " of " << stages.size();
      auto [it, fresh] = roleOf.try_emplace(stage, number);
      if (!fresh)
        return role.emitOpError() << number << " names stage " << stage
                                  << ", which belongs to role " << it->second;
      int32_t peak = peakOf(role.getActions().getActions(), stage);
      StageOp stageOp = stages[stage];
      if (peak > stageOp.getInFlight()) {
        InFlightDiagnostic diag =
            role.emitOpError()
            << number << " holds " << peak << " micro-batches of stage "
            << stage << " at once, its memory is for " << stageOp.getInFlight();
        diag.attachNote(stageOp.getLoc()) << "in_flight is stated here";
        return diag;
      }
    }
  }
  std::map<int32_t, int32_t> stageOn; // the first stage on a device
  for (StageOp stage : stages) {
    const int32_t number = stage.getNumber();
    if (roles.empty())
      break;
    if (!roleOf.count(number))
      return stage.emitOpError() << number << " belongs to no role";
    auto [it, fresh] = stageOn.try_emplace(stage.getDevices().front(), number);
    if (!fresh && roleOf[it->second] != roleOf[number])
      return stage.emitOpError() << number << " has the devices of stage "
                                 << it->second << ", but another role";
  }
  // The other way round: what shares a role shares its devices.
  for (RoleOp role : roles)
    for (int32_t stage : role.getStages()) {
      StageOp own = stages[stage], first = stages[role.getStages().front()];
      if (own.getDevices() != first.getDevices())
        return role.emitOpError()
               << role.getNumber() << " has stages " << first.getNumber()
               << " and " << stage << ", which have different devices";
    }
  return success();
}

LogicalResult ProgramOp::verifyRegions() {
  for (Operation &op : getBody().getOps())
    if (!isa<StageOp, RoleOp>(op) &&
        op.getName().getDialectNamespace() != "coll")
      return op.emitOpError() << "has no place in a 'pipe.program'";
  std::vector<StageOp> stages = getStages();
  if (stages.empty())
    return emitOpError() << "has no stages";
  if (failed(verifyStages(stages)))
    return failure();
  return verifyRoles(stages, getRoles());
}

//===----------------------------------------------------------------------===//
// Program: against the model and the cluster
//===----------------------------------------------------------------------===//

LogicalResult ProgramOp::verifySymbolUses(SymbolTableCollection &symbols) {
  // The program is a symbol table itself: look outside.
  Operation *scope = (*this)->getParentOp();
  auto cluster =
      symbols.lookupNearestSymbolFrom<ClusterOp>(scope, getClusterAttr());
  if (!cluster)
    return emitOpError() << "runs on '" << getCluster()
                         << "', which is no cluster of the module";
  auto graph =
      symbols.lookupNearestSymbolFrom<model::GraphOp>(scope, getModelAttr());
  if (!graph)
    return emitOpError() << "is of '" << getModel()
                         << "', which is no graph of the module";

  if (mlir::Attribute order = (*this)->getAttr(kOrderAttr)) {
    auto layers = dyn_cast<DenseI32ArrayAttr>(order);
    if (!layers ||
        !isOrder(model::exportGraph(graph), layers.asArrayRef().vec()))
      return emitOpError() << "has an attribute '" << kOrderAttr
                           << "' that is no order of the layers of model '"
                           << getModel() << "'";
  }
  int64_t devices = cluster.getNumDevices();
  std::vector<Layer> layers =
      exportModel({*this, graph, cluster}).graph.layers;
  std::vector<StageOp> stages = getStages();
  for (StageOp stage : stages) {
    for (int32_t device : stage.getDevices())
      if (device < 0 || device >= devices)
        return stage.emitOpError()
               << stage.getNumber() << " runs on device " << device
               << ", cluster '" << getCluster() << "' has " << devices;
    if (stage.getLayerEnd() > int64_t(layers.size()))
      return stage.emitOpError()
             << stage.getNumber() << " ends at layer " << stage.getLayerEnd()
             << ", model '" << getModel() << "' has " << layers.size();
    for (auto [index, name] :
         {std::pair(stage.getLayerBegin(), stage.getFirstLayer()),
          std::pair(stage.getLayerEnd() - 1, stage.getLastLayer())})
      if (name != layers[index].name)
        return stage.emitOpError()
               << stage.getNumber() << " calls layer " << index << " '" << name
               << "', in model '" << getModel() << "' it is '"
               << layers[index].name << "'";
  }
  if (stages.back().getLayerEnd() != int64_t(layers.size()))
    return emitOpError() << "ends at layer " << stages.back().getLayerEnd()
                         << ", model '" << getModel() << "' has "
                         << layers.size();
  return success();
}
