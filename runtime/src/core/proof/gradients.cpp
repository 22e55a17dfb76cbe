//===- gradients.cpp - each layer's work once, each gradient once *- C++
//-*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Finds the ways in which micro-batches pass the stages (as B, as I and W, in
// pieces) and checks each way once, however many micro-batches take it. What
// stages of one role hand over in memory is compared when all are known.
//
//===----------------------------------------------------------------------===//
#include "layer_gradients.h"

#include "../channel_stage.h"

#include <fmt/format.h>

#include <algorithm>
#include <list>

namespace takt::rt::proof {

namespace {

using Way = std::vector<uint16_t>;

class RoleChecker {
public:
  RoleChecker(const Program &program, size_t index)
      : program(program), role(program.plan.roles[index]), index(index),
        common(program, index) {}
  std::optional<ProofFailure> run();
  bool vague = false; ///< of the failure

private:
  std::map<int32_t, std::set<Way>> ways() const;
  std::optional<ProofFailure> updates() const;
  std::optional<ProofFailure> handOvers() const;
  std::optional<ProofFailure> params() const;

  const Program &program;
  const Role &role;
  size_t index;
  RoleGradients common;
  struct Passed {
    Way way;
    LayerGradients gradients;
  };
  std::map<int32_t, std::list<Passed>> passed; ///< by stage
};

/// The calls of each micro-batch as a path in a tree of procedures: there are
/// many micro-batches and few paths.
std::map<int32_t, std::set<Way>> RoleChecker::ways() const {
  struct Path {
    uint32_t before;
    uint16_t procedure;
  };
  std::vector<Path> paths(1);
  std::map<std::pair<uint32_t, uint16_t>, uint32_t> longer;
  std::map<int32_t, std::vector<uint32_t>> ends; // by stage and micro-batch
  for (const Lane &lane : role.lanes)
    for (const Instr &instr : lane.instrs) {
      if (instr.kind != InstrKind::Call || instr.microBatch < 0)
        continue;
      std::vector<uint32_t> &end = ends[role.procedures[instr.target].stage];
      end.resize(program.plan.training.microBatches);
      uint32_t &own = end[instr.microBatch];
      auto [next, isNew] = longer.insert(
          {{own, instr.target}, static_cast<uint32_t>(paths.size())});
      if (isNew)
        paths.push_back({own, instr.target});
      own = next->second;
    }
  auto turn = [&](uint16_t p) {
    const Procedure &code = role.procedures[p];
    int when = code.phase == Phase::Forward      ? 0
               : code.phase == Phase::WeightGrad ? 2
                                                 : 1;
    return std::make_tuple(when, pieceOf(code), p);
  };
  std::map<int32_t, std::set<Way>> all;
  for (auto &[stage, end] : ends) {
    std::set<uint32_t> distinct(end.begin(), end.end());
    for (uint32_t path : distinct) {
      Way way;
      for (; path != 0; path = paths[path].before)
        way.push_back(paths[path].procedure);
      std::sort(way.begin(), way.end(),
                [&](uint16_t a, uint16_t b) { return turn(a) < turn(b); });
      all[stage].insert(std::move(way));
    }
  }
  return all;
}

/// A kernel of the step is there once in its procedure.
std::optional<ProofFailure> RoleChecker::updates() const {
  for (size_t p = 0; p < role.procedures.size(); ++p) {
    std::set<std::tuple<KernelKind, int32_t, std::vector<BufferKey>>> seen;
    if (role.procedures[p].phase != Phase::Update)
      continue;
    for (const Kernel &kernel : role.procedures[p].kernels) {
      std::vector<BufferKey> operands;
      for (const BufferRef &ref : kernel.operands)
        operands.push_back(keyOf(ref));
      if (!seen.insert({kernel.kind, kernel.layer, operands}).second)
        return program.kernelFailure(ProofRule::Completeness, index, p, &kernel,
                                     "runs a second time");
    }
  }
  return std::nullopt;
}

/// A gradient that a stage takes from another of the same role must be the one
/// that is due of the tensor which that one took from it.
std::optional<ProofFailure> RoleChecker::handOvers() const {
  struct Giver {
    int32_t stage;
    const Passed *passed;
  };
  std::map<BufferKey, std::vector<Giver>> giversOf; // by tensor taken
  for (const auto &[stage, giving] : passed)
    for (const Passed &giver : giving)
      for (const auto &[tensor, due] : giver.gradients.dueOutside)
        giversOf[tensor].push_back({stage, &giver});
  auto check = [&](int32_t stage, const LayerGradients &own,
                   const BufferKey &tensor, const Giver &giver) {
    const LayerGradients &next = giver.passed->gradients;
    std::optional<ProofFailure> failure;
    if (giver.stage == stage || own.opaque() || next.opaque())
      return failure;
    for (const BufferKey &gradient : own.handedOver) {
      if (own.left.size() > 1 && !isGradientOf(gradient, tensor))
        continue;
      auto made = next.held.find(gradient);
      if (made == next.held.end() ||
          !(made->second == next.dueOutside.at(tensor)))
        failure = program.kernelFailure(
            ProofRule::Completeness, index, giver.passed->way.back(), nullptr,
            fmt::format("hands stage {} a gradient that {}", stage,
                        next.outsideText(tensor)));
    }
    return failure;
  };
  for (const auto &[stage, taking] : passed)
    for (const Passed &taker : taking)
      for (const BufferKey &tensor : taker.gradients.left)
        if (auto givers = giversOf.find(tensor); givers != giversOf.end())
          for (const Giver &giver : givers->second)
            if (auto failure = check(stage, taker.gradients, tensor, giver))
              return failure;
  return std::nullopt;
}

/// What is trained has accumulators, and each of them a layer that adds to it.
std::optional<ProofFailure> RoleChecker::params() const {
  auto refuse = [&](const RoleParam &param, const char *what) {
    return ProofFailure{
        ProofRule::Completeness,
        fmt::format("role {}: parameter {} {}", quoted(role.name),
                    quoted(program.plan.params[param.param].name), what),
        {},
        {}};
  };
  for (const RoleParam &param : role.params) {
    if (program.plan.params[param.param].trainable && param.grads.empty())
      return refuse(param, "is trained but has no gradient");
    for (const BufferRef &grad : param.grads)
      if (!common.hasDeadLayers &&
          role.pools[grad.pool].kind == PoolKind::Gradients &&
          !common.adders.count(keyOf(grad)))
        return refuse(param, "has a gradient to which no layer adds");
  }
  return std::nullopt;
}

std::optional<ProofFailure> RoleChecker::run() {
  for (const auto &[stage, all] : ways())
    for (const Way &way : all) {
      std::list<Passed> &list = passed[stage];
      const bool isFirst = list.empty();
      list.push_back({way, LayerGradients(common, stage, way)});
      if (auto failure = list.back().gradients.run()) {
        vague = list.back().gradients.vague();
        return failure;
      }
      if (!isFirst && list.back().gradients.profiledInputs !=
                          list.front().gradients.profiledInputs)
        return program.kernelFailure(
            ProofRule::Completeness, index, way.back(), nullptr,
            "makes input gradients of other layers than the stage's other "
            "procedures");
    }
  if (auto failure = handOvers())
    return failure;
  if (auto failure = updates())
    return failure;
  return params();
}

/// A layer belongs to one stage, whose forward procedure runs it once.
std::optional<ProofFailure> checkLayers(const Plan &plan) {
  std::vector<bool> runs(plan.layers.size());
  for (const Role &role : plan.roles)
    for (const Procedure &procedure : role.procedures)
      for (const Kernel &kernel : procedure.kernels)
        if (procedure.phase == Phase::Forward && kernel.layer >= 0)
          runs[kernel.layer] = true;
  auto missing = std::find(runs.begin(), runs.end(), false);
  if (missing == runs.end())
    return std::nullopt;
  return ProofFailure{
      ProofRule::Completeness,
      fmt::format("no stage runs layer {} forward",
                  quoted(plan.layers[missing - runs.begin()].name)),
      {},
      {}};
}

/// The gradient channel of an activation channel by the offsets at one end; -1:
/// none. Nothing where a stage has one activation there, so that nothing can be
/// mistaken.
std::optional<int32_t> gradientAt(const Plan &plan, size_t activation,
                                  bool sending) {
  const Channel &own = plan.channels[activation];
  const Role &role = plan.roles[sending ? own.srcRole : own.dstRole];
  const Role *peer = &plan.roles[sending ? own.dstRole : own.srcRole];
  const Endpoint *end = findEndpoint(role.channels, uint16_t(activation));
  int32_t stage = stageAtEnd(role, own, sending), gradient = -1;
  int activations = 0;
  for (const Endpoint &other : role.channels) {
    const Channel &channel = plan.channels[other.target];
    bool back = channel.kind == ChannelKind::Gradient;
    bool sends = back ? !sending : sending;
    const Role *far = &plan.roles[sends ? channel.dstRole : channel.srcRole];
    if (channel.kind == ChannelKind::Tie || far != peer ||
        &plan.roles[sends ? channel.srcRole : channel.dstRole] != &role ||
        stageAtEnd(role, channel, sends) != stage)
      continue;
    activations += !back;
    if (back && end && isGradientOf(keyOf(other.buffer), keyOf(end->buffer)))
      gradient = other.target;
  }
  if (activations < 2)
    return std::nullopt;
  return gradient;
}

/// Both ends of a boundary must agree on which gradient is whose.
std::optional<ProofFailure> checkPairs(const Plan &plan) {
  auto name = [&](std::optional<int32_t> channel) {
    return channel.value_or(-1) < 0 ? std::string("none")
                                    : quoted(plan.channels[*channel].name);
  };
  for (size_t c = 0; c < plan.channels.size(); ++c) {
    if (plan.channels[c].kind != ChannelKind::Activation)
      continue;
    auto sent = gradientAt(plan, c, true), taken = gradientAt(plan, c, false);
    if (sent != taken)
      return ProofFailure{
          ProofRule::Completeness,
          fmt::format("channel {}: by the offsets in its messages the gradient "
                      "is that of channel {} where it is sent, of channel {} "
                      "where it is received",
                      quoted(plan.channels[c].name), name(sent), name(taken)),
          {},
          {}};
  }
  return std::nullopt;
}

} // namespace

GradientProof checkGradients(const Program &program) {
  if (auto failure = checkLayers(program.plan))
    return {failure, false};
  if (auto failure = checkPairs(program.plan))
    return {failure, false};
  for (size_t r = 0; r < program.plan.roles.size(); ++r) {
    RoleChecker checker(program, r);
    if (auto failure = checker.run())
      return {failure, checker.vague};
  }
  return {};
}

} // namespace takt::rt::proof
