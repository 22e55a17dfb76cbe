//===- log.h - the log of this process --------------------------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// One for all that takt-run says beside its reports.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "takt-rt/bootstrap/log.h"

namespace takt::run {

/// By the environment this process was started with. Throws `rt::Error` (Usage)
/// when that asks for what there is not.
inline rt::Log &log() {
  static rt::Log ofThisProcess(rt::Environment::ofThisProcess());
  return ofThisProcess;
}

} // namespace takt::run
