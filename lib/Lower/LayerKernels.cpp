//===- LayerKernels.cpp - which kernels a layer's F, I and W are ----------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// One table of the kernels behind each layer. What backward reads of forward is
// not listed anywhere: it follows from the operands.
//
//===----------------------------------------------------------------------===//
#include "StageBuilder.h"

#include <fmt/format.h>

using namespace takt;
using rt::KernelKind;
using rt::Phase;

int32_t LayerEmitter::newTensor(std::string name, Bytes bytes,
                                TensorRole role) {
  stage.tensors.push_back({std::move(name), bytes, role});
  return int32_t(stage.tensors.size()) - 1;
}

int64_t LayerEmitter::rows(int32_t value) const {
  const TensorType &type = typeOf(value);
  return type.shape.empty()
             ? stage.samples
             : type.elements() / type.shape.back() * stage.samples;
}

AbstractKernel LayerEmitter::start(KernelKind kind, Phase phase,
                                   int32_t layer) {
  AbstractKernel k;
  k.kernel.kind = kind;
  k.kernel.phase = phase;
  k.kernel.layer = layer;
  return k;
}

int32_t LayerEmitter::stageParam(int32_t param) const {
  for (size_t i = 0; i < stage.params.size(); ++i)
    if (stage.params[i].param == param)
      return int32_t(i);
  return -1;
}

Operand LayerEmitter::weight(int32_t layer, int32_t which) const {
  return {Operand::Weight, stageParam(graph.layers[layer].params[which]), 0};
}

bool LayerEmitter::trains(int32_t layer, int32_t which) const {
  const Layer &l = graph.layers[layer];
  return size_t(which) < l.params.size() &&
         graph.params[l.params[which]].trainable;
}

/// The accumulator of this layer's use: how many layers of the stage before it
/// use the same parameter.
Operand LayerEmitter::grad(int32_t layer, int32_t which) const {
  int32_t param = graph.layers[layer].params[which];
  int32_t own = stageParam(param);
  int32_t use = 0;
  for (int32_t l = stage.params[own].firstLayer; l < layer; ++l)
    for (int32_t other : graph.layers[l].params)
      use += other == param;
  return {Operand::Grad, own, use};
}

int32_t LayerEmitter::scratch(const Layer &layer, int64_t elements) {
  return newTensor(layer.name + ".scratch", elements * 4);
}

/// Losses are means over the global batch: the same factor on every rank and in
/// every micro-batch, so that sums of parts are the whole.
double LayerEmitter::lossScale(const Layer &layer) const {
  int64_t perSample = typeOf(layer.inputs[1]).elements();
  return 1.0 / (double(problem.training.globalBatch) * double(perSample));
}

/// Heads of keys and values are a dim only where they are fewer.
std::vector<int64_t> LayerEmitter::attentionDims(const Layer &layer,
                                                 const TensorType &out) const {
  std::vector<int64_t> dims{stage.samples, out.shape[0], layer.heads,
                            out.shape[1] / layer.heads};
  if (layer.kvHeads != 0 && layer.kvHeads != layer.heads)
    dims.push_back(layer.kvHeads);
  return dims;
}

std::vector<int64_t> LayerEmitter::rotaryDims(const Layer &layer,
                                              const TensorType &x) const {
  return {stage.samples, x.shape[0], layer.heads, layer.headDim, x.shape[1]};
}

std::vector<int64_t> LayerEmitter::gluDims(const Layer &layer) const {
  return {rows(layer.output), typeOf(layer.output).shape.back(),
          int64_t(layer.gate) + 1};
}

