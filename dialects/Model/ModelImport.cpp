//===- ModelImport.cpp - from the reader's spec to IR ---------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// One op for each layer of the spec, repeats kept as one, parameters in front
// of the layer or repeat that uses them first.
//
//===----------------------------------------------------------------------===//
#include "Model/ModelBridge.h"

#include <map>
#include <set>

using namespace mlir;
using namespace takt;
using namespace takt::model;

RankedTensorType model::tensorType(const takt::TensorType &type,
                                   MLIRContext *context) {
  Type element = Float32Type::get(context);
  if (type.dtype == DType::Int32)
    element = IntegerType::get(context, 32);
  return RankedTensorType::get(type.shape, element);
}

namespace {

class Importer {
public:
  Importer(const ModelSpec &spec, MLIRContext *context)
      : spec(spec), context(context), builder(context) {}

  OwningOpRef<ModuleOp> run();

private:
  using Scope = std::map<std::string, mlir::Value>;

  Location locOf(const SourceLoc &loc) const {
    if (loc.file.empty())
      return UnknownLoc::get(context);
    return FileLineColLoc::get(context, loc.file, loc.line, loc.column);
  }

  TrainingAttr training() const;
  /// Where parameters are declared in full: tied uses only name them.
  void collectParams();
  void declareParams(const LayerSpec &layer, int64_t repetitions);
  mlir::Value importRepeat(const RepeatSpec &repeat);
  mlir::Value importLayer(const LayerSpec &layer, const Scope &scope);

  mlir::Value lookup(const Scope &scope, const std::string &name) const {
    auto it = scope.find(name);
    return it != scope.end() ? it->second : outer.find(name)->second;
  }

