//===- LayerKinds.cpp - the settings of each layer kind -------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// One function a kind: reads its keys and gives parameters their shapes. What
// the shapes must satisfy among each other is asked of `inferOutput`; faults
// that a single setting causes are reported here, at that setting.
//
//===----------------------------------------------------------------------===//
#include "LayerReader.h"

#include "takt/Frontend/Read.h"
#include "takt/Support/NearestName.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <limits>

using namespace takt;

namespace {

constexpr int64_t kMaxDim = std::numeric_limits<int32_t>::max();

} // namespace

LayerReader::Init LayerReader::readInit(Section &section, Init otherwise) {
  const YamlNode *node = section.find("init");
  if (!node)
    return otherwise;
  auto text = reader.text(*node, "init");
  if (!text)
    return otherwise;
  if (*text == "zeros")
    return {rt::InitKind::Zeros, 0};
  if (*text == "ones")
    return {rt::InitKind::Ones, 0};
  std::size_t open = text->find('(');
  std::string word = text->substr(0, open);
  double scale = 0;
  bool fine = (word == "normal" || word == "uniform") &&
              open != std::string::npos && text->back() == ')';
  if (fine) {
    const char *begin = text->data() + open + 1;
    const char *end = text->data() + text->size() - 1;
    auto [stop, code] = std::from_chars(begin, end, scale);
    fine = code == std::errc() && stop == end && std::isfinite(scale) &&
           scale > 0 && scale <= 1e6;
  }
  if (!fine) {
    std::string hint =
        nearestHint(word, {"normal", "uniform", "zeros", "ones"});
    if (word == "normal" || word == "uniform")
      hint = fmt::format("; '{}' needs a scale above 0, such as '{}(0.02)'",
                         word, word);
    reader.error(*node,
                 fmt::format("'init' must be normal(standard deviation), "
                             "uniform(half width), zeros or ones, not '{}'{}",
                             quotable(*text), hint));
    return otherwise;
  }
  return {word == "normal" ? rt::InitKind::Normal : rt::InitKind::Uniform,
          scale};
}

bool LayerReader::readTrainable(Section &section, const Scope &scope) {
  bool trainable = scope.trainable;
  section.truth("trainable", trainable);
  return trainable;
}

void LayerReader::addParam(LayerSpec &layer, const std::string &suffix,
                           std::vector<int64_t> shape, Init init,
                           bool trainable) {
  ParamSpec param;
  param.name = layer.name + "." + suffix;
  param.shape = std::move(shape);
  param.init = init.kind;
  param.initScale = init.scale;
  param.trainable = trainable;
  param.loc = layer.loc;
  if (suffix == "weight")
    weights.emplace(layer.name, param);
  layer.params.push_back(std::move(param));
}

void LayerReader::readEmbedding(Section &section, LayerSpec &layer,
                                const Scope &scope) {
  int64_t vocab = 0, width = 0;
  bool haveVocab =
      section.require("vocab") && section.integer("vocab", vocab, 1, kMaxDim);
  bool haveWidth =
      section.require("width") && section.integer("width", width, 1, kMaxDim);
  const Value *ids = knownValue(layer.inputs, 0);
  if (haveVocab && ids && ids->input >= 0 &&
      spec.inputs[ids->input].classes > vocab)
    reader.error(*section.find("vocab"),
                 fmt::format("'vocab' is {}, but the input '{}' has {} classes",
                             vocab, layer.inputs[0],
                             spec.inputs[ids->input].classes));
  Init init = readInit(section, {rt::InitKind::Normal, 0.02});
  if (!haveVocab || !haveWidth)
    layer.inputs = {kUnknownValue};
  addParam(layer, "weight", {vocab, width}, init,
           readTrainable(section, scope));
}

void LayerReader::readPositional(Section &section, LayerSpec &layer,
                                 const Scope &scope) {
  Init init = readInit(section, {rt::InitKind::Normal, 0.02});
  const Value *x = knownValue(layer.inputs, 0);
  addParam(layer, "weight", x ? x->type.shape : std::vector<int64_t>(), init,
           readTrainable(section, scope));
}

