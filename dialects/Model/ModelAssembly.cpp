//===- ModelAssembly.cpp - text form of the ops ---------------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Parsers and printers of the ops with regions, of costs, and the names that
// values have in print.
//
//===----------------------------------------------------------------------===//
#include "Model/ModelDialect.h"

using namespace mlir;
using namespace takt;
using namespace takt::model;

//===----------------------------------------------------------------------===//
// Directives of the assembly formats
//===----------------------------------------------------------------------===//

/// Nothing, `cost <...>`, or `costs [<...>, <...>]` with one a repetition.
static OptionalParseResult parseCosts(OpAsmParser &parser, ArrayAttr &costs) {
  SmallVector<Attribute> entries;
  auto parseEntry = [&]() -> ParseResult {
    FailureOr<CostAttr> cost = FieldParser<CostAttr>::parse(parser);
    if (failed(cost))
      return failure();
    entries.push_back(*cost);
    return success();
  };
  if (succeeded(parser.parseOptionalKeyword("cost"))) {
    if (parseEntry())
      return ParseResult::failure();
  } else if (succeeded(parser.parseOptionalKeyword("costs"))) {
    if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Square,
                                       parseEntry))
      return ParseResult::failure();
  } else {
    return std::nullopt;
  }
  costs = parser.getBuilder().getArrayAttr(entries);
  return ParseResult::success();
}

static void printCosts(OpAsmPrinter &printer, Operation *, ArrayAttr costs) {
  auto printEntry = [&](Attribute cost) {
    printer.printStrippedAttrOrType(cast<CostAttr>(cost));
  };
  if (costs.size() == 1) {
    printer << "cost ";
    return printEntry(costs[0]);
  }
  printer << "costs [";
  llvm::interleaveComma(costs, printer, printEntry);
  printer << "]";
}

static ParseResult parseEpsilon(OpAsmParser &parser, FloatAttr &epsilon) {
  FailureOr<Real> value = FieldParser<Real>::parse(parser);
  if (failed(value))
    return failure();
  epsilon = parser.getBuilder().getF64FloatAttr(value->value);
  return success();
}

static void printEpsilon(OpAsmPrinter &printer, Operation *,
                         FloatAttr epsilon) {
  printer.getStream() << Real(epsilon.getValueAsDouble());
}

#define GET_OP_CLASSES
#include "Model/ModelOps.cpp.inc"

//===----------------------------------------------------------------------===//
// model.graph
//===----------------------------------------------------------------------===//

/// `(%tokens: tensor<64xi32> <"tokens", classes = 256>, ...)`
static ParseResult parseSignature(OpAsmParser &parser,
                                  SmallVectorImpl<OpAsmParser::Argument> &args,
                                  ArrayAttr &inputs) {
  SmallVector<Attribute> attrs;
  auto parseOne = [&]() -> ParseResult {
    if (parser.parseArgument(args.emplace_back(), /*allowType=*/true))
      return failure();
    FailureOr<InputAttr> input = FieldParser<InputAttr>::parse(parser);
    if (failed(input))
      return failure();
    attrs.push_back(*input);
    return success();
  };
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Paren, parseOne))
    return failure();
  inputs = parser.getBuilder().getArrayAttr(attrs);
  return success();
}

ParseResult GraphOp::parse(OpAsmParser &parser, OperationState &result) {
  StringAttr name;
  ArrayAttr inputs;
  SmallVector<OpAsmParser::Argument> args;
  auto &props = result.getOrAddProperties<Properties>();
  if (parser.parseSymbolName(name) || parseSignature(parser, args, inputs))
    return failure();
  props.sym_name = name;
  props.inputs = inputs;

  if (parser.parseKeyword("training"))
    return failure();
  FailureOr<TrainingAttr> training = FieldParser<TrainingAttr>::parse(parser);
  if (failed(training) || parser.parseKeyword("data"))
    return failure();
  FailureOr<DataSource> data = FieldParser<DataSource>::parse(parser);
  if (failed(data))
    return failure();
  props.training = *training;
  props.data = DataSourceAttr::get(parser.getContext(), *data);

  if (succeeded(parser.parseOptionalKeyword("replica_options"))) {
    FailureOr<DenseI64ArrayAttr> options =
        FieldParser<DenseI64ArrayAttr>::parse(parser);
    if (failed(options))
      return failure();
    props.replica_options = *options;
  }
  if (succeeded(parser.parseOptionalKeyword("cost_source")) &&
      parser.parseAttribute(props.cost_source))
    return failure();
  return failure(parser.parseOptionalAttrDictWithKeyword(result.attributes) ||
                 parser.parseRegion(*result.addRegion(), args));
}