  const ModelSpec &spec;
  MLIRContext *context;
  OpBuilder builder;
  Scope outer; ///< model inputs, layers and repeats outside repeats
  std::map<std::string, const ParamSpec *> declarations;
  std::set<std::string> declared;
};

TrainingAttr Importer::training() const {
  const rt::Training &t = spec.training;
  return TrainingAttr::get(
      context, t.globalBatch, t.microBatches, t.seed, Optimizer(t.optimizer),
      Real(t.learningRate), Real(t.momentum), Real(t.beta1), Real(t.beta2),
      Real(t.epsilon), Real(t.weightDecay), LrSchedule(t.schedule),
      t.warmupSteps, t.totalSteps, Real(t.minLearningRate), Mode(t.mode));
}

void Importer::collectParams() {
  auto collect = [&](const LayerSpec &layer) {
    for (const ParamSpec &param : layer.params)
      if (!param.tied)
        declarations.insert({param.name, &param});
  };
  for (const ItemSpec &item : spec.items) {
    if (!item.repeat)
      collect(item.layer);
    else
      for (const LayerSpec &layer : item.repeat->body)
        collect(layer);
  }
}

void Importer::declareParams(const LayerSpec &layer, int64_t repetitions) {
  for (const ParamSpec &use : layer.params) {
    if (!declared.insert(use.name).second)
      continue;
    auto it = declarations.find(use.name);
    const ParamSpec &param = it == declarations.end() ? use : *it->second;
    IntegerAttr repeated;
    if (StringRef(param.name).contains('*'))
      repeated = builder.getI64IntegerAttr(repetitions);
    ParamOp::create(
        builder, locOf(param.loc), builder.getStringAttr(param.name),
        TypeAttr::get(tensorType({param.shape, DType::Float32}, context)),
        InitAttr::get(context, InitKind(param.init), Real(param.initScale)),
        param.trainable ? UnitAttr() : builder.getUnitAttr(), repeated);
  }
}

mlir::Value Importer::importRepeat(const RepeatSpec &repeat) {
  for (const LayerSpec &layer : repeat.body)
    declareParams(layer, repeat.count);
  mlir::Value input = outer.find(repeat.input)->second;
  auto op = RepeatOp::create(builder, locOf(repeat.loc), input.getType(),
                             builder.getI64IntegerAttr(repeat.count),
                             builder.getStringAttr(repeat.name), input);
  OpBuilder::InsertionGuard guard(builder);
  Block *body = builder.createBlock(&op.getBody(), {}, {input.getType()},
                                    {locOf(repeat.loc)});
  Scope scope{{repeat.name + ".in", body->getArgument(0)}};
  mlir::Value last = body->getArgument(0);
  for (const LayerSpec &layer : repeat.body) {
    last = importLayer(layer, scope);
    scope[layer.name] = last;
  }
  YieldOp::create(builder, locOf(repeat.loc), last);
  return op.getOutput();
}

mlir::Value Importer::importLayer(const LayerSpec &layer, const Scope &scope) {
  Location loc = locOf(layer.loc);
  StringAttr name = builder.getStringAttr(layer.name);
  SmallVector<mlir::Value> x;
  for (const std::string &input : layer.inputs)
    x.push_back(lookup(scope, input));
  SmallVector<FlatSymbolRefAttr> params;
  for (const ParamSpec &param : layer.params)
    params.push_back(FlatSymbolRefAttr::get(context, param.name));
  Type type = tensorType(layer.type, context);
  ArrayAttr noCost;

  switch (layer.kind) {
  case LayerKind::Embedding:
    return EmbeddingOp::create(builder, loc, type, name, x[0], params[0],
                               noCost);
  case LayerKind::PositionalEmbedding:
    return PositionalEmbeddingOp::create(builder, loc, type, name, x[0],
                                         params[0], noCost);
  case LayerKind::Linear:
    return LinearOp::create(builder, loc, type, name, x[0], params[0],
                            layer.hasBias ? params[1] : FlatSymbolRefAttr(),
                            noCost);
  case LayerKind::LayerNorm:
    return LayerNormOp::create(builder, loc, type, name, x[0], params[0],
                               params[1],
                               builder.getF64FloatAttr(layer.epsilon), noCost);
  case LayerKind::RmsNorm:
    return RmsNormOp::create(builder, loc, type, name, x[0], params[0],
                             builder.getF64FloatAttr(layer.epsilon), noCost);
  case LayerKind::Attention: {
    IntegerAttr kvHeads;
    if (layer.kvHeads != 0)
      kvHeads = builder.getI64IntegerAttr(layer.kvHeads);
    return AttentionOp::create(builder, loc, type, name, x[0],
                               builder.getI64IntegerAttr(layer.heads), kvHeads,
                               noCost);
  }
  case LayerKind::Rotary:
    return RotaryOp::create(builder, loc, type, name, x[0],
                            builder.getI64IntegerAttr(layer.heads),
                            builder.getI64IntegerAttr(layer.headDim),
                            builder.getF64FloatAttr(layer.theta), noCost);
  case LayerKind::GeluTanh:
    return GeluTanhOp::create(builder, loc, type, name, x[0], noCost);
  case LayerKind::Glu:
    return GluOp::create(builder, loc, type, name, x[0],
                         GateAttr::get(context, Gate(layer.gate)), noCost);
  case LayerKind::Gelu:
    return GeluOp::create(builder, loc, type, name, x[0], noCost);
  case LayerKind::Relu:
    return ReluOp::create(builder, loc, type, name, x[0], noCost);
  case LayerKind::Add:
    return AddOp::create(builder, loc, type, name, x[0], x[1], noCost);
  case LayerKind::CrossEntropy:
    return CrossEntropyOp::create(builder, loc, type, name, x[0], x[1], noCost);
  case LayerKind::MeanSquaredError:
    return MeanSquaredErrorOp::create(builder, loc, type, name, x[0], x[1],
                                      noCost);
  case LayerKind::Profiled: {
    const ProfiledCost &p = layer.profiled;
    auto profile = ProfileAttr::get(context, p.samples, p.forward, p.inputGrad,
                                    p.weightGrad, p.activation, p.parameters);
    return ProfiledOp::create(builder, loc, type, name,
                              x.empty() ? mlir::Value() : x[0], profile,
                              !p.trainable, noCost);
  }
  }
  llvm_unreachable("unknown layer kind");
}

OwningOpRef<ModuleOp> Importer::run() {
  collectParams();
  OwningOpRef<ModuleOp> module = ModuleOp::create(locOf(spec.loc));
  builder.setInsertionPointToEnd(module->getBody());

  SmallVector<Attribute> inputs;
  SmallVector<Type> types;
  for (const rt::InputInfo &input : spec.inputs) {
    inputs.push_back(InputAttr::get(context, input.name, input.classes));
    types.push_back(tensorType({input.shape, input.dtype}, context));
  }
  auto graph = GraphOp::create(
      builder, locOf(spec.loc), builder.getStringAttr(spec.name),
      builder.getArrayAttr(inputs), training(),
      DataSourceAttr::get(context, DataSource(spec.data)), DenseI64ArrayAttr(),
      StringAttr());
  Block *body =
      builder.createBlock(&graph.getBody(), {}, types,
                          SmallVector<Location>(types.size(), locOf(spec.loc)));
  for (auto [input, arg] : llvm::zip(spec.inputs, body->getArguments()))
    outer[input.name] = arg;

  mlir::Value last;
  for (const ItemSpec &item : spec.items) {
    if (item.repeat) {
      last = importRepeat(*item.repeat);
      outer[item.repeat->name] = last;
    } else {
      declareParams(item.layer, 1);
      last = importLayer(item.layer, {});
      outer[item.layer.name] = last;
    }
  }
  OutputOp::create(builder, locOf(spec.loc), last);
  return module;
}

} // namespace

OwningOpRef<ModuleOp> model::importModel(const ModelSpec &spec,
                                         MLIRContext *context) {
  context->loadDialect<ModelDialect>();
  return Importer(spec, context).run();
}