void LayerEmitter::forward(int32_t index) {
  const Layer &layer = graph.layers[index];
  int32_t y = -1;
  bool loss = layer.kind == LayerKind::CrossEntropy ||
              layer.kind == LayerKind::MeanSquaredError;
  if (loss)
    y = stage.loss = newTensor(layer.name, 4, TensorRole::Loss);
  else
    y = newTensor(layer.name, typeOf(layer.output).bytes() * stage.samples);
  tensorOf[layer.output] = y;
  Operand out = plain(y);
  auto emit = [&](KernelKind kind, std::vector<Operand> operands,
                  std::vector<int64_t> dims, std::vector<double> scalars = {}) {
    AbstractKernel k = start(kind, Phase::Forward, index);
    k.operands = std::move(operands);
    k.kernel.dims = std::move(dims);
    k.kernel.scalars = std::move(scalars);
    stage.forward.push_back(std::move(k));
  };
  auto in = [&](size_t i) { return tensor(layer.inputs[i]); };
  auto shapeOf = [&](int32_t which) -> const std::vector<int64_t> & {
    return graph.params[layer.params[which]].shape;
  };
  int64_t n = elements(layer.output);

  switch (layer.kind) {
  case LayerKind::Embedding:
    emit(KernelKind::EmbeddingForward, {in(0), weight(index, 0), out},
         {elements(layer.inputs[0]), shapeOf(0)[0], shapeOf(0)[1]});
    break;
  case LayerKind::PositionalEmbedding:
    emit(KernelKind::PositionForward, {in(0), weight(index, 0), out},
         {stage.samples, shapeOf(0)[0], shapeOf(0)[1]});
    break;
  case LayerKind::Linear: {
    std::vector<Operand> operands{in(0), weight(index, 0)};
    if (layer.hasBias)
      operands.push_back(weight(index, 1));
    operands.push_back(out);
    emit(KernelKind::LinearForward, operands,
         {rows(layer.inputs[0]), shapeOf(0)[1], shapeOf(0)[0], layer.hasBias});
    break;
  }
  case LayerKind::LayerNorm: {
    int64_t r = rows(layer.inputs[0]);
    int32_t mean = newTensor(layer.name + ".mean", r * 4);
    int32_t rstd = newTensor(layer.name + ".rstd", r * 4);
    statistics[index] = {mean, rstd};
    emit(KernelKind::LayerNormForward,
         {in(0), weight(index, 0), weight(index, 1), out, plain(mean),
          plain(rstd)},
         {r, shapeOf(0)[0]}, {layer.epsilon});
    break;
  }
  case LayerKind::RmsNorm: {
    int64_t r = rows(layer.inputs[0]);
    int32_t rstd = newTensor(layer.name + ".rstd", r * 4);
    statistics[index] = {rstd};
    emit(KernelKind::RmsNormForward,
         {in(0), weight(index, 0), out, plain(rstd)}, {r, shapeOf(0)[0]},
         {layer.epsilon});
    break;
  }
  case LayerKind::Rotary:
    emit(KernelKind::RotaryForward, {in(0), out},
         rotaryDims(layer, typeOf(layer.output)), {layer.theta});
    break;
  case LayerKind::Attention: {
    const auto &shape = typeOf(layer.output).shape;
    int32_t lse = newTensor(layer.name + ".lse",
                            stage.samples * layer.heads * shape[0] * 4);
    statistics[index] = {lse};
    emit(KernelKind::AttentionForward,
         {in(0), out, plain(lse), plain(scratch(layer, shape[0] * shape[0]))},
         attentionDims(layer, typeOf(layer.output)));
    break;
  }
  case LayerKind::Gelu:
    emit(KernelKind::GeluForward, {in(0), out}, {n});
    break;
  case LayerKind::GeluTanh:
    emit(KernelKind::GeluTanhForward, {in(0), out}, {n});
    break;
  case LayerKind::Glu:
    emit(KernelKind::GluForward, {in(0), out}, gluDims(layer));
    break;
  case LayerKind::Relu:
    emit(KernelKind::ReluForward, {in(0), out}, {n});
    break;
  case LayerKind::Add:
    emit(KernelKind::AddForward, {in(0), in(1), out}, {n});
    break;
  case LayerKind::CrossEntropy: {
    int64_t r = rows(layer.inputs[0]);
    int32_t lse = newTensor(layer.name + ".lse", r * 4);
    statistics[index] = {lse};
    emit(KernelKind::CrossEntropyForward, {in(0), in(1), plain(lse), out},
         {r, typeOf(layer.inputs[0]).shape.back()}, {lossScale(layer)});
    break;
  }
  case LayerKind::MeanSquaredError:
    emit(KernelKind::MseForward, {in(0), in(1), out},
         {elements(layer.inputs[0])}, {lossScale(layer)});
    break;
  case LayerKind::Profiled: {
    AbstractKernel k = start(KernelKind::Profiled, Phase::Forward, index);
    for (int32_t id : layer.inputs)
      k.reads.push_back(tensorOf.at(id));
    k.makes.push_back(y);
    stage.forward.push_back(std::move(k));
    break;
  }
  }
}

