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
    Bytes sum =
        layer.profiled.trainable ? rt::alignUp(layer.profiled.parameters) : 0;
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

/// The last action of a compute lane that makes gradients of a stage's weights.
static size_t lastGradientAction(const std::vector<CommAction> &actions,
                                 int32_t stage) {
  size_t last = actions.size();
  for (size_t i = 0; i < actions.size(); ++i)
    if (actions[i].kind == CommKind::Compute && actions[i].stage == stage &&
        (actions[i].compute == ActionKind::B ||
         actions[i].compute == ActionKind::W))
      last = i;
  return last;
}

/// The action in as many pieces as the stage has buckets.
static void cutAction(std::vector<CommAction> &actions, size_t at,
                      int32_t count) {
  std::vector<CommAction> pieces(count, actions[at]);
  for (int32_t k = 0; k < count; ++k)
    pieces[k].part = k;
  auto place = actions.erase(actions.begin() + at);
  actions.insert(place, pieces.begin(), pieces.end());
}

static CommAction reduceOf(int32_t stage, int32_t bucket) {
  CommAction reduce;
  reduce.kind = CommKind::Reduce;
  reduce.stage = stage;
  reduce.part = bucket;
  return reduce;
}

void takt::cutIntoBuckets(LoweringProblem &problem, int32_t index,
                          std::vector<int32_t> begins,
                          std::vector<std::vector<int32_t>> order) {
  StageInput &stage = problem.stages[index];
  RoleInput &role = problem.roles[problem.roleOfStage()[index]];
  stage.bucketBegins = std::move(begins);
  int32_t count = bucketCount(stage);
  if (order.empty()) {
    order.resize(1);
    order[0].resize(count);
    std::iota(order[0].begin(), order[0].end(), 0);
  }
  order.erase(std::remove(order.begin(), order.end(), std::vector<int32_t>{}),
              order.end());
  // The first list takes the place of the one all-reduce; the second goes to
  // the second lane, which another stage may have made.
  std::vector<LaneInput> lanes;
  size_t next = 0;
  for (LaneInput &lane : role.lanes) {
    if (lane.kind == rt::LaneKind::Compute) {
      size_t at = lastGradientAction(lane.actions, index);
      if (at < lane.actions.size())
        cutAction(lane.actions, at, count);
    }
    const bool reduces = lane.kind == rt::LaneKind::Reduce;
    lanes.push_back(std::move(lane));
    if (!reduces)
      continue;
    std::vector<CommAction> &actions = lanes.back().actions;
    auto own = std::find_if(
        actions.begin(), actions.end(),
        [&](const CommAction &action) {
          return action.stage == index && !action.wait;
        });
    size_t at = own - actions.begin();
    if (own != actions.end())
      actions.erase(own);
    for (size_t k = 0; next < order.size() && k < order[next].size(); ++k)
      actions.insert(actions.begin() + at + k, reduceOf(index, order[next][k]));
    ++next;
    bool isLast = &lane == &role.lanes.back() ||
                  (&lane + 1)->kind != rt::LaneKind::Reduce;
    for (; isLast && next < order.size(); ++next) {
      lanes.push_back({rt::LaneKind::Reduce, {}});
      for (int32_t bucket : order[next])
        lanes.back().actions.push_back(reduceOf(index, bucket));
    }
  }
  role.lanes = std::move(lanes);
}