void LayerReader::readTie(const YamlNode &node, LayerSpec &layer,
                          const std::vector<int64_t> &shape,
                          const Scope &scope) {
  auto name = reader.text(node, "tied");
  if (!name)
    return;
  std::string full = lookUp(*name, scope);
  if (full == layer.name) {
    reader.error(node,
                 fmt::format("'tied' names the layer '{}' itself; name an "
                             "earlier one",
                             *name));
    return;
  }
  auto owner = weights.find(full);
  if (owner == weights.end()) {
    auto kind = kinds.find(full);
    if (full.empty())
      reader.error(node,
                   fmt::format("'tied' names '{}', which is not an earlier "
                               "layer{}",
                               quotable(*name),
                               nearestHint(*name, visibleNames(scope))));
    else if (kind == kinds.end())
      reader.error(node, fmt::format("'tied' names '{}', which is an input and "
                                     "has no weight",
                                     *name));
    else
      reader.error(node, fmt::format("'tied' names the {} layer '{}', which "
                                     "has no weight",
                                     kind->second, *name));
    return;
  }
  ParamSpec &own = layer.params.front();
  bool known = !shape.empty() && countElements(owner->second.shape) > 0;
  if (known && owner->second.shape != shape) {
    reader
        .error(node,
               fmt::format("'{}' of shape {} cannot be the weight of "
                           "'{}', which needs shape {}",
                           owner->second.name, shapeText(owner->second.shape),
                           layer.name, shapeText(shape)))
        .note(owner->second.loc, "the weight is declared here");
    layer.inputs = {kUnknownValue};
    return;
  }
  own = owner->second;
  own.tied = true;
  own.loc = reader.loc(node);
  weights[layer.name] = own;
}

void LayerReader::readLinear(Section &section, LayerSpec &layer,
                             const Scope &scope) {
  int64_t out = 0;
  layer.hasBias = true;
  bool haveOut =
      section.require("out") && section.integer("out", out, 1, kMaxDim);
  section.truth("bias", layer.hasBias);
  const YamlNode *tied = section.find("tied");
  if (tied && section.find("init"))
    reader.error(section.keyLoc("init"), "a tied weight takes its 'init' from "
                                         "the layer it is tied to");
  Init init = readInit(section, {rt::InitKind::Normal, 0.02});
  bool trainable = readTrainable(section, scope);
  const Value *x = knownValue(layer.inputs, 0);
  std::vector<int64_t> shape;
  if (haveOut && x && !x->type.shape.empty())
    shape = {out, x->type.shape.back()};
  else
    layer.inputs = {kUnknownValue};
  addParam(layer, "weight", shape, init, trainable);
  if (tied)
    readTie(*tied, layer, shape, scope);
  if (layer.hasBias)
    addParam(layer, "bias", {out}, {rt::InitKind::Zeros, 0}, trainable);
}

void LayerReader::readLayerNorm(Section &section, LayerSpec &layer,
                                const Scope &scope) {
  section.real("epsilon", layer.epsilon, {0, 1, true});
  Init init = readInit(section, {rt::InitKind::Ones, 0});
  bool trainable = readTrainable(section, scope);
  const Value *x = knownValue(layer.inputs, 0);
  std::vector<int64_t> width;
  if (x && !x->type.shape.empty())
    width = {x->type.shape.back()};
  addParam(layer, "weight", width, init, trainable);
  addParam(layer, "bias", width, {rt::InitKind::Zeros, 0}, trainable);
}

void LayerReader::readRmsNorm(Section &section, LayerSpec &layer,
                              const Scope &scope) {
  section.real("epsilon", layer.epsilon, {0, 1, true});
  Init init = readInit(section, {rt::InitKind::Ones, 0});
  const Value *x = knownValue(layer.inputs, 0);
  std::vector<int64_t> width;
  if (x && !x->type.shape.empty())
    width = {x->type.shape.back()};
  addParam(layer, "weight", width, init, readTrainable(section, scope));
}

void LayerReader::readAdd(Section &section, LayerSpec &layer,
                          const Scope &scope) {
  layer.inputs.clear();
  if (const YamlNode *node = section.require("inputs"))
    if (const auto *items = reader.list(*node, "inputs", true)) {
      if (items->size() != 2)
        reader.error(*node, fmt::format("'inputs' must name 2 values, not {}",
                                        items->size()));
      else
        for (const YamlNodePtr &item : *items)
          layer.inputs.push_back(
              reference(*item, "inputs", scope).value_or(kUnknownValue));
    }
  if (layer.inputs.empty())
    layer.inputs = {kUnknownValue, kUnknownValue};
}

