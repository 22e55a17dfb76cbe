//===- Procedures.cpp - kernels of a role with addresses ------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Forward and backward procedures from the kernels of each stage, and the two
// that belong to the step: sums of tied parameters and the optimizer's update.
//
//===----------------------------------------------------------------------===//
#include "RoleBuilder.h"

#include <fmt/format.h>

using namespace takt;
using rt::KernelKind;
using rt::Phase;

/// A profiled layer names what it reads, then what it writes, with the buffers
/// that stand for its parameters.
rt::Kernel RoleBuilder::kernelOf(const StagePart &part,
                                 const AbstractKernel &kernel) const {
  rt::Kernel k = kernel.kernel;
  for (const Operand &operand : kernel.operands)
    k.operands.push_back(locate(part, operand));
  if (k.kind != KernelKind::Profiled)
    return k;
  auto addTensors = [&](const std::vector<int32_t> &tensors) {
    for (int32_t tensor : tensors)
      if (part.stage.tensors[tensor].bytes > 0)
        k.operands.push_back(locateTensor(part, tensor));
  };
  auto addParams = [&](const std::map<int32_t, rt::BufferRef> &refs) {
    if (auto ref = refs.find(k.layer); ref != refs.end())
      k.operands.push_back(ref->second);
  };
  addTensors(kernel.reads);
  if (k.phase != Phase::WeightGrad)
    addParams(part.weights);
  k.dims = {int64_t(k.operands.size())};
  addTensors(kernel.makes);
  if (k.phase == Phase::WeightGrad)
    addParams(part.gradients);
  return k;
}

