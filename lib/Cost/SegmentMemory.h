//===- SegmentMemory.h - bytes of a segment before lowering -----*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// What a segment's tensors take on one replica. The lowered plan decides the
// true offsets; these figures are upper bounds of what it will need.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "takt/Layer/Graph.h"

namespace takt {

/// Bytes of a tensor of `bytes` a sample, for `samples` samples, aligned as in
/// an arena. Absurd products saturate; the partition problem's check refuses
/// them.
Bytes shareBytes(Bytes bytes, int64_t samples);

class SegmentMemory {
public:
  explicit SegmentMemory(const Graph &graph);

  /// Tensors that backward reads, and the loaded inputs, held by each
  /// micro-batch in flight.
  Bytes saved(const Segment &segment, int64_t samples) const;
  /// Most temporaries of any one call.
  Bytes workspace(const Segment &segment, int64_t samples) const;

private:
  Bytes valueBytes(int32_t value, int64_t samples) const;
  Bytes statisticsBytes(const Layer &layer, int64_t samples) const;
  bool trains(const Layer &layer) const;
  void savedValues(const Layer &layer, std::vector<int32_t> &values) const;
  Bytes forwardPeak(const Segment &segment, int64_t samples) const;
  Bytes backwardPeak(const Segment &segment, int64_t samples) const;
  Bytes tieAccumulators(const Segment &segment) const;

  const Graph &graph;
  std::vector<bool> needsGrad;
  std::vector<int32_t> uses; ///< by parameter
};

} // namespace takt
