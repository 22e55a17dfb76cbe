//===- PlannedStep.cpp - what a schedule takes as a plan ------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Works on a copy of the module, so that the plan is lowered from the same IR by
// the same code as the one that leaves the compiler.
//
//===----------------------------------------------------------------------===//
#include "PlannedStep.h"

#include "Coll/CollBridge.h"
#include "takt/Lower/Lower.h"

#include "takt-rt/core/clock.h"
#include "takt-rt/core/error.h"

#include "mlir/IR/OwningOpRef.h"

#include <set>

using namespace takt;

void takt::addRoles(pipe::ProgramOp program, const Schedule &schedule) {
  auto builder = mlir::OpBuilder::atBlockEnd(&program.getBody().front());
  int32_t number = 0;
  for (const std::vector<Action> &actions : schedule.roles) {
    std::set<int32_t> own;
    for (const Action &action : actions)
      own.insert(action.stage);
    pipe::RoleOp::create(builder, program.getLoc(), number,
                         std::vector<int32_t>(own.begin(), own.end()),
                         pipe::importActions(actions, program.getContext()),
                         mlir::ArrayAttr());
    ++number;
  }
  program.setSchedule(schedule.name);
}

std::optional<PlannedStep> takt::planStep(mlir::ModuleOp module,
                                          const Schedule &schedule,
                                          std::string &error) {
  mlir::OwningOpRef<mlir::ModuleOp> copy = module.clone();
  std::optional<pipe::ProgramParts> parts = pipe::findProgram(*copy, error);
  if (!parts)
    return std::nullopt;
  addRoles(parts->program, schedule);
  std::optional<LoweringProblem> stages = coll::exportStages(*parts, error);
  if (!stages)
    return std::nullopt;
  std::vector<std::pair<int32_t, int32_t>> ranges;
  for (const StageInput &stage : stages->stages)
    ranges.push_back({stage.layerBegin, stage.layerEnd});
  stages->ties = findTies(stages->graph, ranges);
  insertCommunication(*stages, schedule);
  coll::importCommunication(*stages, *parts);
  std::optional<LoweringProblem> problem =
      coll::exportLowering(*copy, error);
  if (!problem)
    return std::nullopt;
  const rt::Plan plan = lower(*problem);
  PlannedStep planned;
  for (const rt::Role &role : plan.roles)
    planned.fits &= role.capacity == 0 || role.arenaBytes <= role.capacity;
  try {
    planned.step = rt::simulate(plan).makespan;
  } catch (const rt::Error &hang) { // an order that its buffers hold up for ever
    error = hang.what();
    return std::nullopt;
  }
  return planned;
}
