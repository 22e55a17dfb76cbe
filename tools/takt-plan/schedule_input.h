//===- schedule_input.h - schedule files where plans are expected -*- C++ -*-===//
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

#include "takt-rt/core/plan.h"

#include <string>

/// Whether a file is a schedule, by its name: "my.csv".
bool isScheduleFile(const std::string &file);

/// Reads and verifies the file; `costs` is "F=1,B=2,I=1,W=1,comm=0" or a part
/// of it, which are also the defaults; B is I + W if only those are given. Prints
/// faults and warnings with their places and throws `Error(BadInput)` on a
/// fault, `Error(Usage)` on costs that are none.
takt::rt::Plan readSchedulePlan(const std::string &file,
                                const std::string &costs);
