//===- Lower.cpp - from stages and actions to a plan ----------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Checks the problem, numbers channels and groups, and builds one role a stage.
//
//===----------------------------------------------------------------------===//
#include "RoleBuilder.h"

#include <fmt/format.h>

#include <algorithm>

using namespace takt;

namespace {

/// The compute actions of every stage, taken back out of the lanes.
Schedule computeSchedule(const LoweringProblem &problem) {
  Schedule schedule{problem.schedule, {}};
  for (const StageInput &stage : problem.stages) {
    std::vector<Action> actions;
    for (const LaneInput &lane : stage.lanes)
      for (const CommAction &a : lane.actions)
        if (a.kind == CommKind::Compute && a.part <= 0)
          actions.push_back({a.stage, a.compute, a.microBatch});
    schedule.roles.push_back(std::move(actions));
  }
  return schedule;
}

std::optional<std::string> checkStage(const LoweringProblem &problem,
                                      size_t index) {
  const StageInput &stage = problem.stages[index];
  int32_t expected = index ? problem.stages[index - 1].layerEnd : 0;
  if (stage.layerBegin != expected || stage.layerEnd <= stage.layerBegin)
    return fmt::format("stage {} holds layers [{}, {}), expected a range from "
                       "{}",
                       index, stage.layerBegin, stage.layerEnd, expected);
  int64_t share = problem.training.microBatchSize();
  if (stage.replicas < 1 || share % stage.replicas != 0)
    return fmt::format("stage {}: {} replicas do not divide a micro-batch of "
                       "{} samples",
                       index, stage.replicas, share);
  if (stage.devices.size() != size_t(stage.replicas))
    return fmt::format("stage {} names {} devices for {} replicas", index,
                       stage.devices.size(), stage.replicas);
  if (stage.times.size() != size_t(stage.layerEnd - stage.layerBegin))
    return fmt::format("stage {} has times for {} of {} layers", index,
                       stage.times.size(), stage.layerEnd - stage.layerBegin);
  return std::nullopt;
}

/// Buckets divide the layers from the last to the first, and each has something
/// to reduce.
std::optional<std::string> checkBuckets(const LoweringProblem &problem,
                                        size_t index) {
  const StageInput &stage = problem.stages[index];
  const std::vector<int32_t> &begins = stage.bucketBegins;
  if (begins.empty())
    return std::nullopt;
  int32_t end = stage.layerEnd;
  for (int32_t begin : begins) {
    if (begin < stage.layerBegin || begin >= end)
      return fmt::format("stage {}: a gradient bucket begins at layer {}, "
                         "expected one of [{}, {})",
                         index, begin, stage.layerBegin, end);
    end = begin;
  }
  if (end != stage.layerBegin)
    return fmt::format("stage {}: the last gradient bucket begins at layer {}, "
                       "the stage at layer {}",
                       index, end, stage.layerBegin);
  if (begins.size() == 1)
    return std::nullopt;
  if (stage.replicas < 2)
    return fmt::format("stage {} has {} gradient buckets and one replica, "
                       "which reduces nothing",
                       index, begins.size());
  std::vector<Bytes> bytes = bucketBytes(problem.graph, stage);
  for (size_t k = 0; k < bytes.size(); ++k)
    if (bytes[k] == 0)
      return fmt::format("stage {}: gradient bucket {} is empty", index, k);
  return std::nullopt;
}

/// The pieces of an action stand together and in order: what one leaves in the
/// workspace is there for the next.
std::optional<std::string> checkPieces(const LaneInput &lane, size_t stage,
                                       int32_t buckets) {
  int32_t expected = 0;
  for (size_t i = 0; i < lane.actions.size(); ++i) {
    const CommAction &a = lane.actions[i];
    CommAction first = a;
    first.part = 0;
    bool follows = expected == 0 || (i > 0 && [&] {
                     CommAction before = lane.actions[i - 1];
                     before.part = 0;
                     return before == first;
                   }());
    int32_t part = a.kind == CommKind::Compute ? a.part : -1;
    if ((part < 0 && expected > 0) ||
        (part >= 0 && (part != expected || !follows)))
      return fmt::format("stage {}: '{}' stands where piece {} of an action is "
                         "expected",
                         stage, toText(a), expected);
    expected = part < 0 || part + 1 == buckets ? 0 : part + 1;
  }
  if (expected > 0)
    return fmt::format("stage {}: piece {} of its last action is missing",
                       stage, expected);
  return std::nullopt;
}

/// Devices are numbered through all nodes.
std::optional<std::string> checkResources(const LoweringProblem &problem) {
  if (problem.resources.empty())
    return std::nullopt;
  int64_t devices = 0;
  for (const rt::NodeResources &nodes : problem.resources)
    devices += int64_t(nodes.nodes) * nodes.devices;
  for (const StageInput &stage : problem.stages)
    for (int32_t device : stage.devices)
      if (device < 0 || device >= devices)
        return fmt::format("device {} is not one of the {} of the nodes",
                           device, devices);
  return std::nullopt;
}

/// The lanes must hold the actions that the compute schedule calls for, in any
/// order that keeps step actions after the calls.
std::optional<std::string> checkLanes(const LoweringProblem &problem) {
  Schedule schedule = computeSchedule(problem);
  ScheduleProblem shape{int32_t(problem.stages.size()),
                        problem.training.microBatches};
  if (auto fault = verify(shape, schedule))
    return fault;
  LoweringProblem reference = problem;
  insertCommunication(reference, schedule);
  auto texts = [](const StageInput &stage) {
    std::map<rt::LaneKind, std::vector<std::string>> out;
    for (const LaneInput &lane : stage.lanes)
      for (const CommAction &action : lane.actions)
        if (!action.wait)
          out[lane.kind].push_back(toText(action));
    for (auto &[kind, list] : out)
      std::sort(list.begin(), list.end());
    return out;
  };
  for (size_t s = 0; s < problem.stages.size(); ++s) {
    auto have = texts(problem.stages[s]), need = texts(reference.stages[s]);
    for (auto &[kind, list] : need)
      for (const std::string &text : list)
        if (!std::binary_search(have[kind].begin(), have[kind].end(), text))
          return fmt::format("stage {} lacks the action '{}'", s, text);
    if (have != need)
      return fmt::format("stage {} has actions that its schedule does not call "
                         "for",
                         s);
    if (auto fault = checkWaits(problem.stages[s], int32_t(s)))
      return fault;
    bool step = false;
    for (const LaneInput &lane : problem.stages[s].lanes) {
      if (lane.kind != rt::LaneKind::Compute)
        continue;
      if (auto fault = checkPieces(lane, s, bucketCount(problem.stages[s])))
        return fault;
      for (const CommAction &a : lane.actions) {
        if (a.kind == CommKind::Compute && step)
          return fmt::format("stage {}: '{}' stands after the sums or the "
                             "update",
                             s, toText(a));
        step = a.kind != CommKind::Compute;
      }
    }
  }
  return std::nullopt;
}

} // namespace