rt::Procedure RoleBuilder::procedure(
    const StagePart &part, const char *name, Phase phase,
    const std::vector<const std::vector<AbstractKernel> *> &kernels) const {
  rt::Procedure out;
  out.name = name;
  out.phase = phase;
  out.stage = part.index;
  for (const auto *list : kernels)
    for (const AbstractKernel &kernel : *list)
      out.kernels.push_back(kernelOf(part, kernel));
  for (const StageLayerTimes &t : inputOf(part).times) {
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

/// Piece `piece` of the action that makes the last gradients: the kernels of
/// the layers of a gradient bucket. Where the stage has I and W apart, memory
/// is laid out for all of I before W, so the first piece has all of I.
rt::Procedure RoleBuilder::pieceProcedure(const StagePart &part,
                                          ActionKind kind,
                                          int32_t piece) const {
  const StageInput &stage = inputOf(part);
  bool both = kind == ActionKind::B;
  rt::Procedure out;
  out.name = fmt::format("{}.{}", both ? "B" : "W", piece);
  out.phase = both ? Phase::Backward : Phase::WeightGrad;
  out.stage = part.index;
  auto isOwn = [&](int32_t layer) { return bucketOf(stage, layer) == piece; };
  auto ownsInputGrad = [&](int32_t layer) {
    return both && (part.stage.split ? piece == 0 : isOwn(layer));
  };
  for (const AbstractKernel &kernel : part.stage.inputGrad)
    if (ownsInputGrad(kernel.kernel.layer))
      out.kernels.push_back(kernelOf(part, kernel));
  for (const AbstractKernel &kernel : part.stage.weightGrad)
    if (isOwn(kernel.kernel.layer))
      out.kernels.push_back(kernelOf(part, kernel));
  for (int32_t l = stage.layerBegin; l < stage.layerEnd; ++l) {
    const StageLayerTimes &times = stage.times[l - stage.layerBegin];
    out.cost += ownsInputGrad(l) ? times.inputGrad : 0;
    out.cost += isOwn(l) ? times.weightGrad : 0;
  }
  return out;
}

/// Adds the uses of the run to grads[0], in their order. Not timed: it is a
/// pass over memory once a step, small beside the update.
rt::Procedure RoleBuilder::tieProcedure(const TieRun &run, int32_t tie) const {
  rt::Procedure out;
  out.name = fmt::format("T{}", tie);
  out.phase = Phase::Update;
  out.stage = run.stages.front();
  for (int32_t stage : run.stages) {
    const StagePart &part = partOf(stage);
    for (size_t i = 0; i < part.roleParam.size(); ++i) {
      const RoleParamInfo &info = params[part.roleParam[i]];
      if (info.tie != tie)
        continue;
      const rt::RoleParam &param = role.params[part.roleParam[i]];
      const int32_t first = part.earlierUses[i] + info.tieAccumulator;
      for (int32_t use = 0; use < part.stage.params[i].uses; ++use) {
        if (first + use == 0)
          continue; // what the others are added to
        rt::Kernel k;
        k.kind = KernelKind::Accumulate;
        k.phase = Phase::Update;
        k.layer = part.stage.params[i].firstLayer;
        k.operands = {param.grads[first + use], param.grads[0]};
        k.dims = {param.weight.bytes / 4};
        out.kernels.push_back(std::move(k));
      }
    }
  }
  return out;
}

/// The parameters whose first use is in this stage; the sums of all their uses
/// in the role start the next step at zero.
rt::Procedure RoleBuilder::updateProcedure(const StagePart &part) const {
  const rt::Training &t = problem.training;
  rt::Procedure out = procedure(part, "U", Phase::Update, {});
  for (size_t i = 0; i < params.size(); ++i) {
    const rt::RoleParam &param = role.params[i];
    if (param.grads.empty() || params[i].owner != part.index)
      continue;
    rt::Kernel k;
    k.phase = Phase::Update;
    k.layer = params[i].firstLayer;
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
      zero.layer = params[i].firstLayer;
      zero.operands.push_back(param.grads[use]);
      zero.dims = {param.weight.bytes / 4};
      out.kernels.push_back(std::move(zero));
    }
  }
  // A profiled layer's parameters take time but have no kernel that runs.
  for (const auto &[layer, weights] : part.weights) {
    if (part.gradients.count(layer) == 0)
      continue; // frozen
    rt::Kernel k;
    k.kind = KernelKind::Profiled;
    k.phase = Phase::Update;
    k.layer = layer;
    k.operands = {weights, part.gradients.at(layer)};
    if (auto state = part.states.find(layer); state != part.states.end())
      k.operands.push_back(state->second);
    k.dims = {0};
    out.kernels.push_back(std::move(k));
  }
  return out;
}

void RoleBuilder::makeProcedures() {
  auto add = [&](rt::Procedure procedure) {
    procedureOf[{procedure.stage, procedure.name}] =
        uint16_t(role.procedures.size());
    role.procedures.push_back(std::move(procedure));
  };
  const std::vector<CommAction> &compute =
      input.lanes[laneOf(rt::LaneKind::Compute)].actions;
  for (const StagePart &part : parts) {
    const Stage &stage = part.stage;
    bool usesB = false;
    for (const CommAction &action : compute)
      usesB = usesB ||
              (action.kind == CommKind::Compute && action.stage == part.index &&
               action.compute == ActionKind::B && action.part < 0);
    add(procedure(part, "F", Phase::Forward, {&stage.forward}));
    if (usesB)
      add(procedure(part, "B", Phase::Backward,
                    {&stage.inputGrad, &stage.weightGrad}));
    if (stage.split) {
      add(procedure(part, "I", Phase::InputGrad, {&stage.inputGrad}));
      add(procedure(part, "W", Phase::WeightGrad, {&stage.weightGrad}));
    }
    for (const CommAction &action : compute) {
      if (action.stage != part.index)
        continue;
      if (action.kind == CommKind::Compute && action.part >= 0)
        add(pieceProcedure(part, action.compute, action.part));
      if (action.kind == CommKind::Update)
        add(updateProcedure(part));
      if (action.kind == CommKind::TieSum)
        for (const TieRun &run : tieRuns(problem.ties[action.tie], roleOf))
          if (run.stages.front() == action.stage)
            add(tieProcedure(run, action.tie));
    }
  }
}
