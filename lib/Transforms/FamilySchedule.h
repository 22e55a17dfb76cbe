//===- FamilySchedule.h - published schedules for a program -----*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
#pragma once

#include "Pipe/PipeBridge.h"
#include "takt/Schedule/Pipeline.h"

#include <functional>
#include <optional>
#include <string>

namespace takt {

/// A family or a rule: the order for a problem, or why there is none.
using PipelineGenerator = std::function<std::optional<Pipeline>(
    const PipelineProblem &problem, std::string &why)>;

/// The order that a generator has for the stages of a program as they lie on their
/// devices. It follows the times of the stages and holds no more micro-batches
/// than their memory was planned for; where there is no such order, the one for
/// equal stages. Nothing, and a sentence in `error`, if the stages do not lie as
/// the generator has them.
std::optional<Schedule> generatedSchedule(const pipe::ProgramParts &parts,
                                          const PipelineGenerator &generate,
                                          std::string &error);

} // namespace takt
