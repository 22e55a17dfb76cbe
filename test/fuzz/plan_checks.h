//===- plan_checks.h - what an accepted plan must be ---------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Shared by the harnesses of both forms of a plan.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "takt-rt/core/plan.h"

#include <string>
#include <vector>

namespace takt::fuzz {

/// A plan that a reader returned: it passes the check, both forms keep all of
/// it, reports of it can be written, and the clock runs it to its end or says
/// why it cannot.
void checkAccepted(const rt::Plan &plan);

/// A refusal names the input and says something in one line.
void checkRefusal(const std::string &message, const std::string &name);

/// Words of the plan's enumerations and of its text form.
std::vector<std::string> planWords();

} // namespace takt::fuzz
