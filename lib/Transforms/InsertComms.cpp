//===- InsertComms.cpp - takt-insert-comms --------------------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Adds to the schedule what it needs to run and declares channels and groups.
// It runs last: what it leaves is all that lowering to a plan reads. Which
// actions are needed is decided by takt/Lower.
//
//===----------------------------------------------------------------------===//
#include "takt/Transforms/Passes.h"

#include "Coll/CollBridge.h"
#include "takt/Lower/Lower.h"

namespace takt {
#define GEN_PASS_DEF_INSERTCOMMSPASS
#include "takt/Transforms/Passes.h.inc"
} // namespace takt

using namespace takt;
using mlir::success;

namespace {

struct InsertComms : impl::InsertCommsPassBase<InsertComms> {
  using InsertCommsPassBase::InsertCommsPassBase;

  void runOnOperation() override {
    if (mlir::failed(insert()))
      signalPassFailure();
  }

  llvm::LogicalResult insert();
};

/// Whether there are roles and none has lanes, as insertion needs.
llvm::LogicalResult checkRoles(pipe::ProgramOp program) {
  std::vector<pipe::RoleOp> roles = program.getRoles();
  if (roles.empty())
    return program.emitError() << "has no schedule; run takt-schedule first";
  for (pipe::RoleOp role : roles)
    if (role.getLanes())
      return role.emitError()
             << "role " << role.getNumber() << " has communication already";
  return success();
}

} // namespace

llvm::LogicalResult InsertComms::insert() {
  std::string error;
  std::optional<pipe::ProgramParts> parts =
      pipe::findProgram(getOperation(), error);
  if (!parts)
    return getOperation().emitError() << error;
  if (mlir::failed(checkRoles(parts->program)))
    return mlir::failure();
  std::optional<LoweringProblem> problem = coll::exportStages(*parts, error);
  if (!problem)
    return parts->graph.emitError() << error;

  std::vector<std::pair<int32_t, int32_t>> ranges;
  for (const StageInput &stage : problem->stages)
    ranges.push_back({stage.layerBegin, stage.layerEnd});
  problem->ties = findTies(problem->graph, ranges);
  insertCommunication(*problem, pipe::exportSchedule(parts->program));
  coll::importCommunication(*problem, *parts);
  return success();
}
