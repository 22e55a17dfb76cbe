//===- restore.cpp - training goes on from a checkpoint -------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Compares before anything is loaded, so that a refusal names all that differs.
//
//===----------------------------------------------------------------------===//

#include "takt-rt/checkpoint/restore.h"

#include "takt-rt/core/error.h"
#include "takt-rt/core/names.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>

namespace takt::rt {

/// Sentences on what the plan trains with and the checkpoint did not.
static std::vector<std::string> changesOf(const Training &before,
                                          const Training &now) {
  std::vector<std::string> changes;
  auto add = [&](const char *what, auto was, auto is) {
    if (was != is)
      changes.push_back(fmt::format("{} was {} and is {}", what, was, is));
  };
  add("the global batch", before.globalBatch, now.globalBatch);
  add("the number of micro-batches", before.microBatches, now.microBatches);
  add("the optimizer", nameOf(before.optimizer), nameOf(now.optimizer));
  add("the learning rate", before.learningRate, now.learningRate);
  if (now.optimizer == OptimizerKind::Momentum)
    add("momentum", before.momentum, now.momentum);
  if (now.optimizer == OptimizerKind::AdamW) {
    add("beta1", before.beta1, now.beta1);
    add("beta2", before.beta2, now.beta2);
    add("epsilon", before.epsilon, now.epsilon);
  }
  add("weight decay", before.weightDecay, now.weightDecay);
  add("the learning rate's schedule", nameOf(before.schedule),
      nameOf(now.schedule));
  add("the number of warm-up steps", before.warmupSteps, now.warmupSteps);
  add("the number of steps of the decay", before.totalSteps, now.totalSteps);
  add("the least learning rate", before.minLearningRate, now.minLearningRate);
  return changes;
}

static std::string formOf(const LayerForm &layer) {
  if (layer.heads.size() != 2)
    return layer.kind;
  return fmt::format("{} with {} heads of {}", layer.kind, layer.heads[0],
                     layer.heads[1]);
}

/// Sentences on layers that compute something else than those before; their
/// names do not matter, and one sentence is enough.
static std::vector<std::string> otherLayers(const std::vector<LayerForm> &was,
                                            const std::vector<LayerForm> &is) {
  for (size_t i = 0; i < std::min(was.size(), is.size()); ++i)
    if (was[i].kind != is[i].kind || was[i].heads != is[i].heads)
      return {fmt::format("layer {}, '{}', was {} and is {}", i + 1, is[i].name,
                          formOf(was[i]), formOf(is[i]))};
  if (was.size() != is.size())
    return {
        fmt::format("there were {} layers and are {}", was.size(), is.size())};
  return {};
}

/// Sentences on names and on the samples.
static std::vector<std::string> changesOf(const Manifest &before,
                                          const Manifest &now) {
  std::vector<std::string> changes;
  if (before.model != now.model)
    changes.push_back(
        fmt::format("the model was '{}' and is '{}'", before.model, now.model));
  for (const Manifest::Input &input : now.inputs)
    for (const Manifest::Input &other : before.inputs)
      if (input.name == other.name && input.shape != other.shape)
        changes.push_back(fmt::format(
            "a sample of '{}' had the shape [{}] and has [{}]", input.name,
            fmt::join(other.shape, ", "), fmt::join(input.shape, ", ")));
  return changes;
}

CheckpointFit compare(const Checkpoint &checkpoint, const Plan &plan,
                      const std::string &planHash) {
  CheckpointFit fit;
  fit.samePlan = checkpoint.manifest.planHash == planHash;
  const Manifest &before = checkpoint.manifest;
  const Manifest now = manifestOf(plan, planHash);
  fit.changes = changesOf(before, now);
  std::vector<std::string> training = changesOf(before.training, plan.training);
  fit.changes.insert(fit.changes.end(), training.begin(), training.end());
  if (!before.layers.empty())
    fit.shapes = otherLayers(before.layers, now.layers);
  std::map<std::string, std::vector<int64_t>> wanted;
  for (const Role &role : plan.roles)
    for (StateTensor &tensor : stateOfRole(plan, role))
      wanted.emplace(tensor.name, std::move(tensor.shape));
  for (const auto &[name, shape] : wanted) {
    auto stored = checkpoint.tensors.find(name);
    if (stored == checkpoint.tensors.end()) {
      fit.missing.push_back(name);
      continue;
    }
    const TensorInfo &info = stored->second.info;
    if (info.shape != shape)
      fit.shapes.push_back(fmt::format("'{}' has the shape [{}], not [{}]",
                                       name, fmt::join(info.shape, ", "),
                                       fmt::join(shape, ", ")));
    else if (info.dtype != "F32")
      fit.shapes.push_back(
          fmt::format("'{}' has the dtype {}, not F32", name, info.dtype));
  }
  for (const auto &[name, tensor] : checkpoint.tensors)
    if (wanted.count(name) == 0)
      fit.extra.push_back(name);
  return fit;
}

/// "'a', 'b' and 3 more".
static std::string someOf(const std::vector<std::string> &names) {
  constexpr size_t kMost = 5;
  size_t shown = std::min(names.size(), kMost);
  std::string text = fmt::format(
      "'{}'", fmt::join(names.begin(), names.begin() + shown, "', '"));
  if (names.size() > shown)
    text += fmt::format(" and {} more", names.size() - shown);
  return text;
}

void requireFit(const CheckpointFit &fit, const Checkpoint &checkpoint,
                const Plan &plan) {
  if (fit.fits())
    return;
  std::vector<std::string> faults;
  if (!fit.missing.empty())
    faults.push_back("it lacks " + someOf(fit.missing));
  if (!fit.extra.empty())
    faults.push_back("the plan does not know " + someOf(fit.extra));
  faults.insert(faults.end(), fit.shapes.begin(),
                fit.shapes.begin() + std::min<size_t>(fit.shapes.size(), 5));
  throw Error(
      fmt::format("checkpoint '{}' of model '{}' ({}) does not fit model "
                  "'{}' ({}) of the plan: {}",
                  checkpoint.path, checkpoint.manifest.model,
                  nameOf(checkpoint.manifest.training.optimizer), plan.model,
                  nameOf(plan.training.optimizer), fmt::join(faults, "; ")));
}

void loadRank(const Checkpoint &checkpoint, const Plan &plan, int32_t rank,
              const StateMemory &memory) {
  for (const StateTensor &tensor :
       stateOfRole(plan, plan.roles[plan.roleOf(rank)])) {
    const StoredTensor &stored = checkpoint.tensors.at(tensor.name);
    float *first = memory(rank, tensor.places.front());
    readTensor(stored.file, stored.info, first);
    for (size_t i = 1; i < tensor.places.size(); ++i) {
      float *other = memory(rank, tensor.places[i]);
      if (other != first)
        std::memcpy(other, first, size_t(tensor.places[i].bytes));
    }
  }
}

} // namespace takt::rt
