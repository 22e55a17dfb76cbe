//===- OverlapComms.cpp - takt-overlap-comms ------------------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Gives gradients their buckets where that shortens the step. It runs after
// communication is inserted, whose one all-reduce it divides. Buckets, order
// and the comparison are in takt/Overlap.
//
//===----------------------------------------------------------------------===//
#include "takt/Transforms/Passes.h"

#include "SolverFailure.h"

#include "Coll/CollBridge.h"
#include "takt/Overlap/Choose.h"

namespace takt {
#define GEN_PASS_DEF_OVERLAPCOMMSPASS
#include "takt/Transforms/Passes.h.inc"
} // namespace takt

using namespace takt;
using mlir::failed;
using mlir::failure;
using mlir::success;

namespace {

struct OverlapComms : impl::OverlapCommsPassBase<OverlapComms> {
  using OverlapCommsPassBase::OverlapCommsPassBase;

  void runOnOperation() override {
    if (mlir::failed(overlap()))
      signalPassFailure();
  }

  llvm::LogicalResult overlap();
};

} // namespace

llvm::LogicalResult OverlapComms::overlap() {
  if (lanes < 1 || lanes > 2)
    return getOperation().emitError()
           << "gradients are reduced on 1 or 2 lanes, not on "
           << lanes.getValue();
  if (bucketSize < 0)
    return getOperation().emitError()
           << "a bucket of " << bucketSize.getValue() << " bytes";
  std::string error;
  std::optional<pipe::ProgramParts> parts =
      pipe::findProgram(getOperation(), error);
  if (!parts)
    return getOperation().emitError() << error;
  for (pipe::RoleOp role : parts->program.getRoles())
    if (!role.getLanes())
      return role.emitError() << "role " << role.getNumber()
                              << " has no communication; run "
                                 "takt-insert-comms first";
  std::optional<LoweringProblem> problem =
      coll::exportLowering(getOperation(), error);
  if (!problem)
    return parts->program.emitError() << error;
  for (size_t s = 0; s < problem->stages.size(); ++s)
    if (bucketCount(problem->stages[s]) > 1)
      return parts->program.emitError()
             << "stage " << s << " reduces its gradients in buckets already";

  OverlapOptions options;
  options.bucketBytes = bucketSize;
  options.lanes = int32_t(lanes);
  options.limits.dumpFolder = dumpSmt2;
  options.limits.workLimit = searchWork;
  OverlapChoice choice = chooseOverlap(*problem, options);
  for (const StageOverlap &stage : choice.stages)
    if (stage.solution.failure) {
      if (failed(reportFailure(parts->program, stage.solution.failure)))
        return failure();
      break; // once is enough
    }
  if (!choice.pays())
    return success();
  for (const StageInput &stage : problem->stages)
    if (bucketCount(stage) > 1)
      numBuckets += bucketCount(stage);
  coll::importBuckets(*problem, *parts);
  return success();
}
