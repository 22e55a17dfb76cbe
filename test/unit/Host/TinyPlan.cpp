//===- TinyPlan.cpp - a small plan made by hand ---------------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Every activation has a slot of its own for each micro-batch; a real plan
// shares them.
//
//===----------------------------------------------------------------------===//

#include "TinyPlan.h"

#include <algorithm>

namespace takt::rt::test {
namespace {

enum { kFc0, kAct, kFc1, kLoss };

class Builder {
public:
  explicit Builder(const TinyOptions &options) : options(options) {}

  Plan build();

private:
  /// Makes a pool of one buffer a slot.
  BufferRef pool(PoolKind kind, const std::string &name, int64_t elements,
                 bool perMicroBatch);
  int lane(LaneKind kind, const std::string &name);
  void instr(int lane, InstrKind kind, int target, int32_t microBatch,
             std::vector<Wait> waits = {});
  void begin(const std::string &name, int stage);
  void finish();
  void parameter(int32_t index, int64_t elements, int layer);
  void kernel(Procedure &procedure, KernelKind kind, Phase phase, int layer,
              std::vector<BufferRef> operands, std::vector<int64_t> dims,
              std::vector<double> scalars = {});
  void frontKernels(Procedure &f, Procedure &b, bool isWhole);
  void backKernels(Procedure &f, Procedure &b);
  void program(bool hasFront, bool hasBack);
  void computeLane(int lane, const std::vector<Wait> &arrivals, bool last);

