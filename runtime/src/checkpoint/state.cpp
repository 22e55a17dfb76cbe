//===- state.cpp - the state that a checkpoint holds ----------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Walks the roles of a plan in order; the first that holds a name writes it.
//
//===----------------------------------------------------------------------===//

#include "takt-rt/checkpoint/state.h"

#include "takt-rt/core/error.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace takt::rt {

static std::vector<std::string> stateNames(OptimizerKind optimizer) {
  switch (optimizer) {
  case OptimizerKind::Sgd:
    return {};
  case OptimizerKind::Momentum:
    return {"momentum"};
  case OptimizerKind::AdamW:
    return {"adam_m", "adam_v"};
  }
  return {};
}

std::vector<StateTensor> stateOfRole(const Plan &plan, const Role &role) {
  std::vector<std::string> kept = stateNames(plan.training.optimizer);
  std::vector<StateTensor> weights, optimizer;
  auto add = [](std::vector<StateTensor> &to, const std::string &name,
                const Param &param, bool isWeight, const BufferRef &place) {
    auto known =
        std::find_if(to.begin(), to.end(), [&](const StateTensor &tensor) {
          return tensor.name == name;
        });
    if (known == to.end())
      known = to.insert(to.end(), {name, param.shape, isWeight, {}});
    known->places.push_back(place);
  };
  for (const RoleParam &use : role.params) {
    const Param &param = plan.params[use.param];
    add(weights, param.name, param, true, use.weight);
    for (size_t i = 0; i < use.state.size() && i < kept.size(); ++i)
      add(optimizer, fmt::format("{}.{}", param.name, kept[i]), param, false,
          use.state[i]);
  }
  weights.insert(weights.end(), optimizer.begin(), optimizer.end());
  return weights;
}

std::vector<CheckpointShard> checkpointShards(const Plan &plan) {
  std::vector<CheckpointShard> shards;
  std::map<std::string, bool> written; // is it a weight
  for (const Role &role : plan.roles) {
    CheckpointShard shard;
    shard.rank = role.firstRank;
    for (StateTensor &tensor : stateOfRole(plan, role)) {
      auto [entry, isNew] = written.insert({tensor.name, tensor.isWeight});
      if (entry->second != tensor.isWeight)
        throw Error(fmt::format("parameter '{}' of model '{}' has the name of "
                                "another one's optimizer state",
                                tensor.name, plan.model));
      if (isNew)
        (tensor.isWeight ? shard.weights : shard.optimizer)
            .push_back(std::move(tensor));
    }
    if (!shard.weights.empty() || !shard.optimizer.empty())
      shards.push_back(std::move(shard));
  }
  auto name = [&](const char *kind,
                  std::vector<StateTensor> CheckpointShard::*of,
                  std::string CheckpointShard::*file) {
    size_t count = 0, next = 0;
    for (const CheckpointShard &shard : shards)
      count += !(shard.*of).empty();
    for (CheckpointShard &shard : shards)
      if (!(shard.*of).empty())
        shard.*file =
            fmt::format("{}-{:05}-of-{:05}.safetensors", kind, ++next, count);
  };
  name("model", &CheckpointShard::weights, &CheckpointShard::weightFile);
  name("optimizer", &CheckpointShard::optimizer,
       &CheckpointShard::optimizerFile);
  return shards;
}

} // namespace takt::rt
