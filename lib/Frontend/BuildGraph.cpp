//===- BuildGraph.cpp - a model spec as a flat graph ----------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Unrolls repeats: "h.*.ln1" becomes "h.0.ln1", "h.1.ln1", ...; the block's
// "h.in" is the repeat's input first and the block before it then.
//
//===----------------------------------------------------------------------===//
#include "takt/Frontend/Spec.h"

#include <map>
#include <utility>

using namespace takt;

namespace {

class Builder {
public:
  explicit Builder(const ModelSpec &spec) : spec(spec) {}

  Graph build() {
    graph.name = spec.name;
    graph.inputs = spec.inputs;
    graph.mode = spec.training.mode;
    for (std::size_t i = 0; i < spec.inputs.size(); ++i) {
      const rt::InputInfo &input = spec.inputs[i];
      Value value;
      value.name = input.name;
      value.type = {input.shape, input.dtype};
      value.input = static_cast<int32_t>(i);
      addValue(input.name, std::move(value));
    }
    for (const ItemSpec &item : spec.items) {
      if (item.repeat)
        addRepeat(*item.repeat);
      else
        addLayer(item.layer, -1);
    }
    return std::move(graph);
  }

private:
  int32_t addValue(const std::string &name, Value value) {
    auto id = static_cast<int32_t>(graph.values.size());
    graph.values.push_back(std::move(value));
    values[name] = id;
    return id;
  }

  /// The name in one iteration; -1 outside of repeats.
  static std::string at(const std::string &name, int64_t iteration) {
    std::size_t star = name.find('*');
    if (star == std::string::npos || iteration < 0)
      return name;
    std::string result = name;
    return result.replace(star, 1, std::to_string(iteration));
  }

  void addRepeat(const RepeatSpec &repeat) {
    int32_t entry = values.at(repeat.input);
    for (int64_t i = 0; i < repeat.count; ++i) {
      values[repeat.name + ".in"] = entry;
      for (const LayerSpec &layer : repeat.body)
        entry = addLayer(layer, i);
    }
    values[repeat.name] = entry;
  }

  int32_t addLayer(const LayerSpec &from, int64_t iteration) {
    Layer layer;
    layer.kind = from.kind;
    layer.name = at(from.name, iteration);
    layer.hasBias = from.hasBias;
    layer.heads = from.heads;
    layer.kvHeads = from.kvHeads;
    layer.headDim = from.headDim;
    layer.theta = from.theta;
    layer.gate = from.gate;
    layer.epsilon = from.epsilon;
    layer.profiled = from.profiled;
    for (const std::string &input : from.inputs)
      layer.inputs.push_back(values.at(at(input, iteration)));
    for (const ParamSpec &param : from.params)
      layer.params.push_back(paramIndex(param, iteration));
    Value value;
    value.name = layer.name;
    value.type = from.type;
    value.producer = static_cast<int32_t>(graph.layers.size());
    layer.output = addValue(layer.name, std::move(value));
    graph.layers.push_back(std::move(layer));
    return graph.layers.back().output;
  }

  /// A tied parameter has been added by its owner, which stands earlier.
  int32_t paramIndex(const ParamSpec &from, int64_t iteration) {
    std::string name = at(from.name, iteration);
    auto next = static_cast<int32_t>(graph.params.size());
    auto [known, isNew] = params.emplace(name, next);
    if (isNew) {
      rt::Param param;
      param.name = name;
      param.shape = from.shape;
      param.init = from.init;
      param.initScale = from.initScale;
      param.trainable = from.trainable;
      graph.params.push_back(std::move(param));
    }
    return known->second;
  }

  const ModelSpec &spec;
  Graph graph;
  std::map<std::string, int32_t> values;
  std::map<std::string, int32_t> params;
};

} // namespace

Graph takt::buildGraph(const ModelSpec &spec) { return Builder(spec).build(); }