std::vector<int32_t> LayerEmitter::inputGrad(int32_t index, int32_t dy,
                                             const std::vector<bool> &needs,
                                             std::vector<AbstractKernel> &out) {
  const Layer &layer = graph.layers[index];
  std::vector<int32_t> result(layer.inputs.size(), -1);
  if (layer.inputs.empty() || !needs[0]) {
    if (layer.kind == LayerKind::Add && needs[1])
      result[1] = dy;
    return result;
  }
  // Adds and positional embeddings hand the gradient on as it is.
  if (layer.kind == LayerKind::Add) {
    result = {dy, needs[1] ? dy : -1};
    return result;
  }
  if (layer.kind == LayerKind::PositionalEmbedding) {
    result[0] = dy;
    return result;
  }
  int32_t x = layer.inputs[0];
  int32_t dx =
      newTensor(layer.name + ".grad", typeOf(x).bytes() * stage.samples);
  result[0] = dx;
  auto emit = [&](KernelKind kind, std::vector<Operand> operands,
                  std::vector<int64_t> dims, std::vector<double> scalars = {}) {
    AbstractKernel k = start(kind, Phase::InputGrad, index);
    k.operands = std::move(operands);
    k.kernel.dims = std::move(dims);
    k.kernel.scalars = std::move(scalars);
    out.push_back(std::move(k));
  };
  int64_t n = elements(x);

  switch (layer.kind) {
  case LayerKind::Linear: {
    const auto &shape = graph.params[layer.params[0]].shape;
    emit(KernelKind::LinearInputGrad, {plain(dy), weight(index, 0), plain(dx)},
         {rows(x), shape[1], shape[0]});
    break;
  }
  case LayerKind::LayerNorm: {
    const auto &s = statistics[index];
    emit(KernelKind::LayerNormInputGrad,
         {tensor(x), weight(index, 0), plain(s[0]), plain(s[1]), plain(dy),
          plain(dx)},
         {rows(x), typeOf(x).shape.back()});
    break;
  }
  case LayerKind::RmsNorm:
    emit(KernelKind::RmsNormInputGrad,
         {tensor(x), weight(index, 0), plain(statistics[index][0]), plain(dy),
          plain(dx)},
         {rows(x), typeOf(x).shape.back()});
    break;
  case LayerKind::Rotary:
    emit(KernelKind::RotaryInputGrad, {plain(dy), plain(dx)},
         rotaryDims(layer, typeOf(x)), {layer.theta});
    break;
  case LayerKind::Attention: {
    const auto &shape = typeOf(layer.output).shape;
    emit(KernelKind::AttentionInputGrad,
         {tensor(x), tensor(layer.output), plain(statistics[index][0]),
          plain(dy), plain(dx), plain(scratch(layer, 2 * shape[0] * shape[0]))},
         attentionDims(layer, typeOf(layer.output)));
    break;
  }
  case LayerKind::Gelu:
    emit(KernelKind::GeluInputGrad, {tensor(x), plain(dy), plain(dx)}, {n});
    break;
  case LayerKind::GeluTanh:
    emit(KernelKind::GeluTanhInputGrad, {tensor(x), plain(dy), plain(dx)}, {n});
    break;
  case LayerKind::Glu:
    emit(KernelKind::GluInputGrad, {tensor(x), plain(dy), plain(dx)},
         gluDims(layer));
    break;
  case LayerKind::Relu:
    emit(KernelKind::ReluInputGrad,
         {tensor(layer.output), plain(dy), plain(dx)}, {n});
    break;
  case LayerKind::CrossEntropy:
    emit(KernelKind::CrossEntropyInputGrad,
         {tensor(x), tensor(layer.inputs[1]), plain(statistics[index][0]),
          plain(dx)},
         {rows(x), typeOf(x).shape.back()}, {lossScale(layer)});
    break;
  case LayerKind::MeanSquaredError:
    emit(KernelKind::MseInputGrad,
         {tensor(x), tensor(layer.inputs[1]), plain(dx)}, {n},
         {lossScale(layer)});
    break;
  case LayerKind::Profiled: {
    AbstractKernel k = start(KernelKind::Profiled, Phase::InputGrad, index);
    if (dy >= 0)
      k.reads.push_back(dy);
    k.makes.push_back(dx);
    out.push_back(std::move(k));
    break;
  }
  case LayerKind::Embedding: // ids have no gradient
  case LayerKind::PositionalEmbedding:
  case LayerKind::Add:
    break;
  }
  return result;
}

