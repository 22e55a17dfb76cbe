//===- SearchedSchedule.h - schedules that are searched for -----*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// "optimal" and "optimal-split": no generator knows them, they follow from the
// times of the stages and from the memory that is left.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "Pipe/PipeBridge.h"
#include "takt/Schedule/Search.h"

#include <optional>
#include <string>
#include <vector>

namespace takt {

/// "optimal": F and B; "optimal-split": F, I and W.
bool isSearchedSchedule(const std::string &name);

/// Times of the stages of a program for one micro-batch, what is between them,
/// and how many micro-batches fit at most. Nothing, and a sentence in `error`, if
/// costs are missing.
std::optional<std::vector<SearchStage>>
stageTimes(const pipe::ProgramParts &parts, std::string &error);

/// Searches the shortest schedule for the stages of a program: as a plan never
/// longer than 1F1B's or GPipe's where those fit. The stages then
/// state the memory of as many micro-batches as it holds: the search may use
/// all that a device has. Nothing, and a sentence in `error`, if the pipeline is
/// too large or its costs are missing.
std::optional<SearchResult> searchProgram(const pipe::ProgramParts &parts,
                                          const std::string &name,
                                          const solver::Settings &settings,
                                          std::string &error);

} // namespace takt