  const TinyOptions options;
  Plan plan;
  Role role;
  int64_t rows = 0; ///< samples of a replica in a micro-batch
  BufferRef x, target, h, a, y, loss, dh, da, dy;
  std::vector<BufferRef> weights, grads;
  Procedure update;
};

BufferRef Builder::pool(PoolKind kind, const std::string &name,
                        int64_t elements, bool perMicroBatch) {
  Pool p;
  p.kind = kind;
  p.name = name;
  p.base = role.arenaBytes;
  p.slotBytes = alignUp(elements * 4);
  if (perMicroBatch) {
    p.count = options.microBatches;
    for (int32_t m = 0; m < options.microBatches; ++m)
      p.slotOf.push_back(static_cast<uint16_t>(m));
  }
  role.arenaBytes += p.bytes();
  role.pools.push_back(p);
  return {static_cast<uint16_t>(role.pools.size() - 1), 0, elements * 4};
}

int Builder::lane(LaneKind kind, const std::string &name) {
  role.lanes.push_back({kind, name, {}, {}});
  return static_cast<int>(role.lanes.size() - 1);
}

void Builder::instr(int index, InstrKind kind, int target, int32_t microBatch,
                    std::vector<Wait> waits) {
  Lane &l = role.lanes[index];
  uint32_t first = static_cast<uint32_t>(l.waits.size());
  l.waits.insert(l.waits.end(), waits.begin(), waits.end());
  l.instrs.push_back({kind, static_cast<uint16_t>(target), microBatch, first,
                      static_cast<uint32_t>(l.waits.size())});
}

void Builder::begin(const std::string &name, int stage) {
  role = Role();
  role.name = name;
  role.firstRank = plan.numRanks();
  role.replicas = options.replicas;
  role.stages = {stage};
  for (int32_t i = 0; i < options.replicas; ++i)
    role.devices.push_back(role.firstRank + i);
  role.peakInFlight = options.microBatches;
  weights.clear();
  grads.clear();
  update = Procedure();
  update.name = "U";
  update.phase = Phase::Update;
  update.stage = stage;
}

void Builder::finish() {
  role.livenessBytes = role.arenaBytes;
  plan.roles.push_back(role);
}

void Builder::kernel(Procedure &procedure, KernelKind kind, Phase phase,
                     int layer, std::vector<BufferRef> operands,
                     std::vector<int64_t> dims, std::vector<double> scalars) {
  procedure.kernels.push_back({kind, phase, layer, std::move(operands),
                               std::move(dims), std::move(scalars)});
}

void Builder::parameter(int32_t index, int64_t elements, int layer) {
  RoleParam use;
  use.param = index;
  const std::string &name = plan.params[index].name;
  use.weight = pool(PoolKind::Weights, name, elements, false);
  use.grads = {pool(PoolKind::Gradients, name + ".grad", elements, false)};
  weights.push_back(use.weight);
  grads.push_back(use.grads[0]);
  std::vector<BufferRef> operands = {use.weight, use.grads[0]};
  int states = static_cast<int>(options.optimizer);
  for (int s = 0; s < states; ++s) {
    use.state.push_back(pool(PoolKind::OptimizerState,
                             name + ".state" + std::to_string(s), elements,
                             false));
    operands.push_back(use.state.back());
  }
  const Training &t = plan.training;
  switch (options.optimizer) {
  case OptimizerKind::Sgd:
    kernel(update, KernelKind::SgdUpdate, Phase::Update, layer, operands,
           {elements}, {t.weightDecay});
    break;
  case OptimizerKind::Momentum:
    kernel(update, KernelKind::MomentumUpdate, Phase::Update, layer, operands,
           {elements}, {t.momentum, t.weightDecay});
    break;
  case OptimizerKind::AdamW:
    kernel(update, KernelKind::AdamWUpdate, Phase::Update, layer, operands,
           {elements}, {t.beta1, t.beta2, t.epsilon, t.weightDecay});
    break;
  }
  role.params.push_back(use);
}

void Builder::frontKernels(Procedure &f, Procedure &b, bool isWhole) {
  parameter(0, kTinyHidden * kTinyIn, kFc0);
  parameter(1, kTinyHidden, kFc0);
  x = pool(PoolKind::Batch, "x", rows * kTinyIn, true);
  role.loads.push_back({"x", x});
  h = pool(PoolKind::Saved, "h", rows * kTinyHidden, true);
  a = pool(isWhole ? PoolKind::Saved : PoolKind::Output, "a",
           rows * kTinyHidden, true);
  da = pool(isWhole ? PoolKind::Workspace : PoolKind::OutputGrad, "da",
            rows * kTinyHidden, true);
  dh = pool(PoolKind::Workspace, "dh", rows * kTinyHidden, true);
  kernel(f, KernelKind::LinearForward, Phase::Forward, kFc0,
         {x, weights[0], weights[1], h}, {rows, kTinyIn, kTinyHidden, 1});
  kernel(f, KernelKind::GeluForward, Phase::Forward, kAct, {h, a},
         {rows * kTinyHidden});
  kernel(b, KernelKind::GeluInputGrad, Phase::InputGrad, kAct, {h, da, dh},
         {rows * kTinyHidden});
  kernel(b, KernelKind::LinearWeightGrad, Phase::WeightGrad, kFc0,
         {x, dh, grads[0], grads[1]}, {rows, kTinyIn, kTinyHidden, 1});
}

void Builder::backKernels(Procedure &f, Procedure &b) {
  parameter(2, kTinyOut * kTinyHidden, kFc1);
  const BufferRef &w = weights.back();
  const BufferRef &dw = grads.back();
  target = pool(PoolKind::Batch, "target", rows * kTinyOut, true);
  role.loads.push_back({"target", target});
  y = pool(PoolKind::Saved, "y", rows * kTinyOut, true);
  dy = pool(PoolKind::Workspace, "dy", rows * kTinyOut, true);
  loss = pool(PoolKind::Loss, "loss", 1, true);
  role.hasLoss = true;
  double scale = 1.0 / double(plan.training.globalBatch * kTinyOut);
  kernel(f, KernelKind::LinearForward, Phase::Forward, kFc1, {a, w, y},
         {rows, kTinyHidden, kTinyOut, 0});
  kernel(f, KernelKind::MseForward, Phase::Forward, kLoss, {y, target, loss},
         {rows * kTinyOut}, {scale});
  std::vector<Kernel> front;
  std::swap(front, b.kernels);
  kernel(b, KernelKind::MseInputGrad, Phase::InputGrad, kLoss, {y, target, dy},
         {rows * kTinyOut}, {scale});
  kernel(b, KernelKind::LinearInputGrad, Phase::InputGrad, kFc1, {dy, w, da},
         {rows, kTinyHidden, kTinyOut});
  kernel(b, KernelKind::LinearWeightGrad, Phase::WeightGrad, kFc1, {a, dy, dw},
         {rows, kTinyHidden, kTinyOut, 0});
  b.kernels.insert(b.kernels.end(), front.begin(), front.end());
}

/// Forwards wait for `arrivals` of their micro-batch; backwards of all but the
/// last stage for a received gradient (lane 3).
void Builder::computeLane(int index, const std::vector<Wait> &arrivals,
                          bool last) {
  int32_t m = options.microBatches;
  auto forward = [&](int32_t i) {
    std::vector<Wait> waits = arrivals;
    for (Wait &wait : waits)
      wait.count = i + 1;
    instr(index, InstrKind::Call, 0, i, waits);
  };
  auto backward = [&](int32_t i) {
    std::vector<Wait> waits;
    if (!last)
      waits.push_back({3, static_cast<uint32_t>(i + 1)});
    instr(index, InstrKind::Call, 1, i, waits);
  };
  int32_t ahead = !options.oneF1B ? m : last ? 1 : std::min(m, 2);
  for (int32_t i = 0; i < ahead; ++i)
    forward(i);
  for (int32_t i = 0; i < m; ++i) {
    backward(i);
    if (i + ahead < m)
      forward(i + ahead);
  }
}

/// Count of the compute lane once a call has completed.
Wait afterCall(const Role &role, int procedure, int32_t microBatch) {
  const std::vector<Instr> &instrs = role.lanes[0].instrs;
  for (size_t i = 0; i < instrs.size(); ++i)
    if (instrs[i].target == procedure && instrs[i].microBatch == microBatch)
      return {0, static_cast<uint32_t>(i + 1)};
  return {};
}

void Builder::program(bool hasFront, bool hasBack) {
  int32_t m = options.microBatches;
  Procedure f, b;
  f.name = "F";
  b.name = "B";
  b.phase = Phase::Backward;
  f.stage = b.stage = role.stages[0];
  f.cost = b.cost = update.cost = 1000;
  if (!hasFront) {
    a = pool(PoolKind::Input, "a", rows * kTinyHidden, true);
    da = pool(PoolKind::InputGrad, "da", rows * kTinyHidden, true);
  }
  if (hasFront)
    frontKernels(f, b, hasBack);
  if (hasBack)
    backKernels(f, b);
  role.procedures = {f, b, update};
  bool whole = hasFront && hasBack;
  lane(LaneKind::Compute, "compute");
  lane(LaneKind::Load, "load");
  if (!whole) {
    lane(hasFront ? LaneKind::SendAct : LaneKind::RecvAct, "act");
    lane(hasFront ? LaneKind::RecvGrad : LaneKind::SendGrad, "grad");
    role.channels = {{0, a}, {1, da}};
  }
  std::vector<Wait> arrivals = {{1, 0}};
  if (!hasFront)
    arrivals.push_back({2, 0});
  computeLane(0, arrivals, hasBack);
  for (int32_t i = 0; i < m; ++i) {
    instr(1, InstrKind::Load, 0, i);
    if (whole)
      continue;
    if (hasFront) {
      instr(2, InstrKind::Send, 0, i, {afterCall(role, 0, i)});
      instr(3, InstrKind::Recv, 1, i);
    } else {
      instr(2, InstrKind::Recv, 0, i);
      instr(3, InstrKind::Send, 1, i, {afterCall(role, 1, i)});
    }
  }
  std::vector<Wait> beforeUpdate;
  if (options.replicas > 1) {
    int reduce = lane(LaneKind::Reduce, "reduce");
    for (const BufferRef &grad : grads) {
      Group group;
      group.name = "dp" + std::to_string(plan.groups.size());
      group.role = static_cast<uint16_t>(plan.roles.size());
      role.groups.push_back({static_cast<uint16_t>(plan.groups.size()), grad});
      instr(reduce, InstrKind::AllReduce, plan.groups.size(), -1,
            {{0, static_cast<uint32_t>(2 * m)}});
      plan.groups.push_back(group);
    }
    beforeUpdate.push_back(
        {static_cast<uint16_t>(reduce), static_cast<uint32_t>(grads.size())});
  }
  instr(0, InstrKind::Call, 2, -1, beforeUpdate);
}

Plan Builder::build() {
  plan.model = "tiny";
  plan.cluster = "test";
  plan.compiler = "test";
  plan.schedule = options.oneF1B ? "1f1b" : "gpipe";
  plan.costSource = "test";
  Training &t = plan.training;
  t.globalBatch = options.microBatches * options.microBatchSize;
  t.microBatches = options.microBatches;
  t.seed = 5;
  t.optimizer = options.optimizer;
  t.learningRate = 0.05;
  t.weightDecay = 0.01;
  rows = options.microBatchSize / options.replicas;
  plan.inputs = {{"x", DType::Float32, {kTinyIn}, 0},
                 {"target", DType::Float32, {kTinyOut}, 0}};
  plan.layers = {{"fc0", "linear"},
                 {"act", "gelu"},
                 {"fc1", "linear"},
                 {"loss", "mean_squared_error"}};
  plan.params = {
      {"fc0.weight", {kTinyHidden, kTinyIn}, InitKind::Normal, 0.4, true},
      {"fc0.bias", {kTinyHidden}, InitKind::Zeros, 0, true},
      {"fc1.weight", {kTinyOut, kTinyHidden}, InitKind::Uniform, 0.3, true}};
  if (options.stages == 1) {
    begin("whole", 0);
    program(true, true);
    finish();
    return plan;
  }
  Bytes bytes = options.microBatchSize * kTinyHidden * 4;
  plan.channels = {{"f0", ChannelKind::Activation, 0, 1, bytes, Link()},
                   {"b1", ChannelKind::Gradient, 1, 0, bytes, Link()}};
  begin("front", 0);
  program(true, false);
  finish();
  begin("back", 1);
  program(false, true);
  finish();
  return plan;
}

} // namespace

Plan tinyPlan(const TinyOptions &options) { return Builder(options).build(); }

} // namespace takt::rt::test