void LayerEmitter::weightGrad(int32_t index, int32_t dy,
                              std::vector<AbstractKernel> &out) {
  const Layer &layer = graph.layers[index];
  auto emit = [&](KernelKind kind, std::vector<Operand> operands,
                  std::vector<int64_t> dims) {
    AbstractKernel k = start(kind, Phase::WeightGrad, index);
    k.operands = std::move(operands);
    k.kernel.dims = std::move(dims);
    out.push_back(std::move(k));
  };
  if (layer.kind == LayerKind::Profiled) {
    if (!layer.profiled.trainable)
      return;
    AbstractKernel k = start(KernelKind::Profiled, Phase::WeightGrad, index);
    for (int32_t id : layer.inputs)
      k.reads.push_back(tensorOf.at(id));
    if (dy >= 0)
      k.reads.push_back(dy);
    out.push_back(std::move(k));
    return;
  }
  // A layer's parameters are trained or frozen together.
  if (!trains(index, 0))
    return;
  const auto &shape = graph.params[layer.params[0]].shape;
  switch (layer.kind) {
  case LayerKind::Embedding:
    emit(KernelKind::EmbeddingWeightGrad,
         {tensor(layer.inputs[0]), plain(dy), grad(index, 0)},
         {elements(layer.inputs[0]), shape[0], shape[1]});
    break;
  case LayerKind::PositionalEmbedding:
    emit(KernelKind::PositionWeightGrad, {plain(dy), grad(index, 0)},
         {stage.samples, shape[0], shape[1]});
    break;
  case LayerKind::Linear: {
    std::vector<Operand> operands{tensor(layer.inputs[0]), plain(dy),
                                  grad(index, 0)};
    bool bias = layer.hasBias && trains(index, 1);
    if (bias)
      operands.push_back(grad(index, 1));
    emit(KernelKind::LinearWeightGrad, operands,
         {rows(layer.inputs[0]), shape[1], shape[0], bias});
    break;
  }
  case LayerKind::LayerNorm: {
    const auto &s = statistics[index];
    emit(KernelKind::LayerNormWeightGrad,
         {tensor(layer.inputs[0]), plain(s[0]), plain(s[1]), plain(dy),
          grad(index, 0), grad(index, 1)},
         {rows(layer.inputs[0]), shape[0]});
    break;
  }
  case LayerKind::RmsNorm:
    emit(KernelKind::RmsNormWeightGrad,
         {tensor(layer.inputs[0]), plain(statistics[index][0]), plain(dy),
          grad(index, 0)},
         {rows(layer.inputs[0]), shape[0]});
    break;
  default:
    break; // no parameters
  }
}
