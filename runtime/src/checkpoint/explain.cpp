//===- explain.cpp - what is in a checkpoint ------------------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Ranks of one role load the same and share lines of the text; the JSON has
// each.
//
//===----------------------------------------------------------------------===//

#include "takt-rt/checkpoint/explain.h"

#include "takt-rt/core/error.h"
#include "takt-rt/core/file.h"
#include "takt-rt/core/names.h"
#include "takt-rt/core/units.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <filesystem>

namespace takt::rt {

static std::string baseName(const std::string &path) {
  return std::filesystem::path(path).filename().string();
}

static bool isOptimizerFile(const std::string &file) {
  return file.rfind("optimizer-", 0) == 0;
}

static RankLoads loadsOf(const Checkpoint &checkpoint, const Plan &plan,
                         int32_t rank) {
  const Role &role = plan.roles[plan.roleOf(rank)];
  RankLoads loads;
  loads.rank = rank;
  loads.role = role.name;
  std::map<std::string, std::vector<std::string>> files;
  for (const StateTensor &tensor : stateOfRole(plan, role)) {
    auto stored = checkpoint.tensors.find(tensor.name);
    if (stored == checkpoint.tensors.end())
      continue;
    const TensorInfo &info = stored->second.info;
    loads.bytes += Bytes(info.end - info.begin);
    files[baseName(stored->second.file)].push_back(tensor.name);
  }
  loads.files.assign(files.begin(), files.end());
  return loads;
}

CheckpointReport explainCheckpoint(FoundCheckpoint found, const Plan *plan) {
  CheckpointReport report;
  report.found = std::move(found);
  if (!plan)
    return report;
  const Checkpoint &checkpoint = report.found.checkpoint;
  report.model = plan->model;
  report.fit = compare(checkpoint, *plan, planHashText(planHash(*plan)));
  for (int32_t rank = 0; rank < plan->numRanks(); ++rank)
    report.ranks.push_back(loadsOf(checkpoint, *plan, rank));
  return report;
}

//===----------------------------------------------------------------------===//
// Text
//===----------------------------------------------------------------------===//

static std::string printTensors(const Checkpoint &checkpoint) {
  size_t width = 6;
  for (const auto &[name, tensor] : checkpoint.tensors)
    width = std::max(width, name.size());
  std::string text = fmt::format("\n{:<{}}  {:>11}  {:<16}  file\n", "tensor",
                                 width, "size", "shape");
  for (const auto &[name, tensor] : checkpoint.tensors)
    text += fmt::format("{:<{}}  {:>11}  {:<16}  {}\n", name, width,
                        formatBytes(Bytes(tensor.info.end - tensor.info.begin)),
                        fmt::format("[{}]", fmt::join(tensor.info.shape, ", ")),
                        baseName(tensor.file));
  return text;
}

static std::string printFit(const CheckpointReport &report) {
  const CheckpointFit &fit = *report.fit;
  bool sameName = report.found.checkpoint.manifest.model == report.model;
  std::string text = fmt::format(
      "\n{}\n", !fit.fits()    ? "it does not fit the plan"
                : fit.samePlan ? "it fits: it was written by this plan"
                : sameName     ? "it fits: another plan of the same model"
                               : "it fits: a model of another name");
  for (const std::string &name : fit.missing)
    text += fmt::format("  missing  '{}'\n", name);
  for (const std::string &name : fit.extra)
    text += fmt::format("  extra    '{}'\n", name);
  for (const std::string &shape : fit.shapes)
    text += fmt::format("  differs  {}\n", shape);
  for (const std::string &change : fit.changes)
    text += fmt::format("  changes  {}\n", change);
  for (size_t i = 0; i < report.ranks.size();) {
    size_t end = i + 1;
    while (end < report.ranks.size() &&
           report.ranks[end].role == report.ranks[i].role)
      ++end;
    const RankLoads &loads = report.ranks[i];
    std::vector<int32_t> ranks;
    for (; i < end; ++i)
      ranks.push_back(report.ranks[i].rank);
    text += fmt::format(
        "\n{} {} ({}) load{} {}{}\n", ranks.size() > 1 ? "ranks" : "rank",
        formatRanges(ranks), loads.role, ranks.size() > 1 ? "" : "s",
        formatBytes(loads.bytes), ranks.size() > 1 ? " each" : "");
    for (const auto &[file, tensors] : loads.files)
      text += fmt::format("  {}: {}\n", file, fmt::join(tensors, ", "));
  }
  return text;
}

std::string printText(const CheckpointReport &report) {
  const Checkpoint &checkpoint = report.found.checkpoint;
  const Manifest &manifest = checkpoint.manifest;
  std::string text;
  for (const auto &[path, why] : report.found.passedOver)
    text += fmt::format("passed over '{}': {}\n", path, why);
  std::vector<std::string> roles;
  for (const Manifest::RoleLayout &role : manifest.roles)
    roles.push_back(fmt::format("{}", role.replicas));
  Bytes bytes = 0, weights = 0;
  for (const CheckpointFile &file : manifest.files)
    bytes += Bytes(file.bytes);
  size_t optimizer = 0;
  for (const auto &[name, tensor] : checkpoint.tensors) {
    if (isOptimizerFile(baseName(tensor.file)))
      ++optimizer;
    else
      weights += Bytes(tensor.info.end - tensor.info.begin);
  }
  text += fmt::format(
      "checkpoint  {}\n"
      "model       {}\n"
      "step        {}, {} samples of {}, seed {}\n"
      "training    {}, batches of {} in {} micro-batches\n"
      "written by  {}, plan {}: {} on {} ranks, replicas of stages {}\n"
      "holds       {} weights of {}, {} tensors of the optimizer, {} in {} "
      "files\n",
      checkpoint.path, manifest.model, manifest.step, manifest.samples,
      manifest.data.empty() ? "unnamed data" : manifest.data,
      manifest.training.seed, nameOf(manifest.training.optimizer),
      manifest.training.globalBatch, manifest.training.microBatches,
      manifest.writer, manifest.planHash, manifest.schedule, manifest.ranks,
      fmt::join(roles, ", "), checkpoint.tensors.size() - optimizer,
      formatBytes(weights), optimizer, formatBytes(bytes),
      manifest.files.size());
  text += printTensors(checkpoint);
  if (report.fit)
    text += printFit(report);
  return text;
}

//===----------------------------------------------------------------------===//
// JSON
//===----------------------------------------------------------------------===//

using nlohmann::ordered_json;

static ordered_json fitJson(const CheckpointReport &report) {
  if (!report.fit)
    return nullptr;
  const CheckpointFit &fit = *report.fit;
  ordered_json ranks = ordered_json::array();
  for (const RankLoads &loads : report.ranks) {
    ordered_json files = ordered_json::array();
    for (const auto &[file, tensors] : loads.files)
      files.push_back({{"file", file}, {"tensors", tensors}});
    ranks.push_back({{"rank", loads.rank},
                     {"role", loads.role},
                     {"bytes", loads.bytes},
                     {"loads", files}});
  }
  return {{"fits", fit.fits()},     {"same_plan", fit.samePlan},
          {"missing", fit.missing}, {"extra", fit.extra},
          {"shapes", fit.shapes},   {"changes", fit.changes},
          {"ranks", ranks}};
}

std::string toJson(const CheckpointReport &report) {
  const Checkpoint &checkpoint = report.found.checkpoint;
  const Manifest &manifest = checkpoint.manifest;
  ordered_json object;
  object["checkpoint"] = checkpoint.path;
  object["model"] = manifest.model;
  object["step"] = manifest.step;
  object["samples"] = manifest.samples;
  object["seed"] = manifest.training.seed;
  object["data"] = manifest.data;
  object["optimizer"] = nameOf(manifest.training.optimizer);
  object["writer"] = manifest.writer;
  ordered_json roles = ordered_json::array();
  for (const Manifest::RoleLayout &role : manifest.roles)
    roles.push_back({{"stages", role.stages}, {"replicas", role.replicas}});
  object["plan"] = {{"hash", manifest.planHash},
                    {"schedule", manifest.schedule},
                    {"ranks", manifest.ranks},
                    {"roles", roles}};
  object["files"] = ordered_json::array();
  for (const CheckpointFile &file : manifest.files)
    object["files"].push_back({{"name", file.name}, {"bytes", file.bytes}});
  object["tensors"] = ordered_json::array();
  for (const auto &[name, tensor] : checkpoint.tensors) {
    std::string file = baseName(tensor.file);
    object["tensors"].push_back({{"name", name},
                                 {"dtype", tensor.info.dtype},
                                 {"shape", tensor.info.shape},
                                 {"bytes", tensor.info.end - tensor.info.begin},
                                 {"file", file},
                                 {"is_weight", !isOptimizerFile(file)}});
  }
  object["passed_over"] = ordered_json::array();
  for (const auto &[path, why] : report.found.passedOver)
    object["passed_over"].push_back({{"checkpoint", path}, {"fault", why}});
  object["fit"] = fitJson(report);
  return object.dump(2, ' ', false, ordered_json::error_handler_t::replace) +
         '\n';
}

} // namespace takt::rt
