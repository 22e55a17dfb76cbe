//===- Graph.h - the model as a flat list of layers --------------*- C++
//-*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Plain structs for a model graph with all repeats unrolled. Cost, Partition
// and Lower work on these; the `model` dialect is their textual form. Shapes
// are those of ONE SAMPLE: the batch dimension belongs to the schedule.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "takt-rt/core/plan.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace takt {

using rt::Bytes;
using rt::DType;
using rt::Nanos;

enum class LayerKind : uint8_t {
  Embedding,           ///< ids [T] -> [T, width]; params: weight [vocab, width]
  PositionalEmbedding, ///< [T, W] -> [T, W]; params: weight [T, W]
  Linear,    ///< [.., in] -> [.., out]; params: weight [out, in], bias [out]
  LayerNorm, ///< [.., W] -> same; params: gain [W], bias [W]
  RmsNorm,   ///< [.., W] -> same; params: gain [W]
  /// qkv [T, (heads + 2 kvHeads) D] -> [T, heads D]; causal
  Attention,
  Rotary, ///< [T, C] -> same; turns the first heads * headDim columns
  Gelu,
  GeluTanh,
  Relu,
  Glu,              ///< [.., 2W] -> [.., W]: activation(first half) second half
  Add,              ///< two inputs of one shape -> same
  CrossEntropy,     ///< logits [.., C], targets int32 [..] -> scalar (no shape)
  MeanSquaredError, ///< x, target of one shape -> scalar
  Profiled,         ///< known by costs only
};

/// What the first half of a gated linear unit passes through.
enum class GateKind : uint8_t { Silu, Gelu, GeluTanh };
/// "silu", "gelu", "gelu_tanh".
const char *gateKindName(GateKind kind);

/// "linear", "layer_norm", ...: the name in YAML, IR and plan.
const char *layerKindName(LayerKind kind);

struct TensorType {
  std::vector<int64_t> shape; ///< of one sample
  DType dtype = DType::Float32;
  int64_t elements() const;
  Bytes bytes() const { return elements() * 4; } ///< both types take 4 bytes
  bool operator==(const TensorType &o) const {
    return shape == o.shape && dtype == o.dtype;
  }
};

/// What `profiled` layers state about themselves, for one micro-batch of
/// `samples` samples.
struct ProfiledCost {
  int64_t samples = 1;
  Nanos forward = 0, inputGrad = 0, weightGrad = 0;
  Bytes activation = 0; ///< output, also what the next layer saves
  Bytes parameters = 0;
  bool trainable = true; ///< false: nothing of its own to learn
};

struct Layer {
  LayerKind kind = LayerKind::Linear;
  std::string name;            ///< unique, e.g. "h.3.attn.qkv"
  std::vector<int32_t> inputs; ///< value ids
  int32_t output = -1;         ///< value id
  std::vector<int32_t> params; ///< indices into Graph::params, in kind's order
  bool hasBias = false;        ///< Linear
  int64_t heads = 0;           ///< Attention; Rotary: those that turn
  /// Attention: heads of keys and values, which divide `heads`; 0: as many.
  int64_t kvHeads = 0;
  int64_t headDim = 0;            ///< Rotary: even
  double theta = 1e4;             ///< Rotary: base of the angles
  GateKind gate = GateKind::Silu; ///< Glu
  double epsilon = 1e-5;          ///< LayerNorm, RmsNorm
  ProfiledCost profiled;          ///< Profiled
};

/// A value: a model input or a layer's output.
struct Value {
  std::string name;
  TensorType type;
  int32_t producer = -1; ///< layer index; -1: model input
  int32_t input = -1;    ///< index into Graph::inputs; -1: layer output
};

struct Graph {
  std::string name;
  std::vector<rt::InputInfo> inputs;
  std::vector<Value> values;
  std::vector<rt::Param> params;      ///< a tied parameter stands once
  std::vector<Layer> layers;          ///< in execution order
  rt::Mode mode = rt::Mode::Training; ///< inference may end in any layer

  int64_t parameterCount() const;
  /// What inference gives: the output of the last layer, or of the one whose
  /// output the loss reads; -1 for a loss that reads a model input.
  int32_t result() const;
  /// First fault found (dangling value, wrong arity or shape, unused output,
  /// more than one loss, something
  /// trained in inference), or nothing.
  std::optional<std::string> check() const;
};

/// Output type of a layer for its input types, or a sentence saying why the
/// inputs do not fit. `params` gives the shapes of its parameters.
struct InferredType {
  TensorType type;
  std::string error; ///< empty when fine
};
InferredType inferOutput(const Layer &layer,
                         const std::vector<TensorType> &inputs,
                         const std::vector<rt::Param> &params);

/// Whether a value has a gradient: some trainable parameter lies at or before
/// its producer, and some layer that reads it gives one (a loss gives none to
/// its target). Indexed by value id. Frozen prefixes thus have neither backward
/// work nor saved tensors.
std::vector<bool> valuesNeedingGrad(const Graph &graph);

//===----------------------------------------------------------------------===//
// Segments: the chain that stage assignment cuts
//===----------------------------------------------------------------------===//

/// A maximal run of layers such that exactly one layer output crosses each of
/// its ends (model inputs may be read anywhere: they are loaded where used).
/// Cutting between segments costs one transfer each way.
struct Segment {
  int32_t begin = 0, end = 0; ///< layer range [begin, end)
  int32_t output = -1; ///< the one value that crosses the end; -1 for the last
};
std::vector<Segment> chainSegments(const Graph &graph);

/// Layer outputs that cross a cut before a layer: made by earlier layers, read
/// by it or later ones. In the order in which they are made; model inputs are
/// left out, as every stage loads those that it reads.
std::vector<int32_t> crossingValues(const Graph &graph, int32_t layer);

//===----------------------------------------------------------------------===//
// Work of one layer, for `samples` samples
//===----------------------------------------------------------------------===//

/// Arithmetic and memory traffic of one phase.
struct Work {
  double flops = 0;
  double bytes = 0; ///< read + written
  int32_t kernels = 0;
};
struct LayerWork {
  Work forward, inputGrad, weightGrad, update;
};
/// `optimizerStates`: state tensors per parameter (0, 1 or 2). Profiled layers
/// return zeros but for `update`.
LayerWork layerWork(const Graph &graph, const Layer &layer, int64_t samples,
                    int optimizerStates);

} // namespace takt
