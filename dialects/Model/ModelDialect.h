//===- ModelDialect.h - graphs of layers ------------------------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// The `model` dialect: its attributes, its interface and its operations.
// ModelBridge.h carries them to and from the plain structs that the libraries
// work on.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "takt/Layer/Graph.h"

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/DialectImplementation.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/RegionKindInterface.h"
#include "mlir/IR/SymbolTable.h"

namespace takt::model {

/// A double as a parameter of an attribute: compared by its bits, as attributes
/// must be equal exactly where they print equal, and printed as the shortest
/// decimal that reads back to the same bits.
struct Real {
  double value = 0;
  Real() = default;
  explicit Real(double value) : value(value) {}
  bool operator==(const Real &other) const;
};
llvm::hash_code hash_value(const Real &real);
llvm::raw_ostream &operator<<(llvm::raw_ostream &os, const Real &real);

/// What `*` in the name of a layer or parameter stands for: its index-th
/// repetition. Other names come back as they are.
std::string nameOfRepetition(llvm::StringRef name, int64_t index);

class GraphOp;
class RepeatOp;

namespace detail {

/// The references that are there: absent optional ones are null.
llvm::SmallVector<mlir::FlatSymbolRefAttr>
presentRefs(std::initializer_list<mlir::FlatSymbolRefAttr> refs);

/// "qkv" of "h.*.attn.qkv": the value's name in print.
llvm::StringRef lastComponent(llvm::StringRef name);

/// What holds for a layer by itself: name, costs, dimensions.
llvm::LogicalResult verifyLayer(mlir::Operation *op);

/// Parameters exist and are as often repeated as the layer; shapes are those
/// that the layer library infers.
llvm::LogicalResult verifyShapes(mlir::Operation *op,
                                 mlir::SymbolTableCollection &symbolTable);

} // namespace detail

} // namespace takt::model

namespace mlir {
template <>
struct FieldParser<takt::model::Real> {
  static FailureOr<takt::model::Real> parse(AsmParser &parser);
};
} // namespace mlir

#include "Model/ModelDialect.h.inc"
#include "Model/ModelEnums.h.inc"

#define GET_ATTRDEF_CLASSES
#include "Model/ModelAttrs.h.inc"

#include "Model/ModelInterfaces.h.inc"

#define GET_OP_CLASSES
#include "Model/ModelOps.h.inc"
