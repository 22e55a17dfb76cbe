//===- LayerReader.cpp - the `layers:` of a model file --------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// The structure: lists, repeats, residuals, and what finishing a layer means.
//
//===----------------------------------------------------------------------===//
#include "LayerReader.h"

#include "takt/Frontend/Read.h"
#include "takt/Support/NearestName.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>

using namespace takt;

std::string takt::shapeText(const std::vector<int64_t> &shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

std::optional<int64_t> takt::countElements(const std::vector<int64_t> &shape) {
  int64_t count = 1;
  for (int64_t dim : shape) {
    if (dim < 1) // a setting could not be read
      return 0;
    if (dim > kMaxElements / count)
      return std::nullopt;
    count *= dim;
  }
  return count;
}

/// The kind of a layer by its word in a file; composite ones by their core's.
static std::optional<LayerKind> kindNamed(const std::string &word) {
  const std::string core = word == "gated_mlp" ? "glu" : word;
  for (int i = 0; i <= int(LayerKind::Profiled); ++i)
    if (layerKindName(LayerKind(i)) == core)
      return LayerKind(i);
  return std::nullopt;
}

LayerReader::LayerReader(Reader &reader, ModelSpec &spec)
    : reader(reader), spec(spec) {
  values[kUnknownValue].known = false;
}

bool LayerReader::addInput(const rt::InputInfo &input, SourceLoc loc) {
  if (!names.emplace(input.name, loc).second)
    return false;
  Value value;
  value.type = {input.shape, input.dtype};
  value.loc = std::move(loc);
  value.input = static_cast<int>(spec.inputs.size());
  value.known = !input.shape.empty();
  values.emplace(input.name, std::move(value));
  spec.inputs.push_back(input);
  return true;
}

void LayerReader::readLayers(const YamlNode &list) {
  collectNames(list);
  Scope scope;
  readList(list, scope);
}

void LayerReader::readList(const YamlNode &list, Scope &scope) {
  if (const auto *items = reader.list(list, "layers", false))
    for (const YamlNodePtr &item : *items)
      readItem(*item, scope);
}

void LayerReader::readItem(const YamlNode &item, Scope &scope) {
  const KeyTable &kindTable = keyTable(modelKeys(), "layer");
  // `- gelu` and `- gelu:` stand for `- gelu: {}`.
  static const YamlNode none = [] {
    YamlNode node;
    node.kind = YamlNode::Kind::Map;
    return node;
  }();
  std::string kind;
  SourceLoc loc = reader.loc(item);
  const YamlNode *body = &none;
  // Until the layer is read, what follows it knows nothing of its input.
  std::string before = std::exchange(scope.previous, kUnknownValue);
  if (item.kind == YamlNode::Kind::Scalar) {
    kind = item.scalar;
  } else if (item.kind == YamlNode::Kind::Map && !item.entries.empty()) {
    const YamlNode::Entry &first = item.entries.front();
    kind = first.key;
    loc = reader.loc(first);
    if (first.value->kind != YamlNode::Kind::Null)
      body = first.value.get();
    if (item.entries.size() > 1) {
      const YamlNode::Entry &second = item.entries[1];
      reader.error(reader.loc(second),
                   fmt::format("a layer has one key, its kind; indent '{0}' "
                               "deeper to make it a setting of '{1}'",
                               quotable(second.key), quotable(kind)));
      return;
    }
  } else {
    reader.error(item, "a layer must be its kind with settings, such as "
                       "'linear: {out: 128}'");
    return;
  }

  std::size_t index = 0;
  while (index < kindTable.keys.size() && kindTable.keys[index] != kind)
    ++index;
  if (index == kindTable.keys.size()) {
    std::string hint = nearestHint(kind, kindTable.keys);
    if (hint.empty())
      hint = fmt::format("; known kinds: {}", fmt::join(kindTable.keys, ", "));
    reader.error(
        loc, fmt::format("unknown layer kind '{}'{}", quotable(kind), hint));
    return;
  }
  if (!lossName.empty() && !lossReported) {
    reader
        .error(values[lossName].loc,
               fmt::format("the loss '{}' must be the last layer", lossName))
        .note(loc, "this layer follows it");
    lossReported = true;
  }

  Section section(reader, *body, keyTable(modelKeys(), kind),
                  fmt::format("'{}'", kind), loc);
  if (!section.isMap())
    return;
  scope.previous = before;
  bool isNamed = false;
  std::string name = takeName(section, kind, scope, isNamed);
  if (kind == "repeat")
    readRepeat(section, name, scope);
  else if (kind == "residual")
    readResidual(section, name, isNamed, scope);
  else
    readPlain(*kindNamed(kind), section, name, scope);
}

void LayerReader::readRepeat(Section &section, const std::string &name,
                             Scope &scope) {
  if (scope.inRepeat || scope.inResidual) {
    reader.error(section.loc(),
                 scope.inRepeat ? "a repeat cannot stand inside a repeat"
                                : "a repeat cannot stand inside a residual");
    scope.previous = kUnknownValue;
    return;
  }
  auto repeat = std::make_shared<RepeatSpec>();
  repeat->name = name;
  repeat->loc = section.loc();
  if (section.require("count"))
    section.integer("count", repeat->count, 1, kMaxLayers);
  repeat->input = inputOf(section, "repeat", scope);

  Value entry;
  entry.loc = repeat->loc;
  entry.type = values[repeat->input].type;
  entry.known = values[repeat->input].known;
  std::string entryName = name + ".in";
  values.emplace(entryName, entry);

  Scope inner;
  inner.outer = &scope;
  inner.prefix = name + ".*.";
  inner.previous = entryName;
  inner.trainable = readTrainable(section, scope);
  inner.body = &repeat->body;
  inner.inRepeat = true;
  if (const YamlNode *layers = section.require("layers"))
    readList(*layers, inner);

  Value result = entry;
  Value &last = values[inner.previous];
  last.used = true;
  result.used = false;
  result.known = entry.known && last.known && !repeat->body.empty();
  if (result.known && !(last.type == entry.type)) {
    reader.error(section.loc(),
                 fmt::format("the blocks of repeat '{}' change the shape from "
                             "{} to {}; each block's output is the next one's "
                             "input",
                             name, shapeText(entry.type.shape),
                             shapeText(last.type.shape)));
    result.known = false;
  }
  values[name] = result;
  scope.previous = name;
  if (!repeat->body.empty()) {
    ItemSpec item;
    item.repeat = std::move(repeat);
    spec.items.push_back(std::move(item));
  }
}

void LayerReader::readResidual(Section &section, const std::string &name,
                               bool isNamed, Scope &scope) {
  std::string input = inputOf(section, "residual", scope);
  Scope inner = scope;
  inner.outer = isNamed ? &scope : scope.outer;
  inner.inResidual = true;
  inner.trainable = readTrainable(section, scope);
  if (isNamed)
    inner.prefix = name + ".";
  inner.previous = input;
  if (const YamlNode *layers = section.require("layers"))
    readList(*layers, inner);
  if (inner.previous == input) { // nothing could be read
    scope.previous = kUnknownValue;
    return;
  }

  LayerSpec add;
  add.kind = LayerKind::Add;
  add.name = isNamed ? name + ".add" : freshName("add", scope);
  if (isNamed)
    registerName(add.name, "add", section.loc());
  add.loc = section.loc();
  add.inputs = {input, inner.previous};
  values[inner.previous].used = true;
  if (isNamed)
    aliases[name] = add.name;
  const Value &before = values[input], &after = values[inner.previous];
  if (before.known && after.known && !(before.type == after.type)) {
    reader.error(
        section.loc(),
        fmt::format("the residual's layers change the shape from {} to "
                    "{}; both sides of the sum need one shape",
                    shapeText(before.type.shape), shapeText(after.type.shape)));
    values[inner.previous].known = false;
  }
  finish(std::move(add), scope, section.loc());
}

const LayerReader::Value *
LayerReader::knownValue(const std::vector<std::string> &inputs,
                        std::size_t index) const {
  if (index >= inputs.size())
    return nullptr;
  auto it = values.find(inputs[index]);
  return it != values.end() && it->second.known ? &it->second : nullptr;
}

void LayerReader::appendLayer(LayerSpec layer, Scope &scope) {
  scope.previous = layer.name;
  if (scope.body) {
    scope.body->push_back(std::move(layer));
    return;
  }
  ItemSpec item;
  item.layer = std::move(layer);
  spec.items.push_back(std::move(item));
}

void LayerReader::finish(LayerSpec layer, Scope &scope, SourceLoc at) {
  Layer probe;
  probe.kind = layer.kind;
  probe.hasBias = layer.hasBias;
  probe.heads = layer.heads;
  probe.kvHeads = layer.kvHeads;
  probe.headDim = layer.headDim;
  probe.theta = layer.theta;
  probe.gate = layer.gate;
  probe.epsilon = layer.epsilon;
  probe.profiled = layer.profiled;
  probe.inputs.resize(layer.inputs.size());
  std::vector<rt::Param> params;
  Value output;
  output.loc = layer.loc;
  for (const ParamSpec &param : layer.params) {
    probe.params.push_back(static_cast<int32_t>(params.size()));
    rt::Param known;
    known.shape = param.shape;
    params.push_back(std::move(known));
    if (!countElements(param.shape)) {
      reader.error(at, fmt::format("the parameter '{}' of shape {} has more "
                                   "than 2^40 elements",
                                   param.name, shapeText(param.shape)));
      output.known = false;
    }
  }
  std::vector<TensorType> types;
  for (std::size_t i = 0; i < layer.inputs.size(); ++i) {
    const Value *value = knownValue(layer.inputs, i);
    if (value)
      types.push_back(value->type);
    else
      output.known = false;
  }
  if (output.known) {
    InferredType inferred = inferOutput(probe, types, params);
    if (!inferred.error.empty()) {
      reader.error(at,
                   fmt::format("layer '{}': {}", layer.name, inferred.error));
      output.known = false;
    } else if (!countElements(inferred.type.shape)) {
      reader.error(at, fmt::format("the output of layer '{}', shape {}, has "
                                   "more than 2^40 elements a sample",
                                   layer.name, shapeText(inferred.type.shape)));
      output.known = false;
    }
    output.type = inferred.type;
  }
  layer.type = output.type;
  values[layer.name] = output;
  appendLayer(std::move(layer), scope);
}
