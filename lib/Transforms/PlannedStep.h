//===- PlannedStep.h - what a schedule takes as a plan ----------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// A search reckons with a model of the pipeline; this lowers what it found and
// runs it under the virtual clock, before anything is written into the program.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "Pipe/PipeBridge.h"
#include "takt/Schedule/Schedule.h"

#include "takt-rt/core/plan.h"

#include "mlir/IR/BuiltinOps.h"

#include <optional>
#include <string>

namespace takt {

/// Writes the schedule's lists as roles, each with the stages of its actions.
void addRoles(pipe::ProgramOp program, const Schedule &schedule);

struct PlannedStep {
  rt::Nanos step = 0;
  bool fits = true; ///< into the memory of every device
};

/// The step of a program without roles if it had the schedule, its gradients
/// reduced after the calls. The module stays as it is. Nothing, and a sentence in
/// `error`, if it cannot be lowered.
std::optional<PlannedStep> planStep(mlir::ModuleOp module,
                                    const Schedule &schedule,
                                    std::string &error);

} // namespace takt
