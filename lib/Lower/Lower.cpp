//===- Lower.cpp - from stages and actions to a plan ----------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Numbers channels and groups, and builds the roles.
//
//===----------------------------------------------------------------------===//
#include "RoleBuilder.h"

#include "takt-rt/core/clock.h"
#include "takt-rt/core/error.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

using namespace takt;

namespace {

/// Only what crosses a boundary between two roles is transferred.
ChannelTable makeChannels(const LoweringProblem &problem, rt::Plan &plan) {
  ChannelTable table;
  std::vector<bool> needsGrad = valuesNeedingGrad(problem.graph);
  auto add = [&](std::string name, rt::ChannelKind kind, int32_t from,
                 int32_t to, Bytes bytes, const rt::Link &link) {
    plan.channels.push_back(
        {std::move(name), kind, uint16_t(from), uint16_t(to), bytes, link});
    return int32_t(plan.channels.size()) - 1;
  };
  const std::vector<int32_t> roleOf = problem.roleOfStage();
  int32_t count = int32_t(problem.stages.size());
  for (int32_t b = 0; b + 1 < count; ++b) {
    const rt::Link &link = problem.boundaryLinks[b];
    const int32_t low = roleOf[b], high = roleOf[b + 1];
    std::vector<int32_t> &activations = table.activation.emplace_back();
    std::vector<int32_t> &gradients = table.gradient.emplace_back();
    if (low == high)
      continue;
    const std::vector<int32_t> values =
        crossingValues(problem.graph, problem.stages[b].layerEnd);
    for (size_t k = 0; k < values.size(); ++k) {
      const Bytes bytes = problem.graph.values[values[k]].type.bytes() *
                          problem.training.microBatchSize();
      const std::string number =
          values.size() > 1 ? fmt::format("{}_{}", b, k) : std::to_string(b);
      activations.push_back(add("act" + number, rt::ChannelKind::Activation,
                                low, high, bytes, link));
      gradients.push_back(needsGrad[values[k]]
                              ? add("grad" + number, rt::ChannelKind::Gradient,
                                    high, low, bytes, link)
                              : -1);
    }
  }
  for (int32_t k = 0; k < int32_t(problem.ties.size()); ++k) {
    const TieInput &tie = problem.ties[k];
    const rt::Param &param = problem.graph.params[tie.param];
    Bytes bytes = TensorType{param.shape, DType::Float32}.bytes();
    auto connect = [&](const TieRun &from, const TieRun &to) {
      const int32_t source = from.stages.front(), target = to.stages.front();
      auto [it, isNew] = table.tie.insert({{k, source, target}, -1});
      if (isNew)
        it->second = add(fmt::format("tie{}_{}_{}", k, source, target),
                         rt::ChannelKind::Tie, from.role, to.role, bytes,
                         problem.tieLinks[k]);
    };
    const std::vector<TieRun> runs = tieRuns(tie, roleOf);
    std::set<int32_t> told{runs.back().role};
    for (size_t i = 0; i + 1 < runs.size(); ++i) {
      connect(runs[i], runs[i + 1]);
      if (told.insert(runs[i].role).second)
        connect(runs.back(), runs[i]);
    }
  }
  table.group.resize(count);
  for (const RoleInput &role : problem.roles)
    for (const LaneInput &lane : role.lanes)
      for (const CommAction &a : lane.actions)
        if (a.kind == CommKind::Reduce && !a.wait)
          table.group[a.stage].resize(bucketCount(problem.stages[a.stage]));
  for (int32_t s = 0; s < count; ++s)
    for (size_t k = 0; k < table.group[s].size(); ++k) {
      table.group[s][k] = int32_t(plan.groups.size());
      std::string name = table.group[s].size() > 1
                             ? fmt::format("dp{}_{}", s, k)
                             : fmt::format("dp{}", s);
      plan.groups.push_back({std::move(name), uint16_t(roleOf[s]),
                             problem.roles[roleOf[s]].groupLink});
    }
  return table;
}

} // namespace

RoleBuilder::RoleBuilder(const LoweringProblem &problem, int32_t index,
                         const ChannelTable &channels, const Turns *turns)
    : problem(problem), graph(problem.graph), input(problem.roles[index]),
      index(index), channels(channels), turns(turns),
      roleOf(problem.roleOfStage()) {
  std::vector<bool> split(problem.stages.size());
  for (const LaneInput &lane : input.lanes)
    for (const CommAction &a : lane.actions)
      if (a.kind == CommKind::Compute &&
          (a.compute == ActionKind::I || a.compute == ActionKind::W))
        split[a.stage] = true;
  for (int32_t stage : input.stages) {
    StagePart part;
    part.index = stage;
    part.stage = buildStage(problem, stage, input.replicas, split[stage]);
    part.memory = planMemory(part.stage);
    parts.push_back(std::move(part));
  }
}

const StagePart &RoleBuilder::partOf(int32_t stage) const {
  return *std::find_if(parts.begin(), parts.end(), [&](const StagePart &part) {
    return part.index == stage;
  });
}

StagePart &RoleBuilder::partOf(int32_t stage) {
  return const_cast<StagePart &>(std::as_const(*this).partOf(stage));
}

