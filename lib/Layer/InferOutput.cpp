//===- InferOutput.cpp - shapes of layers ---------------------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// The one place that says which inputs and parameters a layer takes and what it
// gives. The YAML reader, the verifiers of the `model` dialect and Graph::check
// all ask here.
//
//===----------------------------------------------------------------------===//
#include "takt/Layer/Graph.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>

using namespace takt;

const char *takt::layerKindName(LayerKind kind) {
  switch (kind) {
  case LayerKind::Embedding:
    return "embedding";
  case LayerKind::PositionalEmbedding:
    return "positional_embedding";
  case LayerKind::Linear:
    return "linear";
  case LayerKind::LayerNorm:
    return "layer_norm";
  case LayerKind::RmsNorm:
    return "rms_norm";
  case LayerKind::Attention:
    return "attention";
  case LayerKind::Rotary:
    return "rotary";
  case LayerKind::Gelu:
    return "gelu";
  case LayerKind::GeluTanh:
    return "gelu_tanh";
  case LayerKind::Glu:
    return "glu";
  case LayerKind::Relu:
    return "relu";
  case LayerKind::Add:
    return "add";
  case LayerKind::CrossEntropy:
    return "cross_entropy";
  case LayerKind::MeanSquaredError:
    return "mean_squared_error";
  case LayerKind::Profiled:
    return "profiled";
  }
  return "unknown";
}

const char *takt::gateKindName(GateKind kind) {
  switch (kind) {
  case GateKind::Silu:
    return "silu";
  case GateKind::Gelu:
    return "gelu";
  case GateKind::GeluTanh:
    return "gelu_tanh";
  }
  return "unknown";
}

int64_t TensorType::elements() const {
  int64_t n = 1;
  for (int64_t d : shape)
    n *= d;
  return n;
}