void GraphOp::print(OpAsmPrinter &p) {
  p << ' ';
  p.printSymbolName(getSymName());
  p << '(';
  llvm::interleaveComma(
      llvm::zip(getBody().getArguments(), getInputs()), p, [&](auto pair) {
        p.printRegionArgument(std::get<0>(pair));
        p << ' ';
        p.printStrippedAttrOrType(cast<InputAttr>(std::get<1>(pair)));
      });
  p << ')';
  p.increaseIndent();
  p.printNewline();
  p << "training ";
  p.printStrippedAttrOrType(getTraining());
  p << " data " << stringifyDataSource(getData());
  if (DenseI64ArrayAttr options = getReplicaOptionsAttr()) {
    p << " replica_options ";
    p.printStrippedAttrOrType(options);
  }
  if (StringAttr source = getCostSourceAttr())
    p << " cost_source " << source;
  p.printOptionalAttrDictWithKeyword((*this)->getAttrs(),
                                     {"sym_name", "inputs", "training", "data",
                                      "replica_options", "cost_source"});
  p.decreaseIndent();
  p << ' ';
  p.printRegion(getBody(), /*printEntryBlockArgs=*/false);
}

void GraphOp::getAsmBlockArgumentNames(Region &region,
                                       OpAsmSetValueNameFn setNameFn) {
  for (auto [arg, input] : llvm::zip(region.getArguments(), getInputs()))
    setNameFn(arg, cast<InputAttr>(input).getLabel());
}

//===----------------------------------------------------------------------===//
// model.repeat
//===----------------------------------------------------------------------===//

ParseResult RepeatOp::parse(OpAsmParser &parser, OperationState &result) {
  auto &props = result.getOrAddProperties<Properties>();
  int64_t count = 0;
  OpAsmParser::Argument arg;
  OpAsmParser::UnresolvedOperand input;
  Type type;
  if (parser.parseInteger(count) || parser.parseAttribute(props.block) ||
      parser.parseLParen() || parser.parseArgument(arg) ||
      parser.parseEqual() || parser.parseOperand(input) ||
      parser.parseRParen() || parser.parseColonType(type) ||
      parser.parseOptionalAttrDictWithKeyword(result.attributes) ||
      parser.resolveOperand(input, type, result.operands))
    return failure();
  props.count = parser.getBuilder().getI64IntegerAttr(count);
  arg.type = type;
  result.addTypes(type);
  return parser.parseRegion(*result.addRegion(), {arg});
}

void RepeatOp::print(OpAsmPrinter &p) {
  p << ' ' << getCount() << ' ' << getBlockAttr() << " (";
  p.printRegionArgument(getBody().getArgument(0), {}, /*omitType=*/true);
  p << " = " << getInput() << ") : " << getInput().getType();
  p.printOptionalAttrDictWithKeyword((*this)->getAttrs(), {"count", "block"});
  p << ' ';
  p.printRegion(getBody(), /*printEntryBlockArgs=*/false);
}

void RepeatOp::getAsmResultNames(OpAsmSetValueNameFn setNameFn) {
  setNameFn(getOutput(), getBlock());
}

void RepeatOp::getAsmBlockArgumentNames(Region &region,
                                        OpAsmSetValueNameFn setNameFn) {
  for (BlockArgument arg : region.getArguments())
    setNameFn(arg, "in");
}

//===----------------------------------------------------------------------===//
// Helpers of the layer ops
//===----------------------------------------------------------------------===//

SmallVector<FlatSymbolRefAttr>
model::detail::presentRefs(std::initializer_list<FlatSymbolRefAttr> refs) {
  SmallVector<FlatSymbolRefAttr> present;
  for (FlatSymbolRefAttr ref : refs)
    if (ref)
      present.push_back(ref);
  return present;
}

StringRef model::detail::lastComponent(StringRef name) {
  size_t dot = name.rfind('.');
  return dot == StringRef::npos ? name : name.substr(dot + 1);
}

void ProfiledOp::describeInto(Layer &layer) {
  ProfileAttr profile = getProfile();
  layer.profiled.samples = profile.getSamples();
  layer.profiled.forward = profile.getForward();
  layer.profiled.inputGrad = profile.getInputGrad();
  layer.profiled.weightGrad = profile.getWeightGrad();
  layer.profiled.activation = profile.getActivation();
  layer.profiled.parameters = profile.getParameters();
  layer.profiled.trainable = !getFrozen();
}
