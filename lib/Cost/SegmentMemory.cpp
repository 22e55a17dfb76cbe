//===- SegmentMemory.cpp - bytes of a segment before lowering -------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Saved tensors follow from what each kind of layer's backward kernels read.
// Temporaries are played through, forward and backward, as lifetimes inside the
// segment; a tensor that crosses its ends counts on both sides.
//
//===----------------------------------------------------------------------===//

#include "SegmentMemory.h"

#include <algorithm>
#include <map>
#include <set>

namespace takt {

namespace {
/// Above every memory, below what sums of many could overflow.
constexpr Bytes kTooMuch = Bytes(1) << 58;
} // namespace

Bytes shareBytes(Bytes bytes, int64_t samples) {
  if (double(bytes) * double(samples) >= double(kTooMuch))
    return kTooMuch;
  return rt::alignUp(bytes * samples);
}

SegmentMemory::SegmentMemory(const Graph &graph)
    : graph(graph), needsGrad(valuesNeedingGrad(graph)),
      uses(graph.params.size(), 0) {
  for (const Layer &layer : graph.layers)
    for (const int32_t param : layer.params)
      ++uses[param];
}

Bytes SegmentMemory::valueBytes(int32_t value, int64_t samples) const {
  return shareBytes(graph.values[value].type.bytes(), samples);
}

/// Parameters of a layer are trained or frozen together.
bool SegmentMemory::trains(const Layer &layer) const {
  return !layer.params.empty() && graph.params[layer.params.front()].trainable;
}

/// What forward leaves for backward besides values: mean and rstd, or the
/// log-sum-exp of attention and cross-entropy rows.
Bytes SegmentMemory::statisticsBytes(const Layer &layer,
                                     int64_t samples) const {
  const TensorType &in = graph.values[layer.inputs.front()].type;
  const int64_t rows = in.shape.empty() ? 1 : in.elements() / in.shape.back();
  switch (layer.kind) {
  case LayerKind::LayerNorm:
    return 2 * shareBytes(rows * 4, samples);
  case LayerKind::RmsNorm:
    return shareBytes(rows * 4, samples);
  case LayerKind::Attention:
    return shareBytes(layer.heads * rows * 4, samples);
  case LayerKind::CrossEntropy:
    return shareBytes(rows * 4, samples);
  default:
    return 0;
  }
}

/// Values that the backward kernels of a layer read.
void SegmentMemory::savedValues(const Layer &layer,
                                std::vector<int32_t> &values) const {
  const int32_t input = layer.inputs.front();
  switch (layer.kind) {
  case LayerKind::Linear:
  case LayerKind::Embedding:
    if (trains(layer))
      values.push_back(input);
    break;
  case LayerKind::LayerNorm:
  case LayerKind::RmsNorm:
    if (trains(layer) || needsGrad[input])
      values.push_back(input);
    break;
  case LayerKind::Attention:
    values.insert(values.end(), {input, layer.output});
    break;
  case LayerKind::Relu:
    values.push_back(layer.output);
    break;
  case LayerKind::Gelu:
  case LayerKind::GeluTanh:
  case LayerKind::Glu:
    values.push_back(input);
    break;
  case LayerKind::CrossEntropy:
  case LayerKind::MeanSquaredError:
  case LayerKind::Profiled:
    values.insert(values.end(), layer.inputs.begin(), layer.inputs.end());
    break;
  case LayerKind::PositionalEmbedding:
  case LayerKind::Rotary:
  case LayerKind::Add:
    break;
  }
}

Bytes SegmentMemory::saved(const Segment &segment, int64_t samples) const {
  std::set<int32_t> values, loaded;
  Bytes bytes = 0;
  for (int32_t l = segment.begin; l < segment.end; ++l) {
    const Layer &layer = graph.layers[l];
    for (const int32_t id : layer.inputs)
      if (graph.values[id].producer < 0)
        loaded.insert(id);
    if (!needsGrad[layer.output] || layer.inputs.empty())
      continue;
    std::vector<int32_t> read;
    savedValues(layer, read);
    values.insert(read.begin(), read.end());
    bytes += statisticsBytes(layer, samples);
  }
  // Loads run one micro-batch ahead of the first that is in flight. Counting
  // each input twice for every micro-batch covers that one, too.
  for (const int32_t id : loaded) {
    values.erase(id);
    bytes += 2 * valueBytes(id, samples);
  }
  for (const int32_t id : values)
    bytes += valueBytes(id, samples);
  return bytes;
}

/// Layer outputs are alive from their producer to their last reader.
Bytes SegmentMemory::forwardPeak(const Segment &segment,
                                 int64_t samples) const {
  std::map<int32_t, int32_t> lastUse; // value -> layer
  for (int32_t l = segment.begin; l < segment.end; ++l) {
    for (const int32_t id : graph.layers[l].inputs)
      lastUse[id] = l;
    lastUse.insert({graph.layers[l].output, segment.end});
  }
  Bytes alive = 0, peak = 0;
  std::set<int32_t> seen;
  for (int32_t l = segment.begin; l < segment.end; ++l) {
    const Layer &layer = graph.layers[l];
    std::set<int32_t> touched{layer.output};
    for (const int32_t id : layer.inputs)
      if (graph.values[id].producer >= 0) // loaded inputs are not temporary
        touched.insert(id);
    for (const int32_t id : touched)
      if (seen.insert(id).second)
        alive += valueBytes(id, samples);
    Bytes own = layer.inputs.empty() ? 0 : statisticsBytes(layer, samples);
    if (layer.kind == LayerKind::Attention) {
      const int64_t positions = graph.values[layer.output].type.shape[0];
      own += shareBytes(positions * positions * 4, 1);
    }
    peak = std::max(peak, alive + own);
    for (const int32_t id : touched)
      if (lastUse.at(id) == l)
        alive -= valueBytes(id, samples);
  }
  return peak;
}

/// Gradients are alive from the first backward that adds to them to that of
/// their value's producer. A value with several readers has the sum and the new
/// part side by side.
Bytes SegmentMemory::backwardPeak(const Segment &segment,
                                  int64_t samples) const {
  Bytes alive = 0, peak = 0;
  std::set<int32_t> seen;
  for (int32_t l = segment.end - 1; l >= segment.begin; --l) {
    const Layer &layer = graph.layers[l];
    if (!needsGrad[layer.output])
      continue;
    if (seen.insert(layer.output).second)
      alive += valueBytes(layer.output, samples);
    Bytes own = 0;
    for (const int32_t id : layer.inputs) {
      if (!needsGrad[id])
        continue;
      if (seen.insert(id).second)
        alive += valueBytes(id, samples);
      else
        own += 2 * valueBytes(id, samples);
    }
    if (layer.kind == LayerKind::Attention) {
      const int64_t positions = graph.values[layer.output].type.shape[0];
      own += shareBytes(2 * positions * positions * 4, 1);
    }
    peak = std::max(peak, alive + own);
    alive -= valueBytes(layer.output, samples);
  }
  return peak;
}

/// Sums of a tied parameter's gradients pass through the workspace when its
/// uses are on different stages.
Bytes SegmentMemory::tieAccumulators(const Segment &segment) const {
  std::set<int32_t> tied;
  for (int32_t l = segment.begin; l < segment.end; ++l)
    for (const int32_t param : graph.layers[l].params)
      if (uses[param] > 1 && graph.params[param].trainable)
        tied.insert(param);
  Bytes bytes = 0;
  for (const int32_t param : tied)
    bytes += shareBytes(
        TensorType{graph.params[param].shape, DType::Float32}.bytes(), 1);
  return bytes;
}

Bytes SegmentMemory::workspace(const Segment &segment, int64_t samples) const {
  // Packing leaves holes: one more of the largest tensor covers them.
  Bytes largest = 0;
  for (int32_t l = segment.begin; l < segment.end; ++l)
    largest = std::max(largest, valueBytes(graph.layers[l].output, samples));
  const Bytes calls = largest + std::max(forwardPeak(segment, samples),
                                         backwardPeak(segment, samples));
  return std::max(calls, tieAccumulators(segment));
}

} // namespace takt
