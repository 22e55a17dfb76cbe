//===- DiagnosticBridge.cpp - MLIR's diagnostics in Takt's form -----------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Translates severities, locations and attached notes.
//
//===----------------------------------------------------------------------===//
#include "DiagnosticBridge.h"

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Location.h"

using namespace takt;

SourceLoc takt::placeOf(mlir::Location loc) {
  if (auto file = loc->findInstanceOf<mlir::FileLineColLoc>())
    return {file.getFilename().str(), int(file.getLine()),
            int(file.getColumn())};
  return {};
}

DiagnosticBridge::DiagnosticBridge(mlir::MLIRContext *context,
                                   Diagnostics &diags)
    : ScopedDiagnosticHandler(context) {
  setHandler([&diags](mlir::Diagnostic &in) {
    SourceLoc place = placeOf(in.getLocation());
    bool error = in.getSeverity() == mlir::DiagnosticSeverity::Error;
    takt::Diagnostic &out = error ? diags.error(place, in.str())
                                  : diags.warning(place, in.str());
    for (mlir::Diagnostic &note : in.getNotes())
      out.note(placeOf(note.getLocation()), note.str());
    return mlir::success();
  });
}
