//===- CollDialect.cpp - the coll dialect ---------------------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Registration, and the checks of channels, groups and ties against the roles
// of their program.
//
//===----------------------------------------------------------------------===//
#include "Coll/CollDialect.h"

#include "mlir/IR/Builders.h"
#include "llvm/ADT/SmallSet.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace takt::coll;
using takt::CommAction;
using takt::pipe::LaneAttr;
using takt::pipe::LaneKind;
using takt::pipe::ProgramOp;
using takt::pipe::RoleOp;
using takt::pipe::StageOp;

#include "Coll/CollDialect.cpp.inc"
#include "Coll/CollEnums.cpp.inc"

#define GET_OP_CLASSES
#include "Coll/CollOps.cpp.inc"

void CollDialect::initialize() {
  addOperations<
#define GET_OP_LIST
#include "Coll/CollOps.cpp.inc"
      >();
}

/// The role of a stage in the program around `op`, or an error on `op`.
static FailureOr<RoleOp> findRole(Operation *op, int32_t stage) {
  for (RoleOp role : cast<ProgramOp>(op->getParentOp()).getRoles())
    if (llvm::is_contained(role.getStages(), stage))
      return role;
  op->emitOpError() << "names stage " << stage
                    << ", which no role of the program has";
  return failure();
}

/// Micro-batches in the order of the actions of a lane.
static llvm::SmallVector<int32_t> microBatchesOf(LaneAttr lane) {
  llvm::SmallVector<int32_t> list;
  if (lane)
    for (const CommAction &action : lane.getActions().getActions())
      if (!action.wait)
        list.push_back(action.microBatch);
  return list;
}

LogicalResult ChannelOp::verify() {
  bool forward = getKind() == ChannelKind::Activation;
  int32_t expected = forward ? getFrom() + 1 : getFrom() - 1;
  if (getTo() != expected)
    return emitOpError() << "carries " << stringifyChannelKind(getKind())
                         << "s from stage " << getFrom() << " to stage "
                         << getTo() << ", expected " << expected;
  if (getBytes() < 0)
    return emitOpError() << "has a negative size: " << getBytes() << " bytes";
  FailureOr<RoleOp> from = findRole(*this, getFrom());
  if (failed(from))
    return failure();
  FailureOr<RoleOp> to = findRole(*this, getTo());
  if (failed(to))
    return failure();

  if (*from == *to)
    return emitOpError() << "joins stages " << getFrom() << " and " << getTo()
                         << ", which role " << RoleOp(*from).getNumber()
                         << " has both";

  LaneKind sendKind = forward ? LaneKind::SendAct : LaneKind::SendGrad;
  LaneKind recvKind = forward ? LaneKind::RecvAct : LaneKind::RecvGrad;
  auto sends = microBatchesOf(from->getLane(sendKind, getFrom()));
  auto receives = microBatchesOf(to->getLane(recvKind, getTo()));
  if (sends.size() != receives.size())
    return emitOpError() << "has " << sends.size() << " sends of stage "
                         << getFrom() << " and " << receives.size()
                         << " receives of stage " << getTo();
  for (size_t i = 0; i < sends.size(); ++i)
    if (sends[i] != receives[i])
      return emitOpError() << "carries micro-batch " << sends[i]
                           << " as message " << i << ", stage " << getTo()
                           << " expects micro-batch " << receives[i];
  return success();
}

LogicalResult GroupOp::verify() {
  FailureOr<RoleOp> role = findRole(*this, getStage());
  if (failed(role))
    return failure();
  for (StageOp stage : cast<ProgramOp>((*this)->getParentOp()).getStages())
    if (stage.getNumber() == getStage() && stage.getReplicas() < 2)
      return emitOpError() << "groups the replicas of stage " << getStage()
                           << ", which has only one";
  if (getBucket().has_value() != getLayer().has_value())
    return emitOpError()
           << "needs both a bucket and its first layer, or neither";
  int32_t bucket = getBucket().value_or(-1);
  bool reduces = false;
  if (ArrayAttr lanes = role->getLanesAttr())
    for (auto lane : lanes.getAsRange<LaneAttr>())
      for (const CommAction &action : lane.getActions().getActions()) {
        if (action.kind != takt::CommKind::Reduce || action.wait ||
            action.stage != getStage())
          continue;
        reduces = true;
        if (action.part == bucket)
          return success();
      }
  if (!reduces)
    return emitOpError() << "belongs to stage " << getStage()
                         << ", which reduces nothing";
  if (bucket < 0)
    return emitOpError() << "is of the whole gradients of stage " << getStage()
                         << ", which reduces them in buckets";
  return emitOpError() << "is of gradient bucket " << bucket << ", which stage "
                       << getStage() << " does not reduce";
}

LogicalResult TieOp::verify() {
  if (getStages().empty())
    return emitOpError() << "ties '" << getParam() << "' on no stage";
  int32_t stages = cast<ProgramOp>((*this)->getParentOp()).getStages().size();
  int32_t last = -1;
  for (int32_t stage : getStages()) {
    if (stage < 0 || stage >= stages)
      return emitOpError() << "names stage " << stage << " of " << stages;
    if (stage <= last)
      return emitOpError() << "names stage " << stage << " after stage " << last
                           << "; stages ascend";
    last = stage;
  }
  llvm::SmallSet<int32_t, 4> roles;
  for (int32_t stage : getStages()) {
    FailureOr<RoleOp> role = findRole(*this, stage);
    if (failed(role))
      return failure();
    roles.insert(role->getNumber());
  }
  bool sends = roles.size() > 1;
  if (sends != static_cast<bool>(getLinkAttr()))
    return emitOpError() << "ties '" << getParam() << "' on " << roles.size()
                         << (sends ? " roles and has no link"
                                   : " role and has a link");
  return success();
}