std::optional<std::string> LoweringProblem::check() const {
  if (auto fault = graph.check())
    return fault;
  if (stages.empty())
    return "there are no stages";
  if (training.microBatches < 1 || training.globalBatch < 1 ||
      training.globalBatch % training.microBatches != 0)
    return fmt::format("a global batch of {} is not divisible into {} "
                       "micro-batches",
                       training.globalBatch, training.microBatches);
  for (size_t s = 0; s < stages.size(); ++s)
    if (auto fault = checkStage(*this, s))
      return fault;
    else if (auto bucket = checkBuckets(*this, s))
      return bucket;
  if (stages.back().layerEnd != int32_t(graph.layers.size()))
    return fmt::format("the stages end at layer {} of {}",
                       stages.back().layerEnd, graph.layers.size());
  if (boundaryLinks.size() + 1 != stages.size())
    return fmt::format("{} links for {} boundaries", boundaryLinks.size(),
                       stages.size() - 1);
  std::vector<std::pair<int32_t, int32_t>> ranges;
  for (const StageInput &stage : stages)
    ranges.push_back({stage.layerBegin, stage.layerEnd});
  std::vector<TieInput> expected = findTies(graph, ranges);
  auto same = [](const TieInput &a, const TieInput &b) {
    return a.param == b.param && a.stages == b.stages;
  };
  if (!std::equal(ties.begin(), ties.end(), expected.begin(), expected.end(),
                  same))
    return "the ties are not those of the graph and its cuts";
  if (tieLinks.size() != ties.size())
    return fmt::format("{} links for {} ties", tieLinks.size(), ties.size());
  if (auto fault = checkResources(*this))
    return fault;
  return checkLanes(*this);
}

