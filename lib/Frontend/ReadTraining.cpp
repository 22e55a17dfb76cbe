//===- ReadTraining.cpp - `training:` or `inference:` of a model file -----===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Batch sizes, optimizer, learning-rate schedule. A setting that the chosen
// optimizer or schedule does not have is an error: it would be silently without
// effect.
//
//===----------------------------------------------------------------------===//
#include "LayerReader.h"

#include "takt/Frontend/Read.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>

using namespace takt;

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// Refuses `key` unless the kind is the one that has it.
void onlyFor(Reader &reader, Section &section, const char *key, bool fits,
             const std::string &owner, const std::string &kind) {
  if (!fits && section.find(key))
    reader.error(
        section.keyLoc(key),
        fmt::format("'{}' is a setting of {}, not of '{}'", key, owner, kind));
}

void readOptimizer(Reader &reader, const YamlNode &node, SourceLoc place,
                   ModelSpec &spec) {
  rt::Training &training = spec.training;
  Section section(reader, node, keyTable(modelKeys(), "optimizer"),
                  "'optimizer'", place, &spec.places, "training.optimizer");
  if (!section.isMap())
    return;
  const KeyTable &words = keyTable(modelWords(), "optimizer_kind");
  std::size_t kind = 0;
  bool haveKind = section.require("kind") && section.word("kind", kind, words);
  if (haveKind) {
    training.optimizer = static_cast<rt::OptimizerKind>(kind);
    bool momentum = training.optimizer == rt::OptimizerKind::Momentum;
    bool adamw = training.optimizer == rt::OptimizerKind::AdamW;
    const std::string &name = words.keys[kind];
    onlyFor(reader, section, "momentum", momentum, "'momentum'", name);
    onlyFor(reader, section, "betas", adamw, "'adamw'", name);
    onlyFor(reader, section, "epsilon", adamw, "'adamw'", name);
  }
  if (section.require("learning_rate"))
    section.real("learning_rate", training.learningRate, {0, 1e6, true});
  section.real("momentum", training.momentum, {0, 1, false, true});
  section.real("epsilon", training.epsilon, {0, 1, true});
  section.real("weight_decay", training.weightDecay, {0, 1e6});
  if (const YamlNode *betas = section.find("betas"))
    if (const auto *items = reader.list(*betas, "betas", true)) {
      if (items->size() != 2)
        reader.error(*betas, fmt::format("'betas' must be 2 numbers, not {}",
                                         items->size()));
      double *out[] = {&training.beta1, &training.beta2};
      for (std::size_t i = 0; i < 2 && items->size() == 2; ++i)
        if (auto beta = reader.real(*(*items)[i], "betas", {0, 1, false, true}))
          *out[i] = *beta;
    }
}

void readSchedule(Reader &reader, const YamlNode &node, SourceLoc place,
                  ModelSpec &spec) {
  rt::Training &training = spec.training;
  Section section(reader, node, keyTable(modelKeys(), "learning_rate_schedule"),
                  "'learning_rate_schedule'", place, &spec.places,
                  "training.learning_rate_schedule");
  if (!section.isMap())
    return;
  const KeyTable &words = keyTable(modelWords(), "schedule_kind");
  std::size_t kind = 0;
  bool haveKind = section.require("kind") && section.word("kind", kind, words);
  constexpr int64_t kMaxSteps = int64_t(1) << 40;
  section.integer("warmup_steps", training.warmupSteps, 0, kMaxSteps);
  bool haveTotal =
      section.integer("total_steps", training.totalSteps, 1, kMaxSteps);
  bool haveMinimum =
      section.real("minimum", training.minLearningRate, {0, kInfinity});
  if (!haveKind)
    return;
  training.schedule = static_cast<rt::LrSchedule>(kind);
  bool decays = training.schedule != rt::LrSchedule::Constant;
  onlyFor(reader, section, "total_steps", decays, "'linear' and 'cosine'",
          words.keys[kind]);
  onlyFor(reader, section, "minimum", decays, "'linear' and 'cosine'",
          words.keys[kind]);
  if (!decays)
    return;
  if (!section.find("total_steps"))
    section.require("total_steps");
  else if (haveTotal && training.totalSteps <= training.warmupSteps)
    reader.error(*section.find("total_steps"),
                 fmt::format("'total_steps' is {}, but must exceed the {} "
                             "'warmup_steps'",
                             training.totalSteps, training.warmupSteps));
  if (haveMinimum && training.minLearningRate > training.learningRate)
    reader.error(*section.find("minimum"),
                 fmt::format("'minimum' is {}, above the learning rate {}",
                             training.minLearningRate, training.learningRate));
}

/// Samples of a step and what draws them: of both modes.
void readBatch(Reader &reader, Section &section, ModelSpec &spec) {
  rt::Training &training = spec.training;
  bool fine = section.require("global_batch") &&
              section.integer("global_batch", training.globalBatch, 1,
                              std::numeric_limits<int32_t>::max());
  int64_t microBatches = 1, seed = 0;
  if (section.find("micro_batches"))
    fine &= section.integer("micro_batches", microBatches, 1, kMaxMicroBatches);
  if (fine && training.globalBatch % microBatches != 0)
    reader.error(*section.find("micro_batches"),
                 fmt::format("the 'global_batch' of {} samples cannot be cut "
                             "into {} equal 'micro_batches'",
                             training.globalBatch, microBatches));
  training.microBatches = static_cast<int32_t>(microBatches);
  section.integer("seed", seed, 0, std::numeric_limits<int64_t>::max());
  training.seed = static_cast<uint64_t>(seed);
}

} // namespace

void takt::readTraining(Reader &reader, const YamlNode &node, SourceLoc place,
                        ModelSpec &spec) {
  Section section(reader, node, keyTable(modelKeys(), "training"), "'training'",
                  place, &spec.places, "training");
  if (!section.isMap())
    return;
  readBatch(reader, section, spec);
  if (const YamlNode *optimizer = section.find("optimizer"))
    readOptimizer(reader, *optimizer, section.keyLoc("optimizer"), spec);
  if (const YamlNode *schedule = section.find("learning_rate_schedule"))
    readSchedule(reader, *schedule, section.keyLoc("learning_rate_schedule"),
                 spec);
}

void takt::readInference(Reader &reader, const YamlNode &node, SourceLoc place,
                         ModelSpec &spec) {
  // A training file becomes one of inference by two words and fewer lines: say
  // which lines.
  bool trains = false;
  if (node.kind == YamlNode::Kind::Map)
    for (const YamlNode::Entry &entry : node.entries)
      if (entry.key == "optimizer" || entry.key == "learning_rate_schedule") {
        reader.error(reader.loc(entry),
                     fmt::format("'{}' is a setting of training, and the mode "
                                 "is 'inference'",
                                 entry.key));
        trains = true;
      }
  if (trains)
    return;
  Section section(reader, node, keyTable(modelKeys(), "inference"),
                  "'inference'", place, &spec.places, "inference");
  if (section.isMap())
    readBatch(reader, section, spec);
}

void takt::freezeAll(ModelSpec &spec) {
  auto freeze = [](LayerSpec &layer) {
    for (ParamSpec &param : layer.params)
      param.trainable = false;
    layer.profiled.trainable = false;
  };
  for (ItemSpec &item : spec.items) {
    if (!item.repeat)
      freeze(item.layer);
    else
      for (LayerSpec &layer : item.repeat->body)
        freeze(layer);
  }
}
