//===- PlanBuilder.cpp - small sound plans for tests ------------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Each pool has a slot for each micro-batch, so no wait is needed to protect
// one from being overwritten.
//
//===----------------------------------------------------------------------===//
#include "PlanBuilder.h"

#include "takt-rt/core/names.h"

#include <algorithm>
#include <numeric>

namespace takt::rt::test {

namespace {

constexpr int64_t kWidth = 16;

class Builder {
public:
  explicit Builder(const PipelineShape &shape) : shape(shape) {}
  Plan build();

private:
  struct Action {
    bool forward;
    int32_t microBatch;
  };
  std::vector<Action> order(int32_t stage) const;
  void addChannels();
  void addRole(int32_t stage);
  BufferRef addPool(PoolKind kind, Bytes bytes, bool perMicroBatch);
  void addProcedures(int32_t stage);
  void addLanes(int32_t stage);
  void addInstr(LaneKind kind, Instr instr, std::vector<Wait> waits);
  uint32_t length(LaneKind kind);
  uint16_t lane(LaneKind kind);

  const PipelineShape &shape;
  Plan plan;
  Role role;
  BufferRef weight, grad, input, output, outputGrad, inputGrad, target, loss;
};

std::vector<Builder::Action> Builder::order(int32_t stage) const {
  std::vector<Action> actions;
  int32_t m = shape.microBatches;
  int32_t warmUp = shape.oneFOneB ? std::min(m, shape.stages - stage) : m;
  for (int32_t i = 0; i < warmUp; ++i)
    actions.push_back({true, i});
  for (int32_t i = 0; i < m; ++i) {
    actions.push_back({false, i});
    if (warmUp + i < m)
      actions.push_back({true, warmUp + i});
  }
  return actions;
}

void Builder::addChannels() {
  Bytes bytes = shape.samples * kWidth * 4;
  for (uint16_t s = 0; s + 1 < shape.stages; ++s) {
    auto next = static_cast<uint16_t>(s + 1);
    std::string number = std::to_string(s);
    plan.channels.push_back(
        {"act" + number, ChannelKind::Activation, s, next, bytes, shape.link});
    plan.channels.push_back(
        {"grad" + number, ChannelKind::Gradient, next, s, bytes, shape.link});
  }
}

BufferRef Builder::addPool(PoolKind kind, Bytes bytes, bool perMicroBatch) {
  Pool pool;
  pool.kind = kind;
  pool.name = std::string(nameOf(kind));
  if (std::any_of(role.pools.begin(), role.pools.end(),
                  [&](const Pool &p) { return p.name == pool.name; }))
    pool.name += std::to_string(role.pools.size());
  pool.base = role.arenaBytes;
  pool.slotBytes = alignUp(bytes);
  if (perMicroBatch) {
    pool.count = shape.microBatches;
    pool.slotOf.resize(shape.microBatches);
    std::iota(pool.slotOf.begin(), pool.slotOf.end(), 0);
  }
  role.arenaBytes += pool.bytes();
  role.pools.push_back(pool);
  return {static_cast<uint16_t>(role.pools.size() - 1), 0, bytes};
}

void Builder::addProcedures(int32_t stage) {
  int64_t rows = shape.samples / role.replicas, n = rows * kWidth;
  bool last = stage + 1 == shape.stages;
  double scale = 1.0 / static_cast<double>(shape.samples);
  Procedure forward{"F", Phase::Forward, stage, shape.forward, {}};
  forward.kernels.push_back({KernelKind::LinearForward,
                             Phase::Forward,
                             stage,
                             {input, weight, output},
                             {rows, kWidth, kWidth, 0},
                             {}});
  std::vector<Kernel> lossGrad, inputGrads, weightGrads;
  if (last) {
    forward.kernels.push_back({KernelKind::MseForward,
                               Phase::Forward,
                               shape.stages,
                               {output, target, loss},
                               {n},
                               {scale}});
    lossGrad.push_back({KernelKind::MseInputGrad,
                        Phase::InputGrad,
                        shape.stages,
                        {output, target, outputGrad},
                        {n},
                        {scale}});
  }
  inputGrads.push_back({KernelKind::LinearInputGrad,
                        Phase::InputGrad,
                        stage,
                        {outputGrad, weight, inputGrad},
                        {rows, kWidth, kWidth},
                        {}});
  weightGrads.push_back({KernelKind::LinearWeightGrad,
                         Phase::WeightGrad,
                         stage,
                         {input, outputGrad, grad},
                         {rows, kWidth, kWidth, 0},
                         {}});
  inputGrads.insert(inputGrads.begin(), lossGrad.begin(), lossGrad.end());
  role.procedures.push_back(forward);
  if (shape.splitBackward) {
    Nanos half = shape.backward / 2;
    role.procedures.push_back({"I", Phase::InputGrad, stage, half, inputGrads});
    role.procedures.push_back(
        {"W", Phase::WeightGrad, stage, shape.backward - half, weightGrads});
  } else {
    inputGrads.insert(inputGrads.end(), weightGrads.begin(), weightGrads.end());
    role.procedures.push_back(
        {"B", Phase::Backward, stage, shape.backward, inputGrads});
  }
  role.procedures.push_back({"U",
                             Phase::Update,
                             stage,
                             shape.update,
                             {{KernelKind::SgdUpdate,
                               Phase::Update,
                               stage,
                               {weight, grad},
                               {kWidth * kWidth},
                               {0.0}}}});
}

uint16_t Builder::lane(LaneKind kind) {
  for (uint16_t i = 0; i < role.lanes.size(); ++i)
    if (role.lanes[i].kind == kind)
      return i;
  role.lanes.push_back({kind, std::string(nameOf(kind)), {}, {}});
  return static_cast<uint16_t>(role.lanes.size() - 1);
}

uint32_t Builder::length(LaneKind kind) {
  return static_cast<uint32_t>(role.lanes[lane(kind)].instrs.size());
}

void Builder::addInstr(LaneKind kind, Instr instr, std::vector<Wait> waits) {
  Lane &code = role.lanes[lane(kind)];
  instr.waitBegin = static_cast<uint32_t>(code.waits.size());
  code.waits.insert(code.waits.end(), waits.begin(), waits.end());
  instr.waitEnd = static_cast<uint32_t>(code.waits.size());
  code.instrs.push_back(instr);
}

void Builder::addLanes(int32_t stage) {
  bool first = stage == 0, last = stage + 1 == shape.stages;
  auto act = static_cast<uint16_t>(2 * stage), grad = uint16_t(act + 1);
  LaneKind compute = LaneKind::Compute;
  for (const Action &action : order(stage)) {
    int32_t m = action.microBatch;
    std::vector<Wait> waits;
    auto need = [&](LaneKind kind, InstrKind what, uint16_t target) {
      addInstr(kind, {what, target, m, 0, 0}, {});
      waits.push_back({lane(kind), length(kind)});
    };
    if (action.forward) {
      if (first || last)
        need(LaneKind::Load, InstrKind::Load, 0);
      if (!first)
        need(LaneKind::RecvAct, InstrKind::Recv, uint16_t(act - 2));
      addInstr(compute, {InstrKind::Call, 0, m, 0, 0}, waits);
      if (!last)
        addInstr(LaneKind::SendAct, {InstrKind::Send, act, m, 0, 0},
                 {{lane(compute), length(compute)}});
      continue;
    }
    if (!last)
      need(LaneKind::RecvGrad, InstrKind::Recv, grad);
    addInstr(compute, {InstrKind::Call, 1, m, 0, 0}, waits);
    if (!first)
      addInstr(LaneKind::SendGrad,
               {InstrKind::Send, uint16_t(grad - 2), m, 0, 0},
               {{lane(compute), length(compute)}});
    if (shape.splitBackward)
      addInstr(compute, {InstrKind::Call, 2, m, 0, 0}, {});
  }
  std::vector<Wait> waits;
  if (!role.groups.empty()) {
    addInstr(LaneKind::Reduce,
             {InstrKind::AllReduce, role.groups[0].target, -1, 0, 0},
             {{lane(compute), length(compute)}});
    waits.push_back({lane(LaneKind::Reduce), 1});
  }
  auto update = static_cast<uint16_t>(role.procedures.size() - 1);
  addInstr(compute, {InstrKind::Call, update, -1, 0, 0}, waits);
}

void Builder::addRole(int32_t stage) {
  role = Role();
  role.name = "stage" + std::to_string(stage);
  role.firstRank = plan.numRanks();
  role.replicas = shape.replicasOf(stage);
  role.stages = {stage};
  for (int32_t i = 0; i < role.replicas; ++i)
    role.devices.push_back(role.firstRank + i);
  bool first = stage == 0, last = stage + 1 == shape.stages;
  Bytes share = shape.samples / role.replicas * kWidth * 4;
  weight = addPool(PoolKind::Weights, kWidth * kWidth * 4, false);
  grad = addPool(PoolKind::Gradients, kWidth * kWidth * 4, false);
  input = addPool(first ? PoolKind::Batch : PoolKind::Input, share, true);
  output = addPool(last ? PoolKind::Saved : PoolKind::Output, share, true);
  outputGrad =
      addPool(last ? PoolKind::Saved : PoolKind::OutputGrad, share, true);
  inputGrad =
      addPool(first ? PoolKind::Workspace : PoolKind::InputGrad, share, !first);
  if (first)
    role.loads.push_back({"x", input});
  if (last) {
    target = addPool(PoolKind::Batch, share, true);
    loss = addPool(PoolKind::Loss, 4, true);
    role.loads.push_back({"target", target});
    role.hasLoss = true;
  }
  auto act = static_cast<uint16_t>(2 * stage);
  if (!first) {
    role.channels.push_back({uint16_t(act - 2), input});
    role.channels.push_back({uint16_t(act - 1), inputGrad});
  }
  if (!last) {
    role.channels.push_back({act, output});
    role.channels.push_back({uint16_t(act + 1), outputGrad});
  }
  if (role.replicas > 1) {
    auto group = static_cast<uint16_t>(plan.groups.size());
    plan.groups.push_back({"reduce" + std::to_string(stage),
                           static_cast<uint16_t>(stage), shape.link});
    role.groups.push_back({group, grad});
  }
  role.params.push_back({stage, weight, {grad}, {}});
  role.livenessBytes = role.arenaBytes;
  role.capacity = 1 << 20;
  role.peakInFlight = shape.oneFOneB
                          ? std::min(shape.microBatches, shape.stages - stage)
                          : shape.microBatches;
  addProcedures(stage);
  addLanes(stage);
  plan.roles.push_back(role);
}

Plan Builder::build() {
  plan.model = "linear-chain";
  plan.cluster = "test";
  plan.compiler = "test";
  plan.inputHash = "0";
  plan.schedule = shape.oneFOneB ? "1f1b" : "gpipe";
  plan.costSource = "unit";
  plan.training.globalBatch = shape.samples * shape.microBatches;
  plan.training.microBatches = shape.microBatches;
  plan.inputs = {{"x", DType::Float32, {kWidth}, 0},
                 {"target", DType::Float32, {kWidth}, 0}};
  for (int32_t s = 0; s < shape.stages; ++s) {
    plan.layers.push_back({"linear" + std::to_string(s), "linear"});
    plan.params.push_back({"linear" + std::to_string(s) + ".weight",
                           {kWidth, kWidth},
                           InitKind::Normal,
                           0.25,
                           true});
  }
  plan.layers.push_back({"loss", "mse"});
  addChannels();
  for (int32_t s = 0; s < shape.stages; ++s)
    addRole(s);
  return std::move(plan);
}

} // namespace

Plan makePipeline(const PipelineShape &shape) { return Builder(shape).build(); }

size_t laneOf(const Role &role, LaneKind kind) {
  auto lane = std::find_if(role.lanes.begin(), role.lanes.end(),
                           [&](const Lane &l) { return l.kind == kind; });
  return lane - role.lanes.begin();
}

} // namespace takt::rt::test
