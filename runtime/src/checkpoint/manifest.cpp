//===- manifest.cpp - what a checkpoint says of itself --------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// The checksum covers the values and not their layout, so that a file that was
// only indented anew is still accepted.
//
//===----------------------------------------------------------------------===//

#include "takt-rt/checkpoint/manifest.h"

#include "takt-rt/core/crc32c.h"
#include "takt-rt/core/error.h"
#include "takt-rt/core/names.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <charconv>
#include <limits>
#include <optional>

namespace takt::rt {

namespace {
using nlohmann::ordered_json;

constexpr int64_t kFormat = 1;

std::string hex(uint32_t crc) { return fmt::format("{:08x}", crc); }

std::string compact(const ordered_json &object) {
  return object.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

ordered_json optimizerOf(const Training &t) {
  return {{"kind", nameOf(t.optimizer)},
          {"learning_rate", t.learningRate},
          {"momentum", t.momentum},
          {"beta1", t.beta1},
          {"beta2", t.beta2},
          {"epsilon", t.epsilon},
          {"weight_decay", t.weightDecay},
          {"schedule", nameOf(t.schedule)},
          {"warmup_steps", t.warmupSteps},
          {"total_steps", t.totalSteps},
          {"min_learning_rate", t.minLearningRate}};
}

/// Reads values of an object and names the key that is not as it should be.
class Reader {
public:
  Reader(const ordered_json &object, const std::string &file,
         const std::string &path = "")
      : object(object), file(file), path(path) {
    if (!object.is_object())
      refuse(path.empty() ? "is no JSON object" : "is no object");
  }

  [[noreturn]] void refuse(const std::string &why) const {
    throw Error(path.empty() ? fmt::format("'{}' {}", file, why)
                             : fmt::format("'{}': '{}' {}", file, path, why));
  }
  const ordered_json &at(const char *key) const {
    auto value = object.find(key);
    if (value == object.end())
      refuse(fmt::format("lacks '{}'", key));
    return *value;
  }
  std::string text(const char *key) const {
    const ordered_json &value = at(key);
    if (!value.is_string())
      refuse(fmt::format("has a '{}' that is no string", key));
    return value.get<std::string>();
  }
  int64_t whole(const char *key, int64_t least = 0,
                int64_t most = std::numeric_limits<int64_t>::max()) const {
    const ordered_json &value = at(key);
    if (!value.is_number_unsigned() ||
        value.get<uint64_t>() < uint64_t(least) ||
        value.get<uint64_t>() > uint64_t(most))
      refuse(fmt::format("has a '{}' that is no whole number from {} to {}",
                         key, least, most));
    return value.get<int64_t>();
  }
  double number(const char *key) const {
    const ordered_json &value = at(key);
    if (!value.is_number())
      refuse(fmt::format("has a '{}' that is no number", key));
    return value.get<double>();
  }
  template <typename Enum>
  Enum word(const char *key) const {
    std::optional<Enum> value = valueOf<Enum>(text(key));
    if (!value)
      refuse(fmt::format("has a '{}' that is not known", key));
    return *value;
  }
  uint32_t checksum(const char *key) const {
    std::string digits = text(key);
    uint32_t value = 0;
    auto [end, error] = std::from_chars(
        digits.data(), digits.data() + digits.size(), value, 16);
    if (error != std::errc() || end != digits.data() + digits.size() ||
        hex(value) != digits)
      refuse(fmt::format("has a '{}' that is not 8 hexadecimal digits", key));
    return value;
  }
  bool has(const char *key) const { return object.contains(key); }
  /// Sizes of dimensions.
  std::vector<int64_t> sizes(const char *key) const {
    std::vector<int64_t> found;
    each(key, [&](const ordered_json &size, const std::string &) {
      if (!size.is_number_unsigned() ||
          size.get<uint64_t>() > uint64_t(std::numeric_limits<int64_t>::max()))
        refuse(fmt::format("has a '{}' with what is no size", key));
      found.push_back(size.get<int64_t>());
    });
    return found;
  }
  /// The elements of an array, each with its path.
  template <typename Each>
  void each(const char *key, Each take) const {
    const ordered_json &list = at(key);
    if (!list.is_array())
      refuse(fmt::format("has a '{}' that is no list", key));
    for (size_t i = 0; i < list.size(); ++i)
      take(list[i], fmt::format("{}[{}]", key, i));
  }

private:
  const ordered_json &object;
  const std::string &file;
  std::string path;
};

void readOptimizer(const ordered_json &from, Training &t,
                   const std::string &file) {
  Reader reader(from, file, "optimizer");
  t.optimizer = reader.word<OptimizerKind>("kind");
  t.learningRate = reader.number("learning_rate");
  t.momentum = reader.number("momentum");
  t.beta1 = reader.number("beta1");
  t.beta2 = reader.number("beta2");
  t.epsilon = reader.number("epsilon");
  t.weightDecay = reader.number("weight_decay");
  t.schedule = reader.word<LrSchedule>("schedule");
  t.warmupSteps = reader.whole("warmup_steps");
  t.totalSteps = reader.whole("total_steps");
  t.minLearningRate = reader.number("min_learning_rate");
}

void readPlan(const ordered_json &from, Manifest &manifest,
              const std::string &file) {
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  Reader reader(from, file, "plan");
  manifest.planHash = reader.text("hash");
  manifest.schedule = reader.text("schedule");
  manifest.ranks = int32_t(reader.whole("ranks", 0, kMost));
  reader.each("roles", [&](const ordered_json &item, const std::string &path) {
    Reader role(item, file, "plan." + path);
    Manifest::RoleLayout layout;
    layout.replicas = int32_t(role.whole("replicas", 1, kMost));
    role.each("stages", [&](const ordered_json &stage, const std::string &) {
      if (!stage.is_number_unsigned() ||
          stage.get<uint64_t>() > uint64_t(kMost))
        role.refuse("has a stage that is no number");
      layout.stages.push_back(stage.get<int32_t>());
    });
    manifest.roles.push_back(std::move(layout));
  });
}

void readModel(const Reader &reader, Manifest &manifest,
               const std::string &file) {
  if (reader.has("inputs"))
    reader.each("inputs", [&](const ordered_json &item, const std::string &at) {
      Reader input(item, file, at);
      manifest.inputs.push_back({input.text("name"), input.sizes("shape")});
    });
  if (reader.has("layers"))
    reader.each("layers", [&](const ordered_json &item, const std::string &at) {
      Reader layer(item, file, at);
      manifest.layers.push_back(
          {layer.text("name"), layer.text("kind"), layer.sizes("heads")});
    });
}

void setModel(const Plan &plan, Manifest &manifest) {
  for (const InputInfo &input : plan.inputs)
    manifest.inputs.push_back({input.name, input.shape});
  for (const LayerInfo &layer : plan.layers)
    manifest.layers.push_back({layer.name, layer.kind, {}});
  for (const Role &role : plan.roles)
    for (const Procedure &procedure : role.procedures)
      for (const Kernel &kernel : procedure.kernels)
        if (kernel.kind == KernelKind::AttentionForward &&
            kernel.dims.size() == 4 && kernel.layer >= 0 &&
            size_t(kernel.layer) < manifest.layers.size())
          manifest.layers[size_t(kernel.layer)].heads = {kernel.dims[2],
                                                         kernel.dims[3]};
}

/// A name that stays inside the checkpoint's folder.
bool isPlainName(const std::string &name) {
  return !name.empty() && name != "." && name != ".." &&
         name.find_first_of(std::string("/\0", 2)) == std::string::npos;
}

} // namespace

Manifest manifestOf(const Plan &plan, const std::string &planHash) {
  Manifest manifest;
  manifest.model = plan.model;
  manifest.training = plan.training;
  manifest.planHash = planHash;
  manifest.schedule = plan.schedule;
  manifest.ranks = plan.numRanks();
  for (const Role &role : plan.roles)
    manifest.roles.push_back({role.stages, role.replicas});
  setModel(plan, manifest);
  return manifest;
}

std::string formatManifest(const Manifest &manifest) {
  ordered_json object;
  object["format"] = kFormat;
  object["writer"] = manifest.writer;
  object["model"] = manifest.model;
  object["step"] = manifest.step;
  object["samples"] = manifest.samples;
  object["seed"] = manifest.training.seed;
  object["data"] = manifest.data;
  object["global_batch"] = manifest.training.globalBatch;
  object["micro_batches"] = manifest.training.microBatches;
  object["optimizer"] = optimizerOf(manifest.training);
  ordered_json roles = ordered_json::array();
  for (const Manifest::RoleLayout &role : manifest.roles)
    roles.push_back({{"stages", role.stages}, {"replicas", role.replicas}});
  object["plan"] = {{"hash", manifest.planHash},
                    {"schedule", manifest.schedule},
                    {"ranks", manifest.ranks},
                    {"roles", roles}};
  ordered_json files = ordered_json::array();
  for (const CheckpointFile &file : manifest.files)
    files.push_back({{"name", file.name},
                     {"bytes", file.bytes},
                     {"crc32c", hex(file.crc)}});
  object["files"] = files;
  if (!manifest.inputs.empty()) {
    object["inputs"] = ordered_json::array();
    for (const Manifest::Input &input : manifest.inputs)
      object["inputs"].push_back(
          {{"name", input.name}, {"shape", input.shape}});
  }
  if (!manifest.layers.empty()) {
    object["layers"] = ordered_json::array();
    for (const LayerForm &layer : manifest.layers)
      object["layers"].push_back(
          {{"name", layer.name}, {"kind", layer.kind}, {"heads", layer.heads}});
  }
  object["crc32c"] = hex(crc32c(compact(object)));
  return object.dump(2, ' ', false, ordered_json::error_handler_t::replace) +
         '\n';
}

Manifest parseManifest(const std::string &text, const std::string &name) {
  // Printing it for the checksum recurses.
  constexpr int kMostDepth = 8;
  ordered_json::parser_callback_t callback =
      [&](int depth, ordered_json::parse_event_t, ordered_json &) {
        if (depth > kMostDepth)
          throw Error(fmt::format("'{}' nests too deeply", name));
        return true;
      };
  ordered_json object;
  try {
    object = ordered_json::parse(text, callback);
  } catch (const ordered_json::exception &) {
    throw Error(fmt::format("'{}' is not JSON", name));
  }
  Reader reader(object, name);
  uint32_t told = reader.checksum("crc32c");
  ordered_json covered = object;
  covered.erase("crc32c");
  if (crc32c(compact(covered)) != told)
    reader.refuse("is damaged: its checksum does not match");
  if (int64_t format = reader.whole("format"); format != kFormat)
    reader.refuse(fmt::format("has the format {}, this reader knows {}", format,
                              kFormat));
  Manifest manifest;
  manifest.writer = reader.text("writer");
  manifest.model = reader.text("model");
  manifest.step = reader.whole("step", 0, int64_t(1) << 50);
  manifest.samples = reader.whole("samples", 0, int64_t(1) << 62);
  const ordered_json &seed = reader.at("seed");
  if (!seed.is_number_unsigned())
    reader.refuse("has a 'seed' that is no whole number");
  manifest.training.seed = seed.get<uint64_t>();
  manifest.data = reader.text("data");
  manifest.training.globalBatch = reader.whole("global_batch", 1);
  manifest.training.microBatches = int32_t(
      reader.whole("micro_batches", 1, std::numeric_limits<int32_t>::max()));
  readOptimizer(reader.at("optimizer"), manifest.training, name);
  readPlan(reader.at("plan"), manifest, name);
  reader.each("files", [&](const ordered_json &item, const std::string &path) {
    Reader file(item, name, path);
    CheckpointFile entry{file.text("name"), uint64_t(file.whole("bytes")),
                         file.checksum("crc32c")};
    if (!isPlainName(entry.name))
      file.refuse("has a 'name' that is no file's");
    manifest.files.push_back(std::move(entry));
  });
  readModel(reader, manifest, name);
  return manifest;
}

} // namespace takt::rt
