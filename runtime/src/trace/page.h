//===- page.h - the page of a timeline --------------------------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// The page is data, a style sheet and scripts (the files in page/, compiled
// in). The scripts draw on a canvas, so that a plan of many thousand actions
// stays quick.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "takt-rt/trace/runs.h"

#include <string>

namespace takt::rt {

/// Plan and runs as the JSON object that page/data.js reads.
std::string pageData(const Plan &plan, const Runs &runs);

/// The files of page/.
extern const char *const kPageStyle;
extern const char *const kPageBody;
extern const char *const kPageScripts[3];

} // namespace takt::rt