namespace {

/// Only what crosses a boundary alone may be transferred.
ChannelTable makeChannels(const LoweringProblem &problem, rt::Plan &plan) {
  ChannelTable table;
  std::vector<bool> needsGrad = valuesNeedingGrad(problem.graph);
  auto add = [&](std::string name, rt::ChannelKind kind, int32_t from,
                 int32_t to, Bytes bytes, const rt::Link &link) {
    plan.channels.push_back(
        {std::move(name), kind, uint16_t(from), uint16_t(to), bytes, link});
    return int32_t(plan.channels.size()) - 1;
  };
  int32_t count = int32_t(problem.stages.size());
  for (int32_t b = 0; b + 1 < count; ++b) {
    const Layer &last = problem.graph.layers[problem.stages[b].layerEnd - 1];
    Bytes bytes = problem.graph.values[last.output].type.bytes() *
                  problem.training.microBatchSize();
    const rt::Link &link = problem.boundaryLinks[b];
    table.activation.push_back(add(fmt::format("act{}", b),
                                   rt::ChannelKind::Activation, b, b + 1, bytes,
                                   link));
    table.gradient.push_back(needsGrad[last.output]
                                 ? add(fmt::format("grad{}", b),
                                       rt::ChannelKind::Gradient, b + 1, b,
                                       bytes, link)
                                 : -1);
  }
  for (int32_t k = 0; k < int32_t(problem.ties.size()); ++k) {
    const TieInput &tie = problem.ties[k];
    const rt::Param &param = problem.graph.params[tie.param];
    Bytes bytes = TensorType{param.shape, DType::Float32}.bytes();
    auto connect = [&](int32_t from, int32_t to) {
      auto [it, isNew] = table.tie.insert({{k, from, to}, -1});
      if (isNew)
        it->second =
            add(fmt::format("tie{}_{}_{}", k, from, to), rt::ChannelKind::Tie,
                from, to, bytes, problem.tieLinks[k]);
    };
    for (size_t i = 0; i + 1 < tie.stages.size(); ++i) {
      connect(tie.stages[i], tie.stages[i + 1]);
      connect(tie.stages.back(), tie.stages[i]);
    }
  }
  for (int32_t s = 0; s < count; ++s) {
    const StageInput &stage = problem.stages[s];
    bool reduces = std::any_of(
        stage.lanes.begin(), stage.lanes.end(),
        [](const LaneInput &l) { return l.kind == rt::LaneKind::Reduce; });
    table.group.emplace_back();
    int32_t buckets = bucketCount(stage);
    for (int32_t k = 0; reduces && k < buckets; ++k) {
      table.group.back().push_back(int32_t(plan.groups.size()));
      std::string name =
          buckets > 1 ? fmt::format("dp{}_{}", s, k) : fmt::format("dp{}", s);
      plan.groups.push_back({std::move(name), uint16_t(s), stage.groupLink});
    }
  }
  return table;
}

} // namespace

RoleBuilder::RoleBuilder(const LoweringProblem &problem, int32_t index,
                         const ChannelTable &channels)
    : problem(problem), graph(problem.graph), input(problem.stages[index]),
      index(index), channels(channels) {
  bool split = false;
  for (const LaneInput &lane : input.lanes)
    for (const CommAction &a : lane.actions)
      split =
          split || (a.kind == CommKind::Compute &&
                    (a.compute == ActionKind::I || a.compute == ActionKind::W));
  stage = buildStage(problem, index, split);
  memory = planMemory(stage);
}

void RoleBuilder::makeEndpoints() {
  auto add = [&](int32_t channel, const rt::BufferRef &buffer) {
    role.channels.push_back({uint16_t(channel), buffer});
  };
  if (stage.input >= 0)
    add(channels.activation[index - 1], locateTensor(stage.input));
  if (stage.inputGradient >= 0)
    add(channels.gradient[index - 1], locateTensor(stage.inputGradient));
  if (stage.output >= 0)
    add(channels.activation[index], locateTensor(stage.output));
  if (stage.outputGrad >= 0)
    add(channels.gradient[index], locateTensor(stage.outputGrad));
  for (auto &[key, channel] : channels.tie) {
    if (key[1] != index && key[2] != index)
      continue;
    for (size_t i = 0; i < stage.params.size(); ++i)
      if (stage.params[i].tie == key[0])
        add(channel, role.params[i].grads[0]);
  }
  std::sort(role.channels.begin(), role.channels.end(),
            [](const rt::Endpoint &a, const rt::Endpoint &b) {
              return a.target < b.target;
            });
  for (size_t k = 0; k < channels.group[index].size(); ++k)
    role.groups.push_back({uint16_t(channels.group[index][k]), buckets[k]});
}

rt::Role RoleBuilder::build(int32_t firstRank) {
  role.name = fmt::format("stage{}", index);
  role.firstRank = firstRank;
  role.replicas = input.replicas;
  role.stages = {index};
  role.devices = input.devices;
  role.capacity = input.capacity;
  indexActions();
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

rt::Plan takt::lower(const LoweringProblem &problem) {
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
  for (const Layer &layer : problem.graph.layers)
    plan.layers.push_back({layer.name, layerKindName(layer.kind)});
  ChannelTable channels = makeChannels(problem, plan);
  int32_t firstRank = 0;
  for (size_t s = 0; s < problem.stages.size(); ++s) {
    RoleBuilder builder(problem, int32_t(s), channels);
    plan.roles.push_back(builder.build(firstRank));
    firstRank += problem.stages[s].replicas;
  }
  return plan;
}
