//===- Work.cpp - arithmetic and traffic of layers ------------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Counts for the roofline (Williams, Waterman, Patterson 2009): multiply-adds
// are two operations; every tensor is read or written once a kernel. A causal
// attention does half of the full score matrix.
//
//===----------------------------------------------------------------------===//
#include "takt/Layer/Graph.h"

using namespace takt;

namespace {

struct Sizes {
  double x = 0, y = 0, params = 0; ///< elements: input, output, parameters
};

Sizes sizesOf(const Graph &graph, const Layer &layer, int64_t samples) {
  Sizes s;
  if (!layer.inputs.empty())
    s.x = double(graph.values[layer.inputs[0]].type.elements()) * samples;
  s.y = double(graph.values[layer.output].type.elements()) * samples;
  for (int32_t param : layer.params)
    s.params += double(
        TensorType{graph.params[param].shape, DType::Float32}.elements());
  return s;
}

constexpr double kElement = 4; // bytes

LayerWork linearWork(const Graph &graph, const Layer &layer, const Sizes &s) {
  double in = double(graph.params[layer.params[0]].shape[1]);
  double flops = 2 * s.y * in;
  double traffic = kElement * (s.x + s.y + s.params);
  LayerWork work;
  work.forward = {flops, traffic, 1};
  work.inputGrad = {flops, traffic, 1};
  work.weightGrad = {flops, traffic + kElement * s.params, 1};
  return work;
}

LayerWork attentionWork(const Graph &graph, const Layer &layer,
                        const Sizes &s) {
  const auto &shape = graph.values[layer.inputs[0]].type.shape;
  // Scores and their product with the values: positions^2 * width each, the
  // causal half of both; backward recomputes the scores and takes four more.
  double product = s.y * double(shape[0]);
  LayerWork work;
  work.forward = {2 * product, kElement * (s.x + s.y), 1};
  work.inputGrad = {5 * product, kElement * (2 * s.x + 2 * s.y), 1};
  return work;
}

double rotatedElements(const Graph &graph, const Layer &layer,
                       int64_t samples) {
  const auto &shape = graph.values[layer.output].type.shape;
  return double(shape[0]) * double(layer.heads) * double(layer.headDim) *
         double(samples);
}

} // namespace

LayerWork takt::layerWork(const Graph &graph, const Layer &layer,
                          int64_t samples, int optimizerStates) {
  Sizes s = sizesOf(graph, layer, samples);
  LayerWork work;
  switch (layer.kind) {
  case LayerKind::Embedding:
    work.forward = {0, kElement * 2 * s.y, 1};
    work.weightGrad = {s.y, kElement * 3 * s.y, 1};
    break;
  case LayerKind::PositionalEmbedding:
    work.forward = {s.y, kElement * (2 * s.y + s.params), 1};
    work.weightGrad = {s.y, kElement * (s.y + 2 * s.params), 1};
    break;
  case LayerKind::Linear:
    work = linearWork(graph, layer, s);
    break;
  case LayerKind::LayerNorm:
    work.forward = {8 * s.y, kElement * 2 * s.y, 1};
    work.inputGrad = {11 * s.y, kElement * 3 * s.y, 1};
    work.weightGrad = {4 * s.y, kElement * 2 * s.y, 1};
    break;
  case LayerKind::RmsNorm:
    work.forward = {4 * s.y, kElement * 2 * s.y, 1};
    work.inputGrad = {8 * s.y, kElement * 3 * s.y, 1};
    work.weightGrad = {3 * s.y, kElement * 2 * s.y, 1};
    break;
  case LayerKind::Attention:
    work = attentionWork(graph, layer, s);
    break;
  case LayerKind::Rotary:
    // Two products and a sum for each element that turns.
    work.forward = {3 * rotatedElements(graph, layer, samples),
                    kElement * 2 * s.y, 1};
    work.inputGrad = work.forward;
    break;
  case LayerKind::Glu:
    work.forward = {9 * s.y, kElement * (s.x + s.y), 1};
    work.inputGrad = {16 * s.y, kElement * (2 * s.x + s.y), 1};
    break;
  case LayerKind::Gelu:
  case LayerKind::GeluTanh:
    work.forward = {10 * s.y, kElement * 2 * s.y, 1};
    work.inputGrad = {15 * s.y, kElement * 3 * s.y, 1};
    break;
  case LayerKind::Relu:
    work.forward = {s.y, kElement * 2 * s.y, 1};
    work.inputGrad = {s.y, kElement * 3 * s.y, 1};
    break;
  case LayerKind::Add:
    // Backward hands the same gradient to both operands; the sum where a value
    // has two readers costs as much as the add.
    work.forward = {s.y, kElement * 3 * s.y, 1};
    work.inputGrad = {s.y, kElement * 3 * s.y, 1};
    break;
  case LayerKind::CrossEntropy:
    work.forward = {5 * s.x, kElement * s.x, 1};
    work.inputGrad = {5 * s.x, kElement * 2 * s.x, 1};
    break;
  case LayerKind::MeanSquaredError:
    work.forward = {3 * s.x, kElement * 2 * s.x, 1};
    work.inputGrad = {2 * s.x, kElement * 3 * s.x, 1};
    break;
  case LayerKind::Profiled:
    break;
  }

  double trained = 0;
  for (int32_t param : layer.params)
    if (graph.params[param].trainable)
      trained += double(
          TensorType{graph.params[param].shape, DType::Float32}.elements());
  if (layer.kind == LayerKind::Profiled && layer.profiled.trainable)
    trained = double(layer.profiled.parameters) / kElement;
  if (trained > 0) {
    double perElement = 2 + 5 * optimizerStates;
    // Read weight, gradient and states; write weight, states and zero.
    double tensors = 4 + 2 * optimizerStates;
    work.update = {perElement * trained, kElement * tensors * trained, 1};
  }
  return work;
}
