//===- Graph.cpp - the flat model graph -----------------------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Structural check of a graph and the analysis of which values need a gradient.
//
//===----------------------------------------------------------------------===//
#include "takt/Layer/Graph.h"

#include <fmt/format.h>

#include <set>

using namespace takt;

int64_t Graph::parameterCount() const {
  int64_t total = 0;
  for (const rt::Param &param : params)
    total += TensorType{param.shape, DType::Float32}.elements();
  return total;
}

namespace {

bool isLoss(LayerKind kind) {
  return kind == LayerKind::CrossEntropy || kind == LayerKind::MeanSquaredError;
}

/// Faults of one layer, given that all earlier layers are sound.
std::optional<std::string> checkLayer(const Graph &graph, size_t index) {
  const Layer &layer = graph.layers[index];
  std::vector<TensorType> types;
  for (int32_t id : layer.inputs) {
    if (id < 0 || size_t(id) >= graph.values.size())
      return fmt::format("layer '{}' reads value {}, which does not exist",
                         layer.name, id);
    const Value &value = graph.values[id];
    if (value.producer >= int32_t(index))
      return fmt::format("layer '{}' reads '{}' before it is made", layer.name,
                         value.name);
    types.push_back(value.type);
  }
  InferredType inferred = inferOutput(layer, types, graph.params);
  if (!inferred.error.empty())
    return fmt::format("layer '{}': {}", layer.name, inferred.error);
  if (layer.output < 0 || size_t(layer.output) >= graph.values.size())
    return fmt::format("layer '{}' has no output value", layer.name);
  for (int32_t param : layer.params)
    if (graph.params[param].trainable !=
        graph.params[layer.params[0]].trainable)
      return fmt::format("layer '{}' trains one of its parameters and freezes "
                         "another: give both the same 'trainable'",
                         layer.name);
  const Value &output = graph.values[layer.output];
  if (output.producer != int32_t(index))
    return fmt::format("value '{}' does not name layer '{}' as its producer",
                       output.name, layer.name);
  if (!(output.type == inferred.type))
    return fmt::format("layer '{}' states another output shape than its inputs "
                       "give",
                       layer.name);
  return std::nullopt;
}

} // namespace

std::optional<std::string> Graph::check() const {
  if (layers.empty())
    return "the model has no layers";
  std::set<std::string> names;
  std::vector<bool> used(values.size());
  for (size_t i = 0; i < layers.size(); ++i) {
    if (auto fault = checkLayer(*this, i))
      return fault;
    if (!names.insert(layers[i].name).second)
      return fmt::format("two layers are named '{}'", layers[i].name);
    if (isLoss(layers[i].kind) && i + 1 != layers.size())
      return fmt::format("the loss '{}' must be the last layer",
                         layers[i].name);
    for (int32_t id : layers[i].inputs)
      used[id] = true;
  }
  for (size_t i = 0; i + 1 < layers.size(); ++i)
    if (!used[layers[i].output])
      return fmt::format("nothing reads the output of layer '{}'",
                         layers[i].name);
  if (mode == rt::Mode::Inference) {
    for (const rt::Param &param : params)
      if (param.trainable)
        return fmt::format("parameter '{}' is trained, and the mode is "
                           "'inference'",
                           param.name);
    for (const Layer &layer : layers)
      if (layer.kind == LayerKind::Profiled && layer.profiled.trainable)
        return fmt::format("layer '{}' is trained, and the mode is 'inference'",
                           layer.name);
    return std::nullopt;
  }
  bool profiled = layers.back().kind == LayerKind::Profiled;
  if (!isLoss(layers.back().kind) && !profiled)
    return "the last layer must be a loss: cross_entropy or mean_squared_error";
  return std::nullopt;
}

int32_t Graph::result() const {
  const Layer &last = layers.back();
  if (!isLoss(last.kind))
    return last.output;
  const int32_t compared = last.inputs.front();
  return values[compared].producer < 0 ? -1 : compared;
}

std::vector<bool> takt::valuesNeedingGrad(const Graph &graph) {
  std::vector<bool> needs(graph.values.size());
  for (const Layer &layer : graph.layers) {
    // A profiled layer's parameters are not listed.
    bool need = layer.kind == LayerKind::Profiled && layer.profiled.trainable;
    for (int32_t id : layer.inputs)
      need = need || needs[id];
    for (int32_t param : layer.params)
      need = need || graph.params[param].trainable;
    needs[layer.output] = need;
  }
  // Backwards: a gradient must also arrive.
  std::vector<bool> has(graph.values.size());
  for (auto layer = graph.layers.rbegin(); layer != graph.layers.rend();
       ++layer) {
    bool gives = layer == graph.layers.rbegin() || has[layer->output];
    has[layer->output] = gives && needs[layer->output];
    for (size_t i = 0; i < layer->inputs.size(); ++i)
      if (has[layer->output] && !(i == 1 && isLoss(layer->kind)))
        has[layer->inputs[i]] = needs[layer->inputs[i]];
  }
  return has;
}