namespace {

std::string text(const std::vector<int64_t> &shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

InferredType fail(std::string message) { return {{}, std::move(message)}; }

constexpr int64_t kMostHeads = std::numeric_limits<int32_t>::max();

/// What a layer asks of its surroundings before shapes are compared.
struct Arity {
  size_t inputs, params;
};

Arity arityOf(const Layer &layer) {
  switch (layer.kind) {
  case LayerKind::Embedding:
  case LayerKind::PositionalEmbedding:
  case LayerKind::RmsNorm:
    return {1, 1};
  case LayerKind::Linear:
    return {1, layer.hasBias ? 2u : 1u};
  case LayerKind::LayerNorm:
    return {1, 2};
  case LayerKind::Attention:
  case LayerKind::Rotary:
  case LayerKind::Gelu:
  case LayerKind::GeluTanh:
  case LayerKind::Relu:
  case LayerKind::Glu:
    return {1, 0};
  case LayerKind::Add:
  case LayerKind::CrossEntropy:
  case LayerKind::MeanSquaredError:
    return {2, 0};
  case LayerKind::Profiled:
    return {layer.inputs.empty() ? 0u : 1u, layer.params.size()};
  }
  return {0, 0};
}

/// "'weight' has shape [a], needed is [b]" when they differ, else empty.
std::string mismatch(const char *what, const std::vector<int64_t> &have,
                     const std::vector<int64_t> &need) {
  if (have == need)
    return {};
  return fmt::format("'{}' has shape {}, needed is {}", what, text(have),
                     text(need));
}

InferredType inferEmbedding(const TensorType &ids, const rt::Param &weight) {
  if (ids.dtype != DType::Int32 || ids.shape.size() != 1)
    return fail(fmt::format("embedding needs int32 ids of shape [positions], "
                            "got {}{}",
                            ids.dtype == DType::Int32 ? "int32 " : "float32 ",
                            text(ids.shape)));
  if (weight.shape.size() != 2)
    return fail(fmt::format("embedding weight needs shape [vocab, width], got "
                            "{}",
                            text(weight.shape)));
  return {{{ids.shape[0], weight.shape[1]}, DType::Float32}, {}};
}

InferredType inferLinear(const Layer &layer, const TensorType &x,
                         const std::vector<const rt::Param *> &params) {
  const auto &weight = params[0]->shape;
  if (weight.size() != 2)
    return fail(fmt::format("linear weight needs shape [out, in], got {}",
                            text(weight)));
  if (x.shape.empty() || x.shape.back() != weight[1])
    return fail(fmt::format("input of shape {} does not end in the {} columns "
                            "of the weight {}",
                            text(x.shape), weight[1], text(weight)));
  if (layer.hasBias) {
    std::string bad = mismatch("bias", params[1]->shape, {weight[0]});
    if (!bad.empty())
      return fail(bad);
  }
  TensorType out = x;
  out.shape.back() = weight[0];
  return {out, {}};
}

InferredType inferGroupedAttention(const Layer &layer, const TensorType &qkv) {
  if (layer.heads < 1 || layer.kvHeads < 1 || layer.heads % layer.kvHeads != 0)
    return fail(
        fmt::format("{} heads of keys and values do not divide {} heads",
                    layer.kvHeads, layer.heads));
  if (layer.kvHeads > kMostHeads || layer.heads > kMostHeads)
    return fail(
        fmt::format("{} heads are more than {}", layer.heads, kMostHeads));
  int64_t parts = layer.heads + 2 * layer.kvHeads;
  if (qkv.shape.size() != 2 || qkv.shape[1] % parts != 0)
    return fail(
        fmt::format("attention needs {} heads of queries and {} each of "
                    "keys and values side by side, got {}",
                    layer.heads, layer.kvHeads, text(qkv.shape)));
  return {{{qkv.shape[0], qkv.shape[1] / parts * layer.heads}, DType::Float32},
          {}};
}

InferredType inferRotary(const Layer &layer, const TensorType &x) {
  if (x.shape.size() != 2)
    return fail(fmt::format("rotary needs shape [positions, columns], got {}",
                            text(x.shape)));
  if (layer.headDim < 2 || layer.headDim % 2 != 0)
    return fail(fmt::format("rotary turns pairs of elements; a head of {} has "
                            "an odd one",
                            layer.headDim));
  if (layer.heads < 1 || layer.heads > x.shape[1] / layer.headDim)
    return fail(fmt::format("{} heads of {} elements do not lie in rows of {}",
                            layer.heads, layer.headDim, x.shape[1]));
  if (!std::isfinite(layer.theta) || layer.theta <= 0)
    return fail(
        fmt::format("rotary needs a theta above 0, got {}", layer.theta));
  return {x, {}};
}

InferredType inferGlu(const TensorType &x) {
  if (x.shape.empty() || x.shape.back() % 2 != 0)
    return fail(fmt::format(
        "glu needs two halves in the last dimension, got {}", text(x.shape)));
  TensorType out = x;
  out.shape.back() /= 2;
  return {out, {}};
}

InferredType inferAttention(const Layer &layer, const TensorType &qkv) {
  if (layer.kvHeads != 0)
    return inferGroupedAttention(layer, qkv);
  if (qkv.shape.size() != 2 || qkv.shape[1] % 3 != 0)
    return fail(fmt::format("attention needs queries, keys and values of shape "
                            "[positions, 3 width], got {}",
                            text(qkv.shape)));
  int64_t width = qkv.shape[1] / 3;
  if (layer.heads < 1 || width % layer.heads != 0)
    return fail(
        fmt::format("{} heads do not divide the width {}", layer.heads, width));
  return {{{qkv.shape[0], width}, DType::Float32}, {}};
}

InferredType inferLoss(const Layer &layer,
                       const std::vector<TensorType> &inputs) {
  const TensorType &x = inputs[0], &target = inputs[1];
  if (layer.kind == LayerKind::MeanSquaredError) {
    if (target.dtype != DType::Float32)
      return fail("the target of mean_squared_error must be float32");
    std::string bad = mismatch("target", target.shape, x.shape);
    if (!bad.empty())
      return fail(bad);
  } else {
    if (target.dtype != DType::Int32)
      return fail("the target of cross_entropy must be int32 class ids");
    if (x.shape.empty())
      return fail("cross_entropy needs logits of shape [.., classes]");
    std::vector<int64_t> rows(x.shape.begin(), x.shape.end() - 1);
    std::string bad = mismatch("target", target.shape, rows);
    if (!bad.empty())
      return fail(bad);
  }
  return {{{}, DType::Float32}, {}};
}

} // namespace

InferredType takt::inferOutput(const Layer &layer,
                               const std::vector<TensorType> &inputs,
                               const std::vector<rt::Param> &params) {
  Arity arity = arityOf(layer);
  if (inputs.size() != arity.inputs)
    return fail(fmt::format("{} takes {} input{}, got {}",
                            layerKindName(layer.kind), arity.inputs,
                            arity.inputs == 1 ? "" : "s", inputs.size()));
  if (layer.params.size() != arity.params)
    return fail(fmt::format("{} takes {} parameter{}, got {}",
                            layerKindName(layer.kind), arity.params,
                            arity.params == 1 ? "" : "s", layer.params.size()));
  std::vector<const rt::Param *> own;
  for (int32_t index : layer.params) {
    if (index < 0 || size_t(index) >= params.size())
      return fail(fmt::format("parameter {} does not exist", index));
    own.push_back(&params[index]);
  }
  bool takesIds =
      layer.kind == LayerKind::Embedding || layer.kind == LayerKind::Profiled;
  if (!inputs.empty() && !takesIds && inputs[0].dtype != DType::Float32)
    return fail(fmt::format("{} needs a float32 input, got int32",
                            layerKindName(layer.kind)));

  switch (layer.kind) {
  case LayerKind::Embedding:
    return inferEmbedding(inputs[0], *own[0]);
  case LayerKind::PositionalEmbedding: {
    if (inputs[0].shape.size() != 2)
      return fail(fmt::format("positional_embedding needs shape [positions, "
                              "width], got {}",
                              text(inputs[0].shape)));
    return {inputs[0], mismatch("weight", own[0]->shape, inputs[0].shape)};
  }
  case LayerKind::Linear:
    return inferLinear(layer, inputs[0], own);
  case LayerKind::LayerNorm: {
    if (inputs[0].shape.empty())
      return fail("layer_norm needs at least one dimension");
    std::vector<int64_t> width{inputs[0].shape.back()};
    std::string bad = mismatch("weight", own[0]->shape, width);
    if (bad.empty())
      bad = mismatch("bias", own[1]->shape, width);
    return {inputs[0], bad};
  }
  case LayerKind::RmsNorm:
    if (inputs[0].shape.empty())
      return fail("rms_norm needs at least one dimension");
    return {inputs[0],
            mismatch("weight", own[0]->shape, {inputs[0].shape.back()})};
  case LayerKind::Attention:
    return inferAttention(layer, inputs[0]);
  case LayerKind::Rotary:
    return inferRotary(layer, inputs[0]);
  case LayerKind::Glu:
    return inferGlu(inputs[0]);
  case LayerKind::Gelu:
  case LayerKind::GeluTanh:
  case LayerKind::Relu:
    return {inputs[0], {}};
  case LayerKind::Add:
    if (inputs[0] == inputs[1])
      return {inputs[0], {}};
    return fail(fmt::format("add needs two equal shapes, got {} and {}",
                            text(inputs[0].shape), text(inputs[1].shape)));
  case LayerKind::CrossEntropy:
  case LayerKind::MeanSquaredError:
    return inferLoss(layer, inputs);
  case LayerKind::Profiled: {
    int64_t samples = std::max<int64_t>(layer.profiled.samples, 1);
    return {{{std::max<Bytes>(layer.profiled.activation / samples / 4, 1)},
             DType::Float32},
            {}};
  }
  }
  return fail("unknown layer kind");
}
