//===- schedule_input.h - schedule files where plans are expected -*- C++
//-*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// A schedule file becomes a plan that can be checked, simulated and drawn: its
// actions take the times that the user states, in microseconds.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "takt-rt/core/file.h"
#include "takt-rt/core/plan.h"

#include <iosfwd>
#include <string>

struct PlanInput {
  takt::rt::Plan plan;
  bool isSchedule = false; ///< made from a schedule file
};

/// Reads a plan or a schedule, told apart by what they contain; a name that
/// ends in .csv is a schedule's; "-" is standard input. `costs` is
/// "F=1,B=2,I=1,W=1,comm=0" or a part of it; without them F, I and W take 1 and
/// comm 0, and B takes I + W. Prints faults and warnings of a schedule with
/// their places and throws `Error(BadInput)` on a fault, `Error(Usage)` on
/// costs that are none. `verdict` receives what is found of a schedule, also of
/// one that is refused, as one JSON object; the keys are in
/// docs/reference/takt-plan.md.
PlanInput readPlanOrSchedule(const std::string &file, const std::string &costs,
                             takt::rt::Reading reading,
                             std::ostream *verdict = nullptr);
