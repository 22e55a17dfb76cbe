//===- Pools.cpp - pools, offsets and the liveness bound of a role --------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Order in the arena: what persists first, then what micro-batches hold, stage
// after stage, then the workspace.
//
//===----------------------------------------------------------------------===//
#include "RoleBuilder.h"

#include <algorithm>

using namespace takt;
using rt::PoolKind;

int32_t RoleBuilder::addPool(PoolKind kind, std::string name, Bytes slotBytes,
                             int32_t count, std::vector<uint16_t> slotOf) {
  if (slotBytes == 0 || count == 0)
    return -1;
  rt::Pool pool;
  pool.kind = kind;
  pool.name = std::move(name);
  pool.slotBytes = rt::alignUp(slotBytes);
  pool.count = count;
  pool.slotOf = std::move(slotOf);
  role.pools.push_back(std::move(pool));
  return int32_t(role.pools.size()) - 1;
}

/// What comes and goes with the micro-batches of a stage. A buffer between two
/// stages of the role is a pool of the one that reads it.
void RoleBuilder::makePassingPools(StagePart &part) {
  const Stage &stage = part.stage;
  for (const auto *end : {&stage.inputs, &stage.outputs})
    for (const Crossing &crossing : *end)
      for (int32_t tensor : {crossing.tensor, crossing.gradient})
        if (tensor >= 0)
          part.memory.offset[tensor] = crossing.offset;
  auto add = [&](TensorRole what, PoolKind kind, std::string name, Bytes bytes,
                 const SlotPlan &slots) {
    if (isMany())
      name += " " + std::to_string(part.index);
    int32_t pool = addPool(kind, name, bytes, slots.count, slots.slotOf);
    if (pool >= 0)
      part.poolOf[what] = uint16_t(pool);
  };
  Bytes batch = 0;
  for (auto &[name, tensor] : stage.loads) {
    part.memory.offset[tensor] = batch;
    batch += rt::alignUp(stage.tensors[tensor].bytes);
  }
  add(TensorRole::Batch, PoolKind::Batch, "batch", batch, part.batchSlots);
  add(TensorRole::Internal, PoolKind::Saved, "saved", part.memory.savedBytes,
      part.savedSlots);
  add(TensorRole::Input, PoolKind::Input, "input",
      messageBytes(stage, stage.inputs, false), part.inputSlots);
  if (!isHandover(part.index))
    add(TensorRole::Output, PoolKind::Output, "output",
        messageBytes(stage, stage.outputs, false), part.outputSlots);
  add(TensorRole::OutputGrad, PoolKind::OutputGrad, "output gradient",
      messageBytes(stage, stage.outputs, true), part.outputGradSlots);
  if (!isHandover(part.index - 1)) {
    add(TensorRole::InputGrad, PoolKind::InputGrad, "input gradient",
        messageBytes(stage, stage.inputs, true), part.inputGradSlots);
    return;
  }
  StagePart &before = *(&part - 1);
  auto share = [](StagePart &to, TensorRole as, const StagePart &from,
                  TensorRole what) {
    if (auto pool = from.poolOf.find(what); pool != from.poolOf.end())
      to.poolOf[as] = pool->second;
  };
  share(before, TensorRole::Output, part, TensorRole::Input);
  share(part, TensorRole::InputGrad, before, TensorRole::OutputGrad);
}

