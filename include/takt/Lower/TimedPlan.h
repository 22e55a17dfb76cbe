//===- TimedPlan.h - a schedule with nothing but times -----------*- C++
//-*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Turns a schedule into a plan that can be simulated, drawn and proven, but not
// run: a stage is known by the times of its actions, a message by the time it
// takes. Roles may hold several stages, in any placement. This is the model in
// which published schedules and their bubbles are stated: an action starts when
// its rank is free and its inputs are there; what crosses ranks arrives
// `transfer` later, what stays on a rank at once.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "takt-rt/core/plan.h"
#include "takt/Schedule/Schedule.h"

#include <optional>
#include <string>
#include <vector>

namespace takt {

/// Times of a stage's actions for one micro-batch, in nanoseconds. `backward`
/// is that of B; below 0 it is `inputGrad + weightGrad`.
struct ActionTimes {
  rt::Nanos forward = 0;
  rt::Nanos inputGrad = 0;
  rt::Nanos weightGrad = 0;
  rt::Nanos backward = -1;

  rt::Nanos whole() const {
    return backward < 0 ? inputGrad + weightGrad : backward;
  }
};

struct TimedPlanProblem {
  ScheduleProblem shape;          ///< stages of the model, micro-batches
  Schedule schedule;              ///< list r is what rank r does
  std::vector<ActionTimes> times; ///< one a stage, or one for all
  rt::Nanos transfer = 0; ///< of a message between neighbour stages that lie on
                          ///< different ranks; messages of one boundary and
                          ///< direction follow one another, others overlap
  /// What a stage holds of a micro-batch from its F to the end of its backward.
  rt::Bytes activationBytes = rt::kAlignment;
  rt::Bytes messageBytes = rt::kAlignment; ///< a stage's input or output

  /// Sizes and times in range, and the schedule passes `verify`.
  std::optional<std::string> check() const;
};

/// The problem must pass `check()`; the plan passes `rt::checkStructure`. Role
/// r is rank r ("rank0"...), its compute lane is lane 0. Procedures hold a
/// `Profiled` kernel, so that no device tries to run them.
rt::Plan timedPlan(const TimedPlanProblem &problem);

} // namespace takt
