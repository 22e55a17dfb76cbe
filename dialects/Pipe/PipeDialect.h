//===- PipeDialect.h - clusters, stages and action lists --------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// The `pipe` dialect: its attributes and operations. PipeBridge.h carries them
// to and from the plain structs that the libraries work on.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "takt/Lower/Lower.h"

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/DialectImplementation.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/RegionKindInterface.h"
#include "mlir/IR/SymbolTable.h"

#include <vector>

namespace takt {

/// Action lists are hashed where attributes are made unique.
llvm::hash_code hash_value(const CommAction &action);

} // namespace takt

namespace takt::pipe {

/// Set on the module by a pass that proves that no answer exists, or that found
/// none within its limit; each holds the reason. A driver tells "impossible"
/// and "gave up" from "bad input" by them.
constexpr llvm::StringLiteral kInfeasibleAttr = "takt.infeasible";
constexpr llvm::StringLiteral kLimitReachedAttr = "takt.limit_reached";
/// On a program: makespan, bound, method and work of a searched schedule.
constexpr llvm::StringLiteral kSearchAttr = "takt.search";
/// On a program: name of the published model that chose its stages, and the
/// time of a step by its formula.
constexpr llvm::StringLiteral kCostModelAttr = "takt.cost_model";

/// Something a second: FLOP or bytes. Printed as a whole number where it is
/// one, otherwise as the shortest decimal that reads back to the same bits.
struct Rate {
  double perSecond = 0;
  /// Compares bits, as attributes must be equal exactly where they print equal.
  bool operator==(const Rate &other) const;
};
llvm::hash_code hash_value(const Rate &rate);
llvm::raw_ostream &operator<<(llvm::raw_ostream &os, const Rate &rate);

class StageOp;
class RoleOp;

} // namespace takt::pipe

namespace mlir {
template <>
struct FieldParser<takt::pipe::Rate> {
  static FailureOr<takt::pipe::Rate> parse(AsmParser &parser);
};
} // namespace mlir

#include "Pipe/PipeDialect.h.inc"
#include "Pipe/PipeEnums.h.inc"

#define GET_ATTRDEF_CLASSES
#include "Pipe/PipeAttrs.h.inc"

#define GET_OP_CLASSES
#include "Pipe/PipeOps.h.inc"
