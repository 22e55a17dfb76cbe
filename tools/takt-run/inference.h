//===- inference.h - what inference asks of a run ---------------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Which options go with the mode of a plan, and how many steps a text is for.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "run.h"

#include "takt-rt/core/plan.h"
#include "takt-rt/data/source.h"

#include <functional>
#include <string>

namespace takt::run {

/// Throws `rt::Error` (Usage) for an option of training where the plan is one
/// of inference, and the other way round.
void checkMode(const RunOptions &options, const rt::Plan &plan);

/// Steps of inference: all of a source that ends, unless fewer are asked for;
/// `steps` of one that does not. Throws `rt::Error` (BadInput) where there are
/// not the samples of one step.
int64_t stepsOf(const RunOptions &options, const rt::Plan &plan,
                const rt::Source &source, int64_t steps,
                const std::function<void(const std::string &)> &warn);

} // namespace takt::run
