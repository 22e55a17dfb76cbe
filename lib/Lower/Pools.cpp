//===- Pools.cpp - pools, offsets and the liveness bound of a role --------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Order in the arena: what persists first, then what micro-batches hold, then the
// workspace.
//
//===----------------------------------------------------------------------===//
#include "RoleBuilder.h"

#include <algorithm>

using namespace takt;
using rt::PoolKind;

int32_t RoleBuilder::addPool(PoolKind kind, const char *name, Bytes slotBytes,
                             int32_t count, std::vector<uint16_t> slotOf) {
  if (slotBytes == 0 || count == 0)
    return -1;
  rt::Pool pool;
  pool.kind = kind;
  pool.name = name;
  pool.slotBytes = rt::alignUp(slotBytes);
  pool.count = count;
  pool.slotOf = std::move(slotOf);
  poolOf[kind] = uint16_t(role.pools.size());
  role.pools.push_back(std::move(pool));
  return int32_t(role.pools.size()) - 1;
}

/// Accumulators bucket after bucket, in each in the order of the parameters, so
/// that one all-reduce takes one range. Every use has an accumulator of its
/// own, which belongs to the bucket of the layer that uses the parameter.
void RoleBuilder::placeGradients(Bytes &total) {
  std::vector<std::vector<int32_t>> layersOf(stage.params.size());
  for (int32_t l = input.layerBegin; l < input.layerEnd; ++l)
    for (int32_t param : graph.layers[l].params)
      for (size_t i = 0; i < stage.params.size(); ++i)
        if (stage.params[i].param == param)
          layersOf[i].push_back(l);
  std::vector<Bytes> bytes = bucketBytes(graph, input);
  for (size_t k = 0; k < bytes.size(); ++k) {
    Bytes at = total;
    for (size_t i = 0; i < stage.params.size(); ++i) {
      const StageParam &own = stage.params[i];
      if (!own.trainable)
        continue;
      std::vector<rt::BufferRef> &grads = role.params[i].grads;
      grads.resize(own.uses + own.tieAccumulator);
      for (int32_t use = 0; use < own.uses; ++use) {
        if (bucketOf(input, layersOf[i][use]) != int32_t(k))
          continue;
        grads[use + own.tieAccumulator] = {uint16_t(PoolKind::Gradients), at,
                                           own.bytes};
        at += rt::alignUp(own.bytes);
      }
    }
    buckets.push_back({uint16_t(PoolKind::Gradients), total, bytes[k]});
    total += bytes[k];
  }
}

/// Weights, gradients and optimizer state, parameter after parameter. An
/// accumulator of a partial sum that another stage sends lives in the workspace:
/// it is written only when all calls of the step are done.
void RoleBuilder::placeParams() {
  int states = 0;
  if (problem.training.optimizer == rt::OptimizerKind::Momentum)
    states = 1;
  if (problem.training.optimizer == rt::OptimizerKind::AdamW)
    states = 2;
  Bytes weights = 0, gradients = 0, state = 0;
  // Pools do not exist yet; their numbers are fixed by the order below.
  for (const StageParam &own : stage.params) {
    rt::RoleParam out;
    out.param = own.param;
    out.weight = {0, weights, own.bytes};
    Bytes step = rt::alignUp(own.bytes);
    weights += step;
    if (own.trainable) {
      if (own.tieAccumulator) {
        out.grads.push_back({uint16_t(PoolKind::Workspace), tieBytes, own.bytes});
        tieBytes += step;
      }
      for (int k = 0; k < states; ++k) {
        out.state.push_back(
            {uint16_t(PoolKind::OptimizerState), state, own.bytes});
        state += step;
      }
    }
    role.params.push_back(std::move(out));
  }
  placeGradients(gradients);
  addPool(PoolKind::Weights, "weights", weights + stage.profiledWeights, 1);
  addPool(PoolKind::Gradients, "gradients", gradients, 1);
  addPool(PoolKind::OptimizerState, "optimizer state",
          state + states * stage.profiledWeights, 1);
}

