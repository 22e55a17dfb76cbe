//===- summary.cpp - what a plan decided, in one table ----------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Reads the figures off a plan; printing is in summary_print.cpp.
//
//===----------------------------------------------------------------------===//
#include "takt-rt/core/summary.h"

#include "takt-rt/core/clock.h"
#include "takt-rt/core/proof.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <set>

namespace takt::rt {

static std::vector<std::string> layersOf(const Plan &plan, const Role &role) {
  std::set<int32_t> indices;
  for (const Procedure &procedure : role.procedures)
    if (procedure.phase != Phase::Update)
      for (const Kernel &kernel : procedure.kernels)
        if (kernel.layer >= 0)
          indices.insert(kernel.layer);
  std::vector<std::string> names;
  for (int32_t index : indices)
    names.push_back(plan.layers[index].name);
  return names;
}

static StageSummary summarizeRole(const Plan &plan, const Role &role) {
  StageSummary stage;
  stage.role = role.name;
  stage.stages = role.stages;
  stage.layers = layersOf(plan, role);
  stage.firstRank = role.firstRank;
  stage.replicas = role.replicas;
  stage.devices = role.devices;
  // Pieces are one more call of their kind; alone they are the whole of it.
  auto isWhole = [&](const Procedure &piece) {
    return std::any_of(role.procedures.begin(), role.procedures.end(),
                       [&](const Procedure &p) {
                         return p.phase == piece.phase &&
                                p.stage == piece.stage && pieceOf(p) < 0;
                       });
  };
  for (const Procedure &procedure : role.procedures) {
    if (pieceOf(procedure) >= 0 && isWhole(procedure))
      continue;
    if (procedure.phase == Phase::Forward)
      stage.forward += procedure.cost;
    else if (procedure.phase == Phase::Update)
      stage.update += procedure.cost;
    else
      stage.backward += procedure.cost;
  }
  stage.peakBytes = role.arenaBytes;
  stage.livenessBytes = role.livenessBytes;
  stage.capacity = role.capacity;
  for (const Pool &pool : role.pools)
    if (pool.bytes() > 0)
      stage.memory[pool.kind] += pool.bytes();
  stage.inFlight = role.peakInFlight;
  return stage;
}

/// The nodes that a device is one of; null: they are not known.
static const NodeResources *nodesOf(const Plan &plan, int64_t device) {
  for (const NodeResources &nodes : plan.resources) {
    if (device < int64_t(nodes.nodes) * nodes.devices)
      return &nodes;
    device -= int64_t(nodes.nodes) * nodes.devices;
  }
  return nullptr;
}

std::string kindAmongSeveral(const Plan &plan, const Role &role) {
  bool several = false;
  for (const NodeResources &nodes : plan.resources)
    several |= nodes.kind != plan.resources.front().kind;
  if (!several || role.devices.empty())
    return {};
  const NodeResources *nodes = nodesOf(plan, role.devices.front());
  return nodes ? nodes->kind : std::string();
}

/// Kinds of the roles' devices, and what all devices cost an hour.
static void addKinds(const Plan &plan, Summary &summary) {
  double price = 0;
  bool known = !plan.roles.empty();
  for (size_t r = 0; r < plan.roles.size(); ++r) {
    for (int32_t device : plan.roles[r].devices) {
      const NodeResources *nodes = nodesOf(plan, device);
      known = known && nodes && nodes->price > 0;
      price += known ? double(nodes->price) / 1e6 : 0;
      if (nodes)
        summary.stages[r].kind = nodes->kind;
    }
  }
  if (known)
    summary.pricePerHour = price;
}

/// Compute time that a rank of the role spends in a step.
static double workOf(const Role &role) {
  double work = 0;
  for (const Lane &lane : role.lanes)
    if (lane.kind == LaneKind::Compute)
      for (const Instr &instr : lane.instrs)
        if (instr.kind == InstrKind::Call)
          work += static_cast<double>(role.procedures[instr.target].cost);
  return work;
}

Summary summarize(const Plan &plan) {
  Summary summary;
  summary.model = plan.model;
  summary.cluster = plan.cluster;
  summary.schedule = plan.schedule;
  summary.compiler = plan.compiler;
  summary.inputHash = plan.inputHash;
  summary.costSource = plan.costSource;
  summary.resources = plan.resources;
  summary.ranks = plan.numRanks();
  summary.microBatches = plan.training.microBatches;
  summary.globalBatch = plan.training.globalBatch;
  for (const Param &param : plan.params) {
    int64_t elements = 1;
    for (int64_t dim : param.shape)
      elements *= dim;
    if (__builtin_add_overflow(summary.parameters, elements,
                               &summary.parameters))
      summary.parameters = std::numeric_limits<int64_t>::max();
  }
  summary.mode = plan.training.mode;
  summary.period = plan.predictedPeriod;
  summary.latency = plan.predictedLatency;
  summary.step = plan.predictedStep;
  summary.bound = plan.boundStep;
  summary.objective = plan.objectiveStep;
  if (plan.boundStep > 0)
    summary.gap = static_cast<double>(plan.objectiveStep) /
                      static_cast<double>(plan.boundStep) -
                  1;
  bool mayRun = false;
  if (hasCertificate(plan)) {
    Proof proof = checkCertificate(plan);
    mayRun = proof.holds();
    summary.proof = proofText(proof);
  }
  double work = 0;
  for (const Role &role : plan.roles) {
    summary.stages.push_back(summarizeRole(plan, role));
    work += role.replicas * workOf(role);
  }
  addKinds(plan, summary);
  // Calls that share something take longer than they cost.
  if (mayRun && !plan.resources.empty()) {
    Simulation run = simulate(plan, {/*keepRecords=*/false});
    work = std::accumulate(run.busy.begin(), run.busy.end(), 0.0);
  }
  if (plan.predictedStep > 0)
    summary.bubble =
        1 - work / (static_cast<double>(plan.predictedStep) * summary.ranks);
  return summary;
}

} // namespace takt::rt
