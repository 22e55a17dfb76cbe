//===- schedules.h - taktc schedules ----------------------------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
#pragma once

namespace takt {

/// The families of schedules on standard output, a line each or as JSON. Returns
/// the exit code.
int listSchedules(bool json);

} // namespace takt