bool RoleBuilder::isHandover(int32_t boundary) const {
  return boundary >= 0 && boundary + 1 < int32_t(roleOf.size()) &&
         roleOf[boundary] == index && roleOf[boundary + 1] == index;
}

void RoleBuilder::makeEndpoints() {
  auto add = [&](int32_t channel, const rt::BufferRef &buffer) {
    role.channels.push_back({uint16_t(channel), buffer});
  };
  for (const StagePart &part : parts) {
    const Stage &stage = part.stage;
    const int32_t s = part.index;
    auto addAll = [&](const std::vector<Crossing> &end, int32_t boundary) {
      for (size_t k = 0; k < end.size() && !isHandover(boundary); ++k) {
        add(channels.activation[boundary][k],
            locateTensor(part, end[k].tensor));
        if (end[k].gradient >= 0)
          add(channels.gradient[boundary][k],
              locateTensor(part, end[k].gradient));
      }
    };
    addAll(stage.inputs, s - 1);
    addAll(stage.outputs, s);
    for (size_t k = 0; k < channels.group[s].size(); ++k)
      role.groups.push_back({uint16_t(channels.group[s][k]), part.buckets[k]});
  }
  for (auto &[key, channel] : channels.tie) {
    if (roleOf[key[1]] != index && roleOf[key[2]] != index)
      continue;
    for (size_t i = 0; i < params.size(); ++i)
      if (params[i].tie == key[0])
        add(channel, role.params[i].grads[0]);
  }
  std::sort(role.channels.begin(), role.channels.end(),
            [](const rt::Endpoint &a, const rt::Endpoint &b) {
              return a.target < b.target;
            });
}

rt::Role RoleBuilder::build(int32_t firstRank) {
  role.name = isMany() ? fmt::format("stages{}", fmt::join(input.stages, "+"))
                       : fmt::format("stage{}", input.stages.front());
  role.firstRank = firstRank;
  role.replicas = input.replicas;
  role.stages = input.stages;
  role.devices = input.devices;
  role.capacity = input.capacity;
  indexActions();
  collectParams();
  planSlots();
  makePools();
  makeProcedures();
  makeLanes();
  makeEndpoints();
  std::vector<Action> actions;
  for (const LaneInput &lane : input.lanes)
    for (const CommAction &a : lane.actions)
      if (a.kind == CommKind::Compute && a.part <= 0)
        actions.push_back({a.stage, a.compute, a.microBatch});
  role.peakInFlight = peakInFlight(actions);
  return std::move(role);
}

static rt::Plan build(const LoweringProblem &problem, const Turns *turns) {
  rt::Plan plan;
  plan.model = problem.graph.name;
  plan.cluster = problem.cluster;
  plan.compiler = problem.compiler;
  plan.inputHash = problem.inputHash;
  plan.schedule = problem.schedule;
  plan.costSource = problem.costSource;
  plan.training = problem.training;
  plan.resources = problem.resources;
  plan.inputs = problem.graph.inputs;
  plan.params = problem.graph.params;
  if (const int32_t result = problem.graph.result();
      problem.graph.mode == rt::Mode::Inference && result >= 0) {
    const Value &value = problem.graph.values[result];
    if (value.type.bytes() > 0)
      plan.output = {value.name, value.type.shape};
  }
  for (const Layer &layer : problem.graph.layers)
    plan.layers.push_back({layer.name, layerKindName(layer.kind)});
  ChannelTable channels = makeChannels(problem, plan);
  int32_t firstRank = 0;
  for (size_t r = 0; r < problem.roles.size(); ++r) {
    RoleBuilder builder(problem, int32_t(r), channels, turns);
    plan.roles.push_back(builder.build(firstRank));
    firstRank += problem.roles[r].replicas;
  }
  return plan;
}

static bool runsToItsEnd(const rt::Plan &plan) {
  rt::SimulateOptions options;
  options.keepRecords = false;
  try {
    rt::simulate(plan, options);
  } catch (const rt::Error &) {
    return false;
  }
  return true;
}

/// Lists the layers by their numbers in the model.
static void renumberLayers(const std::vector<int32_t> &numbers,
                           rt::Plan &plan) {
  std::vector<rt::LayerInfo> layers(plan.layers.size());
  for (size_t l = 0; l < numbers.size(); ++l)
    layers[numbers[l]] = std::move(plan.layers[l]);
  plan.layers = std::move(layers);
  for (rt::Role &role : plan.roles)
    for (rt::Procedure &procedure : role.procedures)
      for (rt::Kernel &kernel : procedure.kernels)
        if (kernel.layer >= 0)
          kernel.layer = numbers[kernel.layer];
}

rt::Plan takt::lower(const LoweringProblem &problem) {
  // What the devices share does not change what waits for what.
  rt::Plan plan = build(problem, nullptr);
  // See Slots.cpp: only with several stages a role can a message wait in vain.
  const bool many =
      std::any_of(problem.roles.begin(), problem.roles.end(),
                  [](const RoleInput &role) { return role.stages.size() > 1; });
  if (many && !runsToItsEnd(plan)) {
    const Turns turns = takeTurns(problem);
    plan = build(problem, &turns);
  }
  plan.resources = problem.resources;
  if (!problem.layerNumbers.empty())
    renumberLayers(problem.layerNumbers, plan);
  return plan;
}
