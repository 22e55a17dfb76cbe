//===- Procedures.cpp - kernels of a role with addresses ------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Forward and backward procedures from the stage's kernels, and the two that
// belong to the step: sums of tied parameters and the optimizer's update.
//
//===----------------------------------------------------------------------===//
#include "RoleBuilder.h"

#include <fmt/format.h>

using namespace takt;
using rt::KernelKind;
using rt::Phase;

rt::Procedure RoleBuilder::procedure(
    const char *name, Phase phase,
    const std::vector<const std::vector<AbstractKernel> *> &parts) const {
  rt::Procedure out;
  out.name = name;
  out.phase = phase;
  out.stage = index;
  for (const auto *part : parts)
    for (const AbstractKernel &kernel : *part) {
      rt::Kernel k = kernel.kernel;
      for (const Operand &operand : kernel.operands)
        k.operands.push_back(locate(operand));
      out.kernels.push_back(std::move(k));
    }
  for (const StageLayerTimes &t : input.times) {
    if (phase == Phase::Forward)
      out.cost += t.forward;
    if (phase == Phase::InputGrad || phase == Phase::Backward)
      out.cost += t.inputGrad;
    if (phase == Phase::WeightGrad || phase == Phase::Backward)
      out.cost += t.weightGrad;
    if (phase == Phase::Update)
      out.cost += t.update;
  }
  return out;
}

/// Piece `part` of the action that makes the last gradients: the kernels of the
/// layers of a gradient bucket. Where the stage has I and W apart, memory is
/// laid out for all of I before W, so the first piece has all of I.
rt::Procedure RoleBuilder::pieceProcedure(ActionKind kind, int32_t part) const {
  bool both = kind == ActionKind::B;
  rt::Procedure out;
  out.name = fmt::format("{}.{}", both ? "B" : "W", part);
  out.phase = both ? Phase::Backward : Phase::WeightGrad;
  out.stage = index;
  auto isOwn = [&](int32_t layer) { return bucketOf(input, layer) == part; };
  auto ownsInputGrad = [&](int32_t layer) {
    return both && (stage.split ? part == 0 : isOwn(layer));
  };
  auto add = [&](const AbstractKernel &kernel) {
    rt::Kernel k = kernel.kernel;
    for (const Operand &operand : kernel.operands)
      k.operands.push_back(locate(operand));
    out.kernels.push_back(std::move(k));
  };
  for (const AbstractKernel &kernel : stage.inputGrad)
    if (ownsInputGrad(kernel.kernel.layer))
      add(kernel);
  for (const AbstractKernel &kernel : stage.weightGrad)
    if (isOwn(kernel.kernel.layer))
      add(kernel);
  for (int32_t l = input.layerBegin; l < input.layerEnd; ++l) {
    const StageLayerTimes &times = input.times[l - input.layerBegin];
    out.cost += ownsInputGrad(l) ? times.inputGrad : 0;
    out.cost += isOwn(l) ? times.weightGrad : 0;
  }
  return out;
}

/// grads[0] += grads[1], grads[2], ... in this order. Not timed: it is a pass
/// over memory once a step, small beside the update.
rt::Procedure RoleBuilder::tieProcedure(int32_t tie) const {
  rt::Procedure out;
  out.name = fmt::format("T{}", tie);
  out.phase = Phase::Update;
  out.stage = index;
  for (size_t i = 0; i < stage.params.size(); ++i) {
    if (stage.params[i].tie != tie)
      continue;
    const rt::RoleParam &param = role.params[i];
    for (size_t use = 1; use < param.grads.size(); ++use) {
      rt::Kernel k;
      k.kind = KernelKind::Accumulate;
      k.phase = Phase::Update;
      k.layer = stage.params[i].firstLayer;
      k.operands.push_back(param.grads[use]);
      k.operands.push_back(param.grads[0]);
      k.dims = {param.weight.bytes / 4};
      out.kernels.push_back(std::move(k));
    }
  }
  return out;
}

rt::Procedure RoleBuilder::updateProcedure() const {
  const rt::Training &t = problem.training;
  rt::Procedure out = procedure("U", Phase::Update, {});
  for (size_t i = 0; i < stage.params.size(); ++i) {
    const rt::RoleParam &param = role.params[i];
    if (param.grads.empty())
      continue;
    rt::Kernel k;
    k.phase = Phase::Update;
    k.layer = stage.params[i].firstLayer;
    k.operands.push_back(param.weight);
    k.operands.push_back(param.grads[0]);
    k.operands.insert(k.operands.end(), param.state.begin(), param.state.end());
    k.dims = {param.weight.bytes / 4};
    switch (t.optimizer) {
    case rt::OptimizerKind::Sgd:
      k.kind = KernelKind::SgdUpdate;
      k.scalars = {t.weightDecay};
      break;
    case rt::OptimizerKind::Momentum:
      k.kind = KernelKind::MomentumUpdate;
      k.scalars = {t.momentum, t.weightDecay};
      break;
    case rt::OptimizerKind::AdamW:
      k.kind = KernelKind::AdamWUpdate;
      k.scalars = {t.beta1, t.beta2, t.epsilon, t.weightDecay};
      break;
    }
    out.kernels.push_back(std::move(k));
    for (size_t use = 1; use < param.grads.size(); ++use) {
      rt::Kernel zero;
      zero.kind = KernelKind::Zero;
      zero.phase = Phase::Update;
      zero.layer = stage.params[i].firstLayer;
      zero.operands.push_back(param.grads[use]);
      zero.dims = {param.weight.bytes / 4};
      out.kernels.push_back(std::move(zero));
    }
  }
  // A profiled layer's parameters take time but have no kernel that runs.
  for (int32_t l = input.layerBegin; l < input.layerEnd; ++l)
    if (graph.layers[l].profiled.parameters > 0) {
      rt::Kernel k;
      k.kind = KernelKind::Profiled;
      k.phase = Phase::Update;
      k.layer = l;
      out.kernels.push_back(std::move(k));
    }
  return out;
}

void RoleBuilder::makeProcedures() {
  auto add = [&](rt::Procedure procedure) {
    procedureOf[procedure.name] = uint16_t(role.procedures.size());
    role.procedures.push_back(std::move(procedure));
  };
  bool usesB = false;
  for (const LaneInput &lane : input.lanes)
    for (const CommAction &action : lane.actions)
      usesB = usesB || (action.kind == CommKind::Compute &&
                        action.compute == ActionKind::B && action.part < 0);
  add(procedure("F", Phase::Forward, {&stage.forward}));
  if (usesB)
    add(procedure("B", Phase::Backward, {&stage.inputGrad, &stage.weightGrad}));
  if (stage.split) {
    add(procedure("I", Phase::InputGrad, {&stage.inputGrad}));
    add(procedure("W", Phase::WeightGrad, {&stage.weightGrad}));
  }
  for (const LaneInput &lane : input.lanes)
    for (const CommAction &action : lane.actions) {
      if (action.kind == CommKind::Compute && action.part >= 0)
        add(pieceProcedure(action.compute, action.part));
      if (action.kind == CommKind::TieSum)
        add(tieProcedure(action.tie));
      if (action.kind == CommKind::Update)
        add(updateProcedure());
    }
}
