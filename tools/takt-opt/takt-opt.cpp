//===- takt-opt.cpp - runs passes on text ---------------------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Reads IR, runs the passes that its options name and prints the result: what
// tests of dialects and passes, and people who look into one step, use.
//
//===----------------------------------------------------------------------===//
#include "Coll/CollDialect.h"
#include "Model/ModelDialect.h"
#include "Pipe/PipeDialect.h"
#include "takt/Transforms/Pipelines.h"

#include "mlir/Tools/mlir-opt/MlirOptMain.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  registry.insert<takt::model::ModelDialect, takt::pipe::PipeDialect,
                  takt::coll::CollDialect>();
  takt::registerTaktPasses();
  takt::registerTaktPipeline();
  return mlir::asMainReturnCode(
      mlir::MlirOptMain(argc, argv, "Takt's dialects and passes\n", registry));
}
