//===- Buckets.cpp - gradient buckets of a stage --------------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Which layers' gradients are reduced together, how many bytes they are in the
// pool, and the pieces that the last backward comes in.
//
//===----------------------------------------------------------------------===//
#include "takt/Lower/Lower.h"

#include <algorithm>
#include <numeric>

using namespace takt;

std::vector<Bytes> takt::gradientBytes(const Graph &graph,
                                       const StageInput &stage) {
  std::vector<Bytes> bytes;
  for (int32_t l = stage.layerBegin; l < stage.layerEnd; ++l) {
    const Layer &layer = graph.layers[l];
    Bytes sum = rt::alignUp(layer.profiled.parameters);
    for (int32_t param : layer.params)
      if (graph.params[param].trainable)
        sum += rt::alignUp(
            TensorType{graph.params[param].shape, DType::Float32}.bytes());
    bytes.push_back(sum);
  }
  return bytes;
}

int32_t takt::bucketCount(const StageInput &stage) {
  return std::max<int32_t>(1, int32_t(stage.bucketBegins.size()));
}

int32_t takt::bucketOf(const StageInput &stage, int32_t layer) {
  auto bucket =
      std::find_if(stage.bucketBegins.begin(), stage.bucketBegins.end(),
                   [&](int32_t begin) { return begin <= layer; });
  return stage.bucketBegins.empty()
             ? 0
             : int32_t(bucket - stage.bucketBegins.begin());
}

std::vector<Bytes> takt::bucketBytes(const Graph &graph,
                                     const StageInput &stage) {
  std::vector<Bytes> layers = gradientBytes(graph, stage);
  std::vector<Bytes> bytes(bucketCount(stage), 0);
  for (size_t i = 0; i < layers.size(); ++i)
    bytes[bucketOf(stage, stage.layerBegin + int32_t(i))] += layers[i];
  return bytes;
}

/// The last action of a compute lane that makes gradients of weights.
static size_t lastGradientAction(const std::vector<CommAction> &actions) {
  size_t last = actions.size();
  for (size_t i = 0; i < actions.size(); ++i)
    if (actions[i].kind == CommKind::Compute &&
        (actions[i].compute == ActionKind::B ||
         actions[i].compute == ActionKind::W))
      last = i;
  return last;
}

void takt::cutIntoBuckets(StageInput &stage, std::vector<int32_t> begins,
                          std::vector<std::vector<int32_t>> order) {
  stage.bucketBegins = std::move(begins);
  int32_t count = bucketCount(stage);
  if (order.empty()) {
    order.resize(1);
    order[0].resize(count);
    std::iota(order[0].begin(), order[0].end(), 0);
  }
  std::vector<LaneInput> lanes;
  for (LaneInput &lane : stage.lanes) {
    if (lane.kind == rt::LaneKind::Compute) {
      size_t at = lastGradientAction(lane.actions);
      if (at < lane.actions.size()) {
        std::vector<CommAction> pieces(count, lane.actions[at]);
        for (int32_t k = 0; k < count; ++k)
          pieces[k].part = k;
        auto place = lane.actions.erase(lane.actions.begin() + at);
        lane.actions.insert(place, pieces.begin(), pieces.end());
      }
    }
    if (lane.kind != rt::LaneKind::Reduce) {
      lanes.push_back(std::move(lane));
      continue;
    }
    CommAction reduce = lane.actions.front();
    for (const std::vector<int32_t> &buckets : order) {
      LaneInput own{rt::LaneKind::Reduce, {}};
      for (int32_t bucket : buckets) {
        reduce.part = bucket;
        own.actions.push_back(reduce);
      }
      if (!own.actions.empty())
        lanes.push_back(std::move(own));
    }
  }
  stage.lanes = std::move(lanes);
}
