//===- ModelVerifiers.cpp - rules of the ops ------------------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// What a well-formed model is. Shapes are the layer library's business
// (`takt::inferOutput`), and so are the rules of a whole graph
// (`takt::Graph::check`): one place says them for YAML and for IR.
//
//===----------------------------------------------------------------------===//
#include "Model/ModelBridge.h"
#include "takt/Frontend/Read.h" // limits

#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace takt;
using namespace takt::model;

/// A repeat around the op, or null.
static RepeatOp enclosingRepeat(Operation *op) {
  return dyn_cast_or_null<RepeatOp>(op->getParentOp());
}

/// Dimensions are positive and their product is in range.
static LogicalResult verifyDimensions(Operation *op, Type type,
                                      const Twine &what) {
  int64_t elements = 1;
  for (int64_t dim : cast<RankedTensorType>(type).getShape()) {
    if (dim < 1)
      return op->emitOpError() << what << " has a dimension of " << dim;
    if (dim > kMaxElements / elements)
      return op->emitOpError()
             << what << " has more than " << kMaxElements << " elements";
    elements *= dim;
  }
  return success();
}

/// A name has one `*` where it stands for several things, and none elsewhere.
static LogicalResult verifyStar(Operation *op, StringRef what, StringRef name,
                                bool repeated) {
  size_t stars = name.count('*');
  if (repeated && stars != 1)
    return op->emitOpError() << what << " '" << name
                             << "' needs one '*' for the repetition's index";
  if (!repeated && stars != 0)
    return op->emitOpError()
           << what << " '" << name << "' has a '*' outside a repeat";
  return success();
}

//===----------------------------------------------------------------------===//
// Layers
//===----------------------------------------------------------------------===//

/// One cost, or one a repetition, for each kind of device, each with an entry
/// per replica option.
static LogicalResult verifyCosts(LayerOpInterface layer) {
  ArrayAttr costs = layer.getCosts();
  if (!costs)
    return success();
  RepeatOp repeat = enclosingRepeat(layer);
  int64_t repetitions = repeat ? repeat.getCount() : 1;
  llvm::MapVector<Attribute, int64_t> entries; // by kind
  Attribute last;
  for (auto cost : costs.getAsRange<CostAttr>()) {
    if (entries.count(cost.getDevice()) && cost.getDevice() != last)
      return layer->emitOpError() << "has costs of one kind of device apart";
    last = cost.getDevice();
    ++entries[cost.getDevice()];
  }
  if (entries.empty() || (entries.size() > 1 && entries.count(StringAttr())))
    return layer->emitOpError()
           << (entries.empty() ? "has an empty list of costs"
                               : "has costs of some and costs of all kinds of "
                                 "device");
  for (auto [device, count] : entries)
    if (count != 1 && count != repetitions)
      return layer->emitOpError()
             << "has " << count << " costs for " << repetitions << " repetition"
             << (repetitions == 1 ? "" : "s");
  return success();
}

LogicalResult model::detail::verifyLayer(Operation *op) {
  auto layer = cast<LayerOpInterface>(op);
  if (layer.getLayerName().empty())
    return op->emitOpError("needs a layer name");
  if (failed(verifyStar(op, "layer", layer.getLayerName(),
                        bool(enclosingRepeat(op)))))
    return failure();
  for (Type type : op->getOperandTypes())
    if (failed(verifyDimensions(op, type, "input")))
      return failure();
  if (failed(verifyDimensions(op, op->getResult(0).getType(), "output")))
    return failure();
  return verifyCosts(layer);
}

/// The parameter behind a reference, as often repeated as the layer that uses
/// it.
static FailureOr<rt::Param> lookUpParam(Operation *op, FlatSymbolRefAttr ref,
                                        SymbolTableCollection &symbols) {
  auto param = symbols.lookupNearestSymbolFrom<ParamOp>(op, ref);
  if (!param) {
    op->emitOpError() << "uses parameter '" << ref.getValue()
                      << "', which is not declared";
    return failure();
  }
  if (std::optional<int64_t> repeated = param.getRepeated()) {
    RepeatOp repeat = enclosingRepeat(op);
    int64_t repetitions = repeat ? repeat.getCount() : 0;
    if (*repeated != repetitions) {
      InFlightDiagnostic diag = op->emitOpError()
                                << "uses parameter '" << ref.getValue()
                                << "', which is repeated " << *repeated
                                << " times, ";
      if (repeat)
        diag << "in a block that is repeated " << repetitions << " times";
      else
        diag << "outside a repeat";
      diag.attachNote(param.getLoc()) << "declared here";
      return failure();
    }
  }
  return describeParam(param);
}

LogicalResult model::detail::verifyShapes(Operation *op,
                                          SymbolTableCollection &symbols) {
  auto layerOp = cast<LayerOpInterface>(op);
  Layer layer = layerOp.describe();
  std::vector<rt::Param> params;
  for (FlatSymbolRefAttr ref : layerOp.getParamRefs()) {
    FailureOr<rt::Param> param = lookUpParam(op, ref, symbols);
    if (failed(param))
      return failure();
    layer.params.push_back(int32_t(params.size()));
    params.push_back(std::move(*param));
  }
  std::vector<takt::TensorType> inputs;
  for (auto [index, type] : llvm::enumerate(op->getOperandTypes())) {
    layer.inputs.push_back(int32_t(index));
    inputs.push_back(describeType(type));
  }
  InferredType inferred = inferOutput(layer, inputs, params);
  if (!inferred.error.empty())
    return op->emitOpError() << inferred.error;
  Type expected = tensorType(inferred.type, op->getContext());
  if (expected != op->getResult(0).getType())
    return op->emitOpError() << "gives " << expected << ", but "
                             << op->getResult(0).getType() << " is stated";
  return success();
}

