//===- DiagnosticBridge.h - MLIR's diagnostics in Takt's form -----*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// What a pass reports points at the YAML line its op came from, and is shown the
// same way as what the reader of that file reports.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "takt/Support/Diagnostic.h"

#include "mlir/IR/Diagnostics.h"

namespace takt {

/// The place in a file that a location stands for; unknown if there is none.
SourceLoc placeOf(mlir::Location loc);

/// While it lives, diagnostics of the context go to `diags`.
class DiagnosticBridge : public mlir::ScopedDiagnosticHandler {
public:
  DiagnosticBridge(mlir::MLIRContext *context, Diagnostics &diags);
};

} // namespace takt
