//===- figures.cpp - what a plan says of itself -----------------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Figures do not decide whether a plan may be run, and an older compiler may
// have counted otherwise: one that is wrong is a warning. A figure of 0 is not
// stated.
//
//===----------------------------------------------------------------------===//
#include "../check.h"

#include "takt-rt/core/clock.h"
#include "takt-rt/core/in_flight.h"
#include "takt-rt/core/proof.h"
#include "takt-rt/core/units.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <tuple>

namespace takt::rt {

namespace {

/// The most micro-batches between forward and the end of backward in the order
/// of the calls; 0 where several lanes call.
int32_t inFlight(const Role &role) {
  std::vector<std::vector<FlightEdge>> edges = flightEdges(role);
  int32_t most = 0;
  bool any = false;
  for (const std::vector<FlightEdge> &lane : edges) {
    int32_t now = 0;
    if (std::all_of(lane.begin(), lane.end(),
                    [](FlightEdge e) { return e == FlightEdge::None; }))
      continue;
    if (any)
      return 0;
    any = true;
    for (FlightEdge edge : lane) {
      now += (edge == FlightEdge::Begin) - (edge == FlightEdge::End);
      most = std::max(most, now);
    }
  }
  return most;
}

bool isPersistent(PoolKind kind) {
  return kind == PoolKind::Weights || kind == PoolKind::Gradients ||
         kind == PoolKind::OptimizerState || kind == PoolKind::Loss;
}

/// What lives in any case: all that persists, and the operands of one kernel.
Bytes leastLive(const Role &role) {
  Bytes persistent = 0, most = 0;
  for (const RoleParam &param : role.params) {
    auto add = [&](const BufferRef &ref) {
      persistent += isPersistent(role.pools[ref.pool].kind) ? ref.bytes : 0;
    };
    add(param.weight);
    std::for_each(param.grads.begin(), param.grads.end(), add);
    std::for_each(param.state.begin(), param.state.end(), add);
  }
  for (const Procedure &procedure : role.procedures)
    for (const Kernel &kernel : procedure.kernels) {
      std::set<std::tuple<uint16_t, Bytes, Bytes>> buffers;
      Bytes bytes = 0;
      for (const BufferRef &ref : kernel.operands)
        if (!isPersistent(role.pools[ref.pool].kind) &&
            buffers.insert({ref.pool, ref.offset, ref.bytes}).second)
          bytes += ref.bytes;
      most = std::max(most, kernel.kind == KernelKind::Profiled ? 0 : bytes);
    }
  return persistent + most;
}

} // namespace

std::vector<ProofFailure> checkFigures(const Plan &plan) {
  std::vector<ProofFailure> wrong;
  auto add = [&](std::string text) {
    wrong.push_back({ProofRule::Figures, std::move(text), {}, {}});
  };
  SimulateOptions options;
  options.keepRecords = false;
  Nanos makespan = simulate(plan, options).makespan;
  if (plan.predictedStep > 0 && plan.predictedStep != makespan)
    add(fmt::format("the plan predicts a step of {} ns, by its costs it takes "
                    "{} ns",
                    plan.predictedStep, makespan));
  if (plan.boundStep > 0 && plan.objectiveStep > 0 &&
      plan.boundStep > plan.objectiveStep)
    add(fmt::format("the lower bound of {} ns is above the {} ns that the "
                    "partition reaches",
                    plan.boundStep, plan.objectiveStep));
  for (const Role &role : plan.roles) {
    std::string name = quoted(role.name);
    int32_t held = inFlight(role);
    if (role.peakInFlight > 0 && held > 0 && role.peakInFlight != held)
      add(fmt::format("role {} states {} micro-batches in flight, its calls "
                      "hold {}",
                      name, role.peakInFlight, held));
    if (role.livenessBytes == 0)
      continue;
    if (Bytes least = leastLive(role); role.livenessBytes < least)
      add(fmt::format("role {} states {} bytes live at one moment, its "
                      "parameters and one kernel have {}",
                      name, role.livenessBytes, least));
    else if (role.livenessBytes > role.arenaBytes)
      add(fmt::format("role {} states {} bytes live at one moment, its arena "
                      "has {}",
                      name, role.livenessBytes, role.arenaBytes));
  }
  return wrong;
}

} // namespace takt::rt