//===----------------------------------------------------------------------===//
// Parameters and repeats
//===----------------------------------------------------------------------===//

LogicalResult ParamOp::verify() {
  if (failed(verifyDimensions(*this, getType(), "parameter")))
    return failure();
  std::optional<int64_t> repeated = getRepeated();
  if (repeated && *repeated < 1)
    return emitOpError("must be repeated at least once");
  return verifyStar(*this, "parameter", getSymName(), repeated.has_value());
}

LogicalResult RepeatOp::verify() {
  if (getCount() < 1 || getCount() > kMaxLayers)
    return emitOpError() << "repeats its block " << getCount()
                         << " times, allowed are 1 to " << kMaxLayers;
  Type type = getInput().getType();
  Block &body = getBody().front();
  if (body.getNumArguments() != 1 || body.getArgument(0).getType() != type)
    return emitOpError() << "needs one block argument of type " << type;
  auto yield = dyn_cast<YieldOp>(body.getTerminator());
  if (!yield)
    return emitOpError("must end in 'model.yield'");
  if (yield.getValue().getType() != type) {
    InFlightDiagnostic diag = emitOpError()
                              << "starts from " << type << " but yields "
                              << yield.getValue().getType();
    diag.attachNote(yield.getLoc()) << "yielded here";
    return diag;
  }
  for (Operation &op : body.without_terminator())
    if (!isa<LayerOpInterface>(op))
      return op.emitOpError("is not a layer");
  return success();
}

//===----------------------------------------------------------------------===//
// The graph
//===----------------------------------------------------------------------===//

/// Options ascend from 1, divide the micro-batch size, and each layer's costs
/// have an entry for each.
static LogicalResult verifyOptions(GraphOp graph) {
  DenseI64ArrayAttr options = graph.getReplicaOptionsAttr();
  int64_t microBatchSize = exportTraining(graph).microBatchSize();
  int64_t last = 0;
  for (int64_t option : options ? options.asArrayRef() : ArrayRef<int64_t>()) {
    if (option <= last)
      return graph.emitOpError("replica options must be positive and ascend");
    if (microBatchSize % option != 0)
      return graph.emitOpError()
             << "replica option " << option << " does not divide the "
             << microBatchSize << " samples of a micro-batch";
    last = option;
  }
  WalkResult walk = graph.walk([&](LayerOpInterface layer) {
    ArrayAttr costs = layer.getCosts();
    for (Attribute cost : costs ? costs.getValue() : ArrayRef<Attribute>()) {
      int64_t entries = cast<CostAttr>(cost).getForward().size();
      int64_t needed = options ? options.size() : 0;
      if (entries == needed)
        continue;
      layer->emitOpError() << "has a cost with " << entries << " entr"
                           << (entries == 1 ? "y" : "ies") << " for " << needed
                           << " replica option" << (needed == 1 ? "" : "s");
      return WalkResult::interrupt();
    }
    return WalkResult::advance();
  });
  return failure(walk.wasInterrupted());
}

LogicalResult GraphOp::verify() {
  Block &body = getBody().front();
  if (getInputs().size() != body.getNumArguments())
    return emitOpError() << "has " << body.getNumArguments()
                         << " arguments and names " << getInputs().size()
                         << " inputs";
  llvm::StringSet<> names;
  for (auto [arg, attr] : llvm::zip(body.getArguments(), getInputs())) {
    auto input = cast<InputAttr>(attr);
    auto type = dyn_cast<RankedTensorType>(arg.getType());
    if (!type || !type.hasStaticShape() ||
        !(type.getElementType().isF32() || type.getElementType().isInteger(32)))
      return emitOpError()
             << "input '" << input.getLabel() << "' has type " << arg.getType()
             << ", allowed are f32 and i32 tensors of static shape";
    if (failed(
            verifyDimensions(*this, type, "input '" + input.getLabel() + "'")))
      return failure();
    if (!names.insert(input.getLabel()).second)
      return emitOpError() << "has two inputs named '" << input.getLabel()
                           << "'";
  }
  if (!isa<OutputOp>(body.getTerminator()))
    return emitOpError("must end in 'model.output'");
  for (Operation &op : body.without_terminator())
    if (!isa<LayerOpInterface, ParamOp, RepeatOp>(op))
      return op.emitOpError("is not a layer, parameter or repeat");
  return success();
}

LogicalResult GraphOp::verifyRegions() {
  if (failed(verifyOptions(*this)))
    return failure();
  if (numLayers() > kMaxLayers)
    return emitOpError() << "has " << numLayers() << " layers, allowed are "
                         << kMaxLayers;
  Graph graph = exportGraph(*this);
  for (const Layer &layer : graph.layers)
    if (llvm::is_contained(layer.inputs, -1))
      return success(); // read before it is made; MLIR reports it next
  if (std::optional<std::string> fault = graph.check())
    return emitOpError() << *fault;
  auto output = cast<OutputOp>(getBody().front().getTerminator());
  Operation *last = nullptr;
  for (Operation &op : getBody().front().without_terminator())
    if (!isa<ParamOp>(op))
      last = &op;
  if (!last || output.getValue() != last->getResult(0))
    return output.emitOpError("must name the output of the last layer");
  return success();
}
