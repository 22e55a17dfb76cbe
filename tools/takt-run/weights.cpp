//===- weights.cpp - the first weights of a run ---------------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// A folder is a checkpoint or holds several, of which the newest counts.
//
//===----------------------------------------------------------------------===//

#include "weights.h"

#include "takt-rt/checkpoint/folder.h"
#include "takt-rt/data/init.h"
#include "takt-rt/host/trainer.h"

#include <fmt/format.h>

#include <filesystem>

namespace takt::run {

static rt::TensorMap ofCheckpoint(const std::string &folder,
                                  const rt::Plan &plan, const Voice &voice) {
  const rt::FoundCheckpoint found = rt::findCheckpoint(folder);
  for (const auto &[path, why] : found.passedOver)
    voice.warn(fmt::format("checkpoint '{}' is passed over: {}", path, why));
  const rt::Checkpoint &checkpoint = found.checkpoint;
  rt::TensorMap weights;
  for (const rt::Param &param : plan.params) {
    auto stored = checkpoint.tensors.find(param.name);
    if (stored == checkpoint.tensors.end())
      continue; // the check of all says it
    const rt::TensorInfo &info = stored->second.info;
    rt::Tensor &tensor = weights[param.name];
    tensor.shape = info.shape;
    tensor.values.resize(size_t(rt::elementCount(info.shape)));
    rt::readTensor(stored->second.file, info, tensor.values.data());
  }
  rt::checkWeights(plan, weights, checkpoint.path);
  voice.say(fmt::format("weights of '{}', step {}\n", checkpoint.path,
                        checkpoint.manifest.step));
  return weights;
}

rt::TensorMap loadWeights(const RunOptions &options, const rt::Plan &plan,
                          const Voice &voice) {
  std::error_code none;
  if (std::filesystem::is_directory(options.loadWeights, none))
    return ofCheckpoint(options.loadWeights, plan, voice);
  rt::TensorMap weights = rt::readSafetensors(options.loadWeights);
  for (const std::string &name :
       rt::checkWeights(plan, weights, options.loadWeights))
    voice.warn(fmt::format("'{}' holds '{}', which is no parameter of model "
                           "'{}'",
                           options.loadWeights, name, plan.model));
  return weights;
}

} // namespace takt::run
