//===- Passes.h - the passes of the compiler --------------------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Factories and option structs of the passes declared in Passes.td, for example
// `createAssignStagesPass(AssignStagesPassOptions)`, and their registration.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "mlir/Pass/Pass.h"

#include <cstdint>
#include <memory>
#include <string>

namespace takt {

#define GEN_PASS_DECL
#include "takt/Transforms/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "takt/Transforms/Passes.h.inc"

} // namespace takt
