//===- FamilySchedule.h - published schedules for a program -----*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
#pragma once

#include "Pipe/PipeBridge.h"
#include "takt/Schedule/Schedule.h"

#include <optional>
#include <string>

namespace takt {

/// The order of a family of takt/Schedule/Pipeline.h for the stages of a program
/// as they lie on their devices. It has the times of the stages and holds no more
/// micro-batches than their memory was planned for; where the family has no such
/// order, the one for equal stages. Nothing, and a sentence in `error`, if the
/// stages do not lie as the family has them.
std::optional<Schedule> familySchedule(const pipe::ProgramParts &parts,
                                       const std::string &family,
                                       std::string &error);

} // namespace takt
