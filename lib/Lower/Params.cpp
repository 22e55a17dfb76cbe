//===- Params.cpp - where the parameters of a role lie --------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Weights and optimizer state once a parameter, whichever stages of the role
// use it; an accumulator for every use, stage after stage and bucket after
// bucket.
//
//===----------------------------------------------------------------------===//
#include "RoleBuilder.h"

#include <algorithm>

using namespace takt;
using rt::PoolKind;

namespace {

/// Optimizer state tensors of a parameter.
int statesOf(rt::OptimizerKind optimizer) {
  switch (optimizer) {
  case rt::OptimizerKind::Sgd:
    return 0;
  case rt::OptimizerKind::Momentum:
    return 1;
  case rt::OptimizerKind::AdamW:
    return 2;
  }
  return 0;
}

/// Pools do not exist yet: a buffer names the kind of its pool until they do.
rt::BufferRef inPool(PoolKind kind, Bytes offset, Bytes bytes) {
  return {uint16_t(kind), offset, bytes};
}

} // namespace

void RoleBuilder::collectParams() {
  for (StagePart &part : parts)
    for (const StageParam &own : part.stage.params) {
      auto same = [&](const RoleParamInfo &p) { return p.param == own.param; };
      auto it = std::find_if(params.begin(), params.end(), same);
      if (it == params.end()) {
        RoleParamInfo info;
        info.param = own.param;
        info.owner = part.index;
        info.trainable = own.trainable;
        info.firstLayer = own.firstLayer;
        info.bytes = own.bytes;
        it = params.insert(params.end(), info);
      }
      part.roleParam.push_back(int32_t(it - params.begin()));
      part.earlierUses.push_back(it->uses);
      it->uses += own.uses;
    }
  for (size_t k = 0; k < problem.ties.size(); ++k)
    for (RoleParamInfo &own : params)
      if (own.param == problem.ties[k].param) {
        own.tie = int32_t(k);
        own.tieAccumulator = roleOf[problem.ties[k].stages.front()] != index;
      }
}

/// Accumulators bucket after bucket, in each in the order of the parameters, so
/// that one all-reduce takes one range. Every use has an accumulator of its
/// own, which belongs to the bucket of the layer that uses the parameter.
void RoleBuilder::placeGradients(StagePart &part, Bytes &total) {
  const StageInput &stage = inputOf(part);
  const std::vector<StageParam> &own = part.stage.params;
  std::vector<std::vector<int32_t>> layersOf(own.size());
  for (int32_t l = stage.layerBegin; l < stage.layerEnd; ++l)
    for (int32_t param : graph.layers[l].params)
      for (size_t i = 0; i < own.size(); ++i)
        if (own[i].param == param)
          layersOf[i].push_back(l);
  std::vector<Bytes> bytes = bucketBytes(graph, stage);
  for (size_t k = 0; k < bytes.size(); ++k) {
    Bytes at = total;
    for (size_t i = 0; i < own.size(); ++i) {
      if (!own[i].trainable)
        continue;
      const int32_t p = part.roleParam[i];
      const int32_t first = part.earlierUses[i] + params[p].tieAccumulator;
      for (int32_t use = 0; use < own[i].uses; ++use) {
        if (bucketOf(stage, layersOf[i][use]) != int32_t(k))
          continue;
        role.params[p].grads[first + use] =
            inPool(PoolKind::Gradients, at, own[i].bytes);
        at += rt::alignUp(own[i].bytes);
      }
    }
    for (int32_t l = stage.layerBegin; l < stage.layerEnd; ++l) {
      const ProfiledCost &profiled = graph.layers[l].profiled;
      Bytes unnamed = rt::alignUp(profiled.parameters);
      if (unnamed == 0 || !profiled.trainable ||
          bucketOf(stage, l) != int32_t(k))
        continue;
      part.gradients[l] = inPool(PoolKind::Gradients, at, unnamed);
      at += unnamed;
    }
    part.buckets.push_back(inPool(PoolKind::Gradients, total, bytes[k]));
    total += bytes[k];
  }
}

/// Weights, gradients and optimizer state, parameter after parameter, then what
/// stands for the parameters of profiled layers. An accumulator of a partial
/// sum that another role sends lives in the workspace: it is written only when
/// all calls of the step are done.
void RoleBuilder::placeParams() {
  const int states = statesOf(problem.training.optimizer);
  Bytes weights = 0, gradients = 0, state = 0;
  for (const RoleParamInfo &own : params) {
    rt::RoleParam out;
    out.param = own.param;
    out.weight = inPool(PoolKind::Weights, weights, own.bytes);
    Bytes step = rt::alignUp(own.bytes);
    weights += step;
    if (own.trainable) {
      out.grads.resize(own.uses + own.tieAccumulator);
      if (own.tieAccumulator) {
        out.grads[0] = inPool(PoolKind::Workspace, tieBytes, own.bytes);
        tieBytes += step;
      }
      for (int k = 0; k < states; ++k) {
        out.state.push_back(inPool(PoolKind::OptimizerState, state, own.bytes));
        state += step;
      }
    }
    role.params.push_back(std::move(out));
  }
  for (StagePart &part : parts) {
    placeGradients(part, gradients);
    const StageInput &stage = inputOf(part);
    for (int32_t l = stage.layerBegin; l < stage.layerEnd; ++l) {
      const ProfiledCost &profiled = graph.layers[l].profiled;
      Bytes unnamed = rt::alignUp(profiled.parameters);
      if (unnamed == 0)
        continue;
      part.weights[l] = inPool(PoolKind::Weights, weights, unnamed);
      weights += unnamed;
      if (!profiled.trainable)
        continue;
      if (states > 0)
        part.states[l] =
            inPool(PoolKind::OptimizerState, state, states * unnamed);
      state += states * unnamed;
    }
  }
  const std::pair<PoolKind, Bytes> pools[] = {
      {PoolKind::Weights, weights},
      {PoolKind::Gradients, gradients},
      {PoolKind::OptimizerState, state}};
  const char *const names[] = {"weights", "gradients", "optimizer state"};
  for (int i = 0; i < 3; ++i)
    if (int32_t pool = addPool(pools[i].first, names[i], pools[i].second, 1);
        pool >= 0)
      poolOf[pools[i].first] = uint16_t(pool);
}