void LayerReader::readLoss(Section &section, LayerSpec &layer,
                           const Scope &scope) {
  std::string target = kUnknownValue;
  if (const YamlNode *node = section.require("target"))
    target = reference(*node, "target", scope).value_or(kUnknownValue);
  layer.inputs.push_back(target);
  if (scope.inRepeat || scope.inResidual) {
    reader.error(section.loc(),
                 fmt::format("the loss '{}' stands inside a {}; it must be the "
                             "last layer of the model",
                             layer.name,
                             scope.inRepeat ? "repeat" : "residual"));
    return;
  }
  lossName = layer.name;
  const Value *logits = knownValue(layer.inputs, 0);
  const Value *ids = knownValue(layer.inputs, 1);
  if (layer.kind != LayerKind::CrossEntropy || !logits || !ids ||
      ids->input < 0 || logits->type.shape.empty())
    return;
  int64_t classes = spec.inputs[ids->input].classes;
  if (classes > logits->type.shape.back())
    reader.error(*section.find("target"),
                 fmt::format("the target '{}' has {} classes, but the logits "
                             "of shape {} tell only {} apart",
                             target, classes, shapeText(logits->type.shape),
                             logits->type.shape.back()));
}

void LayerReader::readProfiled(Section &section, LayerSpec &layer,
                               const Scope &scope) {
  ProfiledCost &cost = layer.profiled;
  cost.trainable = readTrainable(section, scope);
  if (section.require("forward"))
    section.time("forward", cost.forward);
  if (section.require("activation"))
    section.bytes("activation", cost.activation);
  section.bytes("parameters", cost.parameters);
  if (section.require("samples"))
    section.integer("samples", cost.samples, 1, kMaxDim);
  bool parts = section.find("input_grad") || section.find("weight_grad");
  if (section.find("backward") && parts) {
    reader.error(section.keyLoc("backward"),
                 "'backward' is the sum of 'input_grad' and 'weight_grad'; "
                 "give either the sum or the parts");
  } else if (parts) {
    if (section.require("input_grad"))
      section.time("input_grad", cost.inputGrad);
    if (section.require("weight_grad"))
      section.time("weight_grad", cost.weightGrad);
  } else if (spec.training.mode == rt::Mode::Inference
                 ? section.find("backward")
                 : section.require("backward")) {
    Nanos backward = 0;
    section.time("backward", backward);
    // Input and weight gradient of a product cost the same arithmetic.
    cost.weightGrad = cost.parameters > 0 ? backward / 2 : 0;
    cost.inputGrad = backward - cost.weightGrad;
  }
}

void LayerReader::readPlain(LayerKind kind, Section &section,
                            const std::string &name, Scope &scope) {
  LayerSpec layer;
  layer.kind = kind;
  layer.name = name;
  layer.loc = section.loc();
  bool isFirst = scope.previous.empty() && !section.find("input");
  if (kind != LayerKind::Add && !(kind == LayerKind::Profiled && isFirst))
    layer.inputs = {inputOf(
        section, kind == LayerKind::Glu ? "gated_mlp" : layerKindName(kind),
        scope)};
  SourceLoc at = section.loc();
  switch (kind) {
  case LayerKind::Embedding:
    readEmbedding(section, layer, scope);
    break;
  case LayerKind::PositionalEmbedding:
    readPositional(section, layer, scope);
    break;
  case LayerKind::Linear:
    readLinear(section, layer, scope);
    break;
  case LayerKind::LayerNorm:
    readLayerNorm(section, layer, scope);
    break;
  case LayerKind::RmsNorm:
    readRmsNorm(section, layer, scope);
    break;
  case LayerKind::Attention:
    readAttention(section, layer, scope);
    return;
  case LayerKind::Glu:
    readGatedMlp(section, layer, scope);
    return;
  case LayerKind::Rotary: // part of attention
  case LayerKind::Gelu:
  case LayerKind::GeluTanh:
  case LayerKind::Relu:
    break;
  case LayerKind::Add:
    readAdd(section, layer, scope);
    break;
  case LayerKind::CrossEntropy:
  case LayerKind::MeanSquaredError:
    readLoss(section, layer, scope);
    if (const YamlNode *target = section.find("target"))
      at = reader.loc(*target);
    break;
  case LayerKind::Profiled:
    readProfiled(section, layer, scope);
    break;
  }
  finish(std::move(layer), scope, at);
}