void RoleBuilder::makePools() {
  placeParams();
  int32_t count = problem.training.microBatches;
  for (StagePart &part : parts) {
    if (part.stage.loss < 0)
      continue;
    std::vector<uint16_t> own(count);
    for (int32_t m = 0; m < count; ++m)
      own[m] = uint16_t(m);
    part.poolOf[TensorRole::Loss] =
        uint16_t(addPool(PoolKind::Loss, "loss", 4, count, std::move(own)));
    role.hasLoss = true;
  }
  Bytes workspace = tieBytes;
  for (StagePart &part : parts) {
    makePassingPools(part);
    workspace = std::max(workspace, part.memory.workspaceBytes);
  }
  // One call runs at a time, whichever stage it is of.
  if (int32_t pool = addPool(PoolKind::Workspace, "workspace", workspace, 1);
      pool >= 0)
    poolOf[PoolKind::Workspace] = uint16_t(pool);

  // Parameters were placed by kind of pool; now the pools have numbers.
  auto resolve = [&](rt::BufferRef &ref) {
    ref.pool = poolOf.at(PoolKind(ref.pool));
  };
  for (rt::RoleParam &param : role.params) {
    resolve(param.weight);
    std::for_each(param.grads.begin(), param.grads.end(), resolve);
    std::for_each(param.state.begin(), param.state.end(), resolve);
  }
  for (StagePart &part : parts) {
    if (poolOf.count(PoolKind::Gradients))
      std::for_each(part.buckets.begin(), part.buckets.end(), resolve);
    for (auto *refs : {&part.weights, &part.gradients, &part.states})
      for (auto &[layer, ref] : *refs)
        resolve(ref);
    for (auto &[name, tensor] : part.stage.loads)
      role.loads.push_back({name, locateTensor(part, tensor)});
  }
  for (const StagePart &part : parts)
    if (part.stage.result >= 0)
      role.result = locateTensor(part, part.stage.result);
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
  const LaneInput &compute = input.lanes[laneOf(rt::LaneKind::Compute)];
  // What is handed over within the rank lives from call to call.
  std::vector<Bytes> handed(compute.actions.size() + 1, 0);
  for (const Handover &handover : handovers) {
    transfers -=
        role.pools[partOf(handover.stage).poolOf.at(handover.what)].bytes();
    for (size_t m = 0; m < handover.begins.size(); ++m) {
      handed[handover.begins[m]] += rt::alignUp(handover.bytes);
      handed[handover.ends[m] + 1] -= rt::alignUp(handover.bytes);
    }
  }
  std::map<int32_t, std::vector<Bytes>> held;
  for (const StagePart &part : parts)
    held[part.index].assign(problem.training.microBatches, 0);
  Bytes total = 0, most = 0;
  for (size_t i = 0; i < compute.actions.size(); ++i) {
    const CommAction &action = compute.actions[i];
    total += handed[i];
    if (action.kind != CommKind::Compute || action.part > 0)
      continue;
    const StagePart &part = partOf(action.stage);
    auto run = [&](int phase) {
      Bytes &own = held[action.stage][action.microBatch];
      most = std::max(most, total - own + part.memory.peak[phase]);
      total += part.memory.held[phase] - own;
      own = part.memory.held[phase];
    };
    bool both = action.compute == ActionKind::B;
    if (action.compute == ActionKind::F)
      run(0);
    if (action.compute == ActionKind::I || both)
      run(1);
    if (part.stage.split && (action.compute == ActionKind::W || both))
      run(2);
  }
  role.livenessBytes = persistent + std::max(transfers + most, tieBytes);
}

rt::BufferRef RoleBuilder::locateTensor(const StagePart &part,
                                        int32_t tensor) const {
  const StageTensor &t = part.stage.tensors[tensor];
  if (t.role == TensorRole::Internal && part.memory.inWorkspace[tensor])
    return {poolOf.at(PoolKind::Workspace), part.memory.offset[tensor],
            t.bytes};
  return {part.poolOf.at(t.role), part.memory.offset[tensor], t.bytes};
}

rt::BufferRef RoleBuilder::locate(const StagePart &part,
                                  const Operand &operand) const {
  if (operand.kind == Operand::Tensor)
    return locateTensor(part, operand.index);
  const int32_t p = part.roleParam[operand.index];
  const rt::RoleParam &param = role.params[p];
  switch (operand.kind) {
  case Operand::Weight:
    return param.weight;
  case Operand::Grad:
    return param.grads[part.earlierUses[operand.index] + operand.part +
                       (params[p].tieAccumulator ? 1 : 0)];
  default:
    return param.state[operand.part];
  }
}