void RoleBuilder::makePools() {
  placeParams();
  int32_t count = problem.training.microBatches;
  if (stage.loss >= 0) {
    std::vector<uint16_t> own(count);
    for (int32_t m = 0; m < count; ++m)
      own[m] = uint16_t(m);
    addPool(PoolKind::Loss, "loss", 4, count, std::move(own));
    role.hasLoss = true;
  }
  auto bytesOf = [&](int32_t tensor) {
    return tensor < 0 ? 0 : stage.tensors[tensor].bytes;
  };
  auto add = [&](PoolKind kind, const char *name, Bytes bytes,
                 const SlotPlan &slots) {
    addPool(kind, name, bytes, slots.count, slots.slotOf);
  };
  Bytes batch = 0;
  for (auto &[name, tensor] : stage.loads) {
    memory.offset[tensor] = batch;
    batch += rt::alignUp(stage.tensors[tensor].bytes);
  }
  add(PoolKind::Batch, "batch", batch, batchSlots);
  add(PoolKind::Saved, "saved", memory.savedBytes, savedSlots);
  add(PoolKind::Input, "input", bytesOf(stage.input), inputSlots);
  add(PoolKind::Output, "output", bytesOf(stage.output), outputSlots);
  add(PoolKind::OutputGrad, "output gradient", bytesOf(stage.outputGrad),
      outputGradSlots);
  add(PoolKind::InputGrad, "input gradient", bytesOf(stage.inputGradient),
      inputGradSlots);
  addPool(PoolKind::Workspace, "workspace",
          std::max(memory.workspaceBytes, tieBytes), 1);

  // Parameters were placed by kind of pool; now the pools have numbers.
  auto resolve = [&](rt::BufferRef &ref) {
    ref.pool = poolOf.at(PoolKind(ref.pool));
  };
  for (rt::RoleParam &param : role.params) {
    resolve(param.weight);
    std::for_each(param.grads.begin(), param.grads.end(), resolve);
    std::for_each(param.state.begin(), param.state.end(), resolve);
  }
  if (poolOf.count(PoolKind::Gradients))
    std::for_each(buckets.begin(), buckets.end(), resolve);
  for (auto &[name, tensor] : stage.loads)
    role.loads.push_back({name, locateTensor(tensor)});
  layOut();
  measureLiveness();
}

void RoleBuilder::layOut() {
  Bytes base = 0;
  for (rt::Pool &pool : role.pools) {
    pool.base = base;
    base += pool.bytes();
  }
  role.arenaBytes = base;
}

/// Plays the compute lane and adds up what lives at every kernel. Buffers of
/// transfers count in full: each of them may be filling while a call runs.
void RoleBuilder::measureLiveness() {
  Bytes persistent = 0, transfers = 0;
  for (const rt::Pool &pool : role.pools)
    switch (pool.kind) {
    case PoolKind::Weights:
    case PoolKind::Gradients:
    case PoolKind::OptimizerState:
    case PoolKind::Loss:
      persistent += pool.bytes();
      break;
    case PoolKind::Saved:
    case PoolKind::Workspace:
      break;
    default:
      transfers += pool.bytes();
    }

  std::vector<Bytes> held(problem.training.microBatches, 0);
  Bytes total = 0, most = 0;
  auto run = [&](int phase, int32_t m) {
    most = std::max(most, total - held[m] + memory.peak[phase]);
    total += memory.held[phase] - held[m];
    held[m] = memory.held[phase];
  };
  for (const LaneInput &lane : input.lanes)
    for (const CommAction &action : lane.actions) {
      if (action.kind != CommKind::Compute || action.part > 0)
        continue;
      bool both = action.compute == ActionKind::B;
      if (action.compute == ActionKind::F)
        run(0, action.microBatch);
      if (action.compute == ActionKind::I || both)
        run(1, action.microBatch);
      if (stage.split && (action.compute == ActionKind::W || both))
        run(2, action.microBatch);
    }
  role.livenessBytes = persistent + std::max(transfers + most, tieBytes);
}

rt::BufferRef RoleBuilder::locateTensor(int32_t tensor) const {
  const StageTensor &t = stage.tensors[tensor];
  auto at = [&](PoolKind kind, Bytes offset) {
    return rt::BufferRef{poolOf.at(kind), offset, t.bytes};
  };
  switch (t.role) {
  case TensorRole::Internal:
    return at(memory.inWorkspace[tensor] ? PoolKind::Workspace
                                         : PoolKind::Saved,
              memory.offset[tensor]);
  case TensorRole::Batch:
    return at(PoolKind::Batch, memory.offset[tensor]);
  case TensorRole::Input:
    return at(PoolKind::Input, 0);
  case TensorRole::Output:
    return at(PoolKind::Output, 0);
  case TensorRole::OutputGrad:
    return at(PoolKind::OutputGrad, 0);
  case TensorRole::InputGrad:
    return at(PoolKind::InputGrad, 0);
  case TensorRole::Loss:
    return at(PoolKind::Loss, 0);
  }
  return {};
}

rt::BufferRef RoleBuilder::locate(const Operand &operand) const {
  if (operand.kind == Operand::Tensor)
    return locateTensor(operand.index);
  const rt::RoleParam &param = role.params[operand.index];
  switch (operand.kind) {
  case Operand::Weight:
    return param.weight;
  case Operand::Grad: {
    bool accumulator = stage.params[operand.index].tieAccumulator;
    return param.grads[operand.part + (accumulator ? 1 : 0)];
  }
  default:
    return param.state[operand.part];
  }
}
