//===- summary_print.cpp - the summary as text and JSON ---------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Tables are rows of cells whose columns are as wide as their widest cell.
//
//===----------------------------------------------------------------------===//
#include "takt-rt/core/names.h"
#include "takt-rt/core/summary.h"
#include "takt-rt/core/units.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <set>

namespace takt::rt {

//===----------------------------------------------------------------------===//
// Text
//===----------------------------------------------------------------------===//

namespace {

using Row = std::vector<std::string>;

/// Characters, not bytes, of a UTF-8 text.
size_t widthOf(const std::string &text) {
  return std::count_if(text.begin(), text.end(),
                       [](char c) { return (c & 0xc0) != 0x80; });
}

/// Columns two spaces apart; the first two left-aligned, the others right.
std::string table(const std::vector<Row> &rows) {
  std::vector<size_t> widths;
  for (const Row &row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (size_t i = 0; i < row.size(); ++i)
      widths[i] = std::max(widths[i], widthOf(row[i]));
  }
  std::string text;
  for (const Row &row : rows) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) {
      std::string pad(widths[i] - widthOf(row[i]), ' ');
      line += (i == 0 ? "" : "  ") + (i < 2 ? row[i] + pad : pad + row[i]);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

std::string layerRange(const std::vector<std::string> &layers) {
  if (layers.empty())
    return "-";
  if (layers.size() == 1)
    return layers.front();
  return fmt::format("{}..{} ({})", layers.front(), layers.back(),
                     layers.size());
}

std::string memoryOf(const StageSummary &stage) {
  std::string text = formatBytes(stage.peakBytes);
  if (stage.capacity > 0)
    text += fmt::format(" of {}", formatBytes(stage.capacity));
  return text;
}

std::string stageTable(const Summary &summary) {
  std::vector<Row> rows = {{"stage", "layers", "replicas", "devices", "forward",
                            "backward", "memory", "in flight"}};
  for (const StageSummary &stage : summary.stages)
    rows.push_back({formatRanges(stage.stages), layerRange(stage.layers),
                    std::to_string(stage.replicas), formatRanges(stage.devices),
                    formatNanos(stage.forward), formatNanos(stage.backward),
                    memoryOf(stage), std::to_string(stage.inFlight)});
  // Of one kind they all are, as a rule.
  std::set<std::string> kinds;
  for (const NodeResources &nodes : summary.resources)
    kinds.insert(nodes.kind);
  if (kinds.size() < 2)
    return table(rows);
  rows[0].insert(rows[0].begin() + 4, "kind");
  for (size_t s = 0; s < summary.stages.size(); ++s)
    rows[s + 1].insert(rows[s + 1].begin() + 4, summary.stages[s].kind);
  return table(rows);
}

/// Only the kinds of pools that some stage has.
std::string memoryTable(const Summary &summary) {
  std::set<PoolKind> kinds;
  for (const StageSummary &stage : summary.stages)
    for (auto [kind, bytes] : stage.memory)
      kinds.insert(kind);
  if (kinds.empty())
    return "";
  std::vector<Row> rows = {{"stage", ""}};
  for (PoolKind kind : kinds) {
    std::string name(nameOf(kind));
    std::replace(name.begin(), name.end(), '_', ' ');
    rows[0].push_back(name);
  }
  for (const StageSummary &stage : summary.stages) {
    rows.push_back({formatRanges(stage.stages), ""});
    for (PoolKind kind : kinds) {
      auto entry = stage.memory.find(kind);
      rows.back().push_back(
          entry == stage.memory.end() ? "-" : formatBytes(entry->second));
    }
  }
  return "\nmemory of a rank by use\n" + table(rows);
}

std::string count(int64_t n, const char *what) {
  return fmt::format("{} {}{}", n, what, n == 1 ? "" : "s");
}

std::string rateText(double bytesPerSecond) {
  return fmt::format("{:.4g} GB/s", bytesPerSecond / 1e9);
}

/// What the devices of a group of nodes share; empty: nothing.
std::string sharedText(const NodeResources &nodes) {
  std::string text;
  auto add = [&](bool isShared, const std::string &what) {
    if (isShared)
      text += (text.empty() ? "" : ", ") + what;
  };
  add(nodes.cores > 0, count(nodes.cores, "core"));
  add(nodes.copyEngines > 0, count(nodes.copyEngines, "copy engine"));
  add(nodes.transferShare > 0,
      formatShare(nodes.transferShare) + " of the SMs a transfer");
  add(nodes.memoryBytesPerSecond > 0,
      "memory " + rateText(nodes.memoryBytesPerSecond));
  add(nodes.portBytesPerSecond > 0,
      "port " + rateText(nodes.portBytesPerSecond));
  add(nodes.networkBytesPerSecond > 0,
      (nodes.networkPorts > 0
           ? count(nodes.networkPorts, "network port") + " of "
           : "network port ") +
          rateText(nodes.networkBytesPerSecond));
  return text;
}

/// Samples of a second of continuous flow; nothing without a period.
std::optional<double> samplesPerSecond(const Summary &summary) {
  if (summary.mode != Mode::Inference || summary.period <= 0)
    return std::nullopt;
  return static_cast<double>(summary.globalBatch) /
         std::max(1, summary.microBatches) * 1e9 /
         static_cast<double>(summary.period);
}

std::string machineText(const Summary &summary) {
  std::string text;
  for (const NodeResources &nodes : summary.resources)
    if (std::string shared = sharedText(nodes); !shared.empty())
      text +=
          fmt::format("shared    {} of {}: {}\n", count(nodes.nodes, "node"),
                      count(nodes.devices, "device"), shared);
  return text;
}

} // namespace

static double pricePerStep(const Summary &summary) {
  return *summary.pricePerHour * double(summary.step) / 3600e9;
}

std::string printText(const Summary &summary) {
  std::string text =
      fmt::format("model     {} ({}) on {}\n", summary.model,
                  count(summary.parameters, "parameter"), summary.cluster);
  text += fmt::format(
      "schedule  {}: {} of {} on {}\n", summary.schedule,
      summary.microBatches == 1
          ? std::string("1 micro-batch")
          : fmt::format("{} micro-batches", summary.microBatches),
      count(summary.globalBatch / std::max(1, summary.microBatches), "sample"),
      count(summary.ranks, "rank"));
  text += fmt::format("step      {}", summary.step > 0
                                          ? formatNanos(summary.step)
                                          : std::string("not predicted"));
  if (summary.bubble)
    text += fmt::format(", bubble {}", formatShare(*summary.bubble));
  text += "\n";
  if (std::optional<double> rate = samplesPerSecond(summary))
    text +=
        fmt::format("period    {} a micro-batch, {} samples/s, latency {}\n",
                    formatNanos(summary.period),
                    *rate < 1000 ? fmt::format("{:.4g}", *rate)
                                 : fmt::format("{:.0f}", *rate),
                    formatNanos(summary.latency));
  if (summary.gap)
    text += fmt::format("assigned  {}, bound {}, gap {}\n",
                        formatNanos(summary.objective),
                        formatNanos(summary.bound), formatShare(*summary.gap));
  if (summary.pricePerHour)
    text += fmt::format("price     {:.6g} a step, {:.6g} an hour\n",
                        pricePerStep(summary), *summary.pricePerHour);
  if (!summary.proof.empty())
    text += fmt::format("proof     {}\n", summary.proof);
  text += machineText(summary);
  text += fmt::format("costs     {}\n\n", summary.costSource);
  return text + stageTable(summary) + memoryTable(summary);
}

//===----------------------------------------------------------------------===//
// JSON
//===----------------------------------------------------------------------===//

using Json = nlohmann::ordered_json;

static Json stageJson(const StageSummary &stage) {
  Json memory = Json::object();
  for (auto [kind, bytes] : stage.memory)
    memory[std::string(nameOf(kind))] = bytes;
  return {{"role", stage.role},
          {"stages", stage.stages},
          {"layers", stage.layers},
          {"replicas", stage.replicas},
          {"first_rank", stage.firstRank},
          {"devices", stage.devices},
          {"forward_ns", stage.forward},
          {"backward_ns", stage.backward},
          {"update_ns", stage.update},
          {"peak_bytes", std::vector<Bytes>(stage.replicas, stage.peakBytes)},
          {"liveness_bytes", stage.livenessBytes},
          {"capacity_bytes", stage.capacity},
          {"memory_bytes", memory},
          {"in_flight", stage.inFlight},
          {"kind", stage.kind}};
}

static Json resourcesJson(const NodeResources &nodes) {
  return {{"nodes", nodes.nodes},
          {"devices", nodes.devices},
          {"cores", nodes.cores},
          {"copy_engines", nodes.copyEngines},
          {"transfer_share", nodes.transferShare},
          {"memory_bytes_per_s", nodes.memoryBytesPerSecond},
          {"port_bytes_per_s", nodes.portBytesPerSecond},
          {"network_bytes_per_s", nodes.networkBytesPerSecond},
          {"network_ports", nodes.networkPorts},
          {"kind", nodes.kind},
          {"price_per_hour", double(nodes.price) / 1e6}};
}

std::string toJson(const Summary &summary) {
  Json stages = Json::array(), peaks = Json::array();
  Json resources = Json::array();
  for (const NodeResources &nodes : summary.resources)
    resources.push_back(resourcesJson(nodes));
  for (const StageSummary &stage : summary.stages) {
    stages.push_back(stageJson(stage));
    peaks.push_back(stage.peakBytes);
  }
  auto share = [](const std::optional<double> &value) {
    return value ? Json(*value) : Json();
  };
  Json root = {{"model", summary.model},
               {"cluster", summary.cluster},
               {"schedule", summary.schedule},
               {"compiler", summary.compiler},
               {"input_hash", summary.inputHash},
               {"source_of_costs", summary.costSource},
               {"ranks", summary.ranks},
               {"micro_batches", summary.microBatches},
               {"micro_batch_samples",
                summary.globalBatch / std::max(1, summary.microBatches)},
               {"global_batch", summary.globalBatch},
               {"parameters", summary.parameters},
               {"step_time_ns", summary.step},
               {"bound_ns", summary.bound},
               {"objective_ns", summary.objective},
               {"gap", share(summary.gap)},
               {"bubble", share(summary.bubble)},
               {"peak_bytes", peaks},
               {"stages", stages},
               {"proof", summary.proof.empty() ? Json() : Json(summary.proof)},
               {"resources", resources},
               {"price_per_hour", share(summary.pricePerHour)},
               {"price_per_step",
                summary.pricePerHour ? Json(pricePerStep(summary)) : Json()},
               {"mode", nameOf(summary.mode)},
               {"period_ns", Json()},
               {"latency_ns", Json()},
               {"samples_per_s", share(samplesPerSecond(summary))}};
  if (summary.mode == Mode::Inference) {
    root["period_ns"] = summary.period;
    root["latency_ns"] = summary.latency;
  }
  return root.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

} // namespace takt::rt
