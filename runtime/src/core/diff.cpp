//===- diff.cpp - what differs between two plans ----------------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Layers are matched by name, stages by number.
//
//===----------------------------------------------------------------------===//
#include "takt-rt/core/diff.h"

#include "takt-rt/core/analysis.h"
#include "takt-rt/core/error.h"
#include "takt-rt/core/units.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <set>

namespace takt::rt {

namespace {

struct StageFacts {
  int32_t replicas = 0;
  Bytes bytes = 0;
  std::vector<std::string> calls;
};

struct Facts {
  std::vector<std::string> layers; ///< in model order
  std::map<std::string, int32_t> stageOf;
  std::map<int32_t, StageFacts> stages;
  StepCost cost;
};

void collectRole(const Plan &plan, const Role &role, Facts &facts) {
  for (int32_t stage : role.stages) {
    facts.stages[stage].replicas = role.replicas;
    facts.stages[stage].bytes = role.arenaBytes;
  }
  for (const Procedure &procedure : role.procedures)
    if (procedure.phase == Phase::Forward)
      for (const Kernel &kernel : procedure.kernels)
        if (kernel.layer >= 0)
          facts.stageOf[plan.layers[kernel.layer].name] = procedure.stage;
  for (const Lane &lane : role.lanes)
    if (lane.kind == LaneKind::Compute)
      for (const Instr &instr : lane.instrs)
        facts.stages[role.procedures[instr.target].stage].calls.push_back(
            actionText(plan, role, instr));
}

Facts collect(const Plan &plan) {
  Facts facts;
  for (const LayerInfo &layer : plan.layers)
    facts.layers.push_back(layer.name);
  for (const Role &role : plan.roles)
    collectRole(plan, role, facts);
  Analysis analysis = analyze(plan, simulate(plan));
  facts.cost.step = analysis.makespan;
  Nanos busy = 0, bubble = 0, exposed = 0;
  for (const RankTimes &rank : analysis.ranks) {
    busy += rank.busy;
    bubble += rank.bubble;
    exposed += rank.exposed;
  }
  auto ranks = static_cast<Nanos>(analysis.ranks.size());
  facts.cost.compute = busy / ranks;
  facts.cost.bubble = bubble / ranks;
  facts.cost.exposed = exposed / ranks;
  return facts;
}

int32_t stageOf(const Facts &facts, const std::string &layer) {
  auto known = facts.stageOf.find(layer);
  return known == facts.stageOf.end() ? -1 : known->second;
}

void diffLayers(const Facts &a, const Facts &b, PlanDiff &diff) {
  auto add = [&](const std::string &name) {
    PlanDiff::Layer layer{name, stageOf(a, name), stageOf(b, name)};
    if (layer.before != layer.after)
      diff.layers.push_back(std::move(layer));
  };
  for (const std::string &name : a.layers)
    add(name);
  for (const std::string &name : b.layers)
    if (!a.stageOf.count(name))
      add(name);
}

void diffStages(Facts &a, Facts &b, PlanDiff &diff) {
  std::map<int32_t, StageFacts> all = a.stages;
  all.insert(b.stages.begin(), b.stages.end());
  for (const auto &[stage, unused] : all) {
    const StageFacts &before = a.stages[stage], &after = b.stages[stage];
    if (before.replicas != after.replicas || before.bytes != after.bytes)
      diff.stages.push_back(
          {stage, before.replicas, after.replicas, before.bytes, after.bytes});
    auto [x, y] = std::mismatch(before.calls.begin(), before.calls.end(),
                                after.calls.begin(), after.calls.end());
    bool ends = x == before.calls.end(), endsToo = y == after.calls.end();
    if (ends && endsToo)
      continue;
    diff.orders.push_back({stage,
                           static_cast<int32_t>(x - before.calls.begin()),
                           ends ? "" : *x, endsToo ? "" : *y});
  }
}

std::string change(Nanos nanos) {
  return (nanos < 0 ? "-" : "+") + formatNanos(std::abs(nanos));
}

bool shareALayer(const Plan &before, const Plan &after) {
  std::set<std::string> names;
  for (const LayerInfo &layer : before.layers)
    names.insert(layer.name);
  return std::any_of(
      after.layers.begin(), after.layers.end(),
      [&](const LayerInfo &layer) { return names.count(layer.name) != 0; });
}

std::string stageText(int32_t stage) {
  return stage < 0 ? "nowhere" : fmt::format("stage {}", stage);
}

} // namespace

PlanDiff diffPlans(const Plan &before, const Plan &after) {
  if (!before.layers.empty() && !after.layers.empty() &&
      !shareALayer(before, after))
    throw Error(fmt::format("the plans of models '{}' and '{}' share no layer: "
                            "there is nothing to compare",
                            before.model, after.model));
  Facts a = collect(before), b = collect(after);
  PlanDiff diff;
  diff.samplesBefore = before.training.globalBatch;
  diff.samplesAfter = after.training.globalBatch;
  diff.microBatchesBefore = before.training.microBatches;
  diff.microBatchesAfter = after.training.microBatches;
  diffLayers(a, b, diff);
  diffStages(a, b, diff);
  diff.before = a.cost;
  diff.after = b.cost;
  return diff;
}

std::string printText(const PlanDiff &diff) {
  std::string text;
  for (const PlanDiff::Layer &layer : diff.layers)
    text += fmt::format("layer '{}': {} -> {}\n", layer.name,
                        stageText(layer.before), stageText(layer.after));
  for (const PlanDiff::Stage &stage : diff.stages) {
    const bool replicas = stage.replicasBefore != stage.replicasAfter;
    text += fmt::format("stage {}:", stage.stage);
    if (replicas)
      text += fmt::format(" replicas {} -> {}", stage.replicasBefore,
                          stage.replicasAfter);
    if (stage.bytesBefore != stage.bytesAfter)
      text += fmt::format("{} memory {} -> {}", replicas ? "," : "",
                          formatBytes(stage.bytesBefore),
                          formatBytes(stage.bytesAfter));
    text += '\n';
  }
  for (const PlanDiff::Order &order : diff.orders)
    text += fmt::format("stage {}: from call {} on another order: {} -> {}\n",
                        order.stage, order.position,
                        order.before.empty() ? "(end)" : order.before,
                        order.after.empty() ? "(end)" : order.after);
  if (text.empty())
    text = "the same layers, replicas, memory and order\n";
  if (diff.samplesBefore != diff.samplesAfter)
    text += fmt::format("a step takes {} samples -> {}: its times below are of "
                        "unequal work\n",
                        diff.samplesBefore, diff.samplesAfter);
  if (diff.microBatchesBefore != diff.microBatchesAfter)
    text += fmt::format("micro-batches of a step {} -> {}\n",
                        diff.microBatchesBefore, diff.microBatchesAfter);
  const StepCost &a = diff.before, &b = diff.after;
  text +=
      fmt::format("step {} -> {} ({}): compute {}, bubble {}, exposed "
                  "communication {}\n",
                  formatNanos(a.step), formatNanos(b.step),
                  change(b.step - a.step),
                  change(b.compute - a.compute), change(b.bubble - a.bubble),
                  change(b.exposed - a.exposed));
  return text;
}

std::string toJson(const PlanDiff &diff) {
  using Json = nlohmann::ordered_json;
  Json json;
  json["layers"] = Json::array();
  for (const PlanDiff::Layer &layer : diff.layers)
    json["layers"].push_back({{"name", layer.name},
                              {"before", layer.before},
                              {"after", layer.after}});
  json["stages"] = Json::array();
  for (const PlanDiff::Stage &stage : diff.stages)
    json["stages"].push_back({{"stage", stage.stage},
                              {"replicas_before", stage.replicasBefore},
                              {"replicas_after", stage.replicasAfter},
                              {"bytes_before", stage.bytesBefore},
                              {"bytes_after", stage.bytesAfter}});
  json["orders"] = Json::array();
  for (const PlanDiff::Order &order : diff.orders)
    json["orders"].push_back({{"stage", order.stage},
                              {"position", order.position},
                              {"before", order.before},
                              {"after", order.after}});
  auto cost = [](const StepCost &c, int64_t samples, int32_t microBatches) {
    return Json{{"samples", samples},
                {"micro_batches", microBatches},
                {"step_time_ns", c.step},
                {"compute_ns", c.compute},
                {"bubble_ns", c.bubble},
                {"exposed_ns", c.exposed}};
  };
  json["before"] = cost(diff.before, diff.samplesBefore, diff.microBatchesBefore);
  json["after"] = cost(diff.after, diff.samplesAfter, diff.microBatchesAfter);
  return json.dump(1) + "\n";
}

} // namespace takt::rt
