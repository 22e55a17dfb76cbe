//===- ReadModel.cpp - the model file -------------------------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Sections in the order they depend on each other: mode, training or inference,
// data, inputs, layers, then the checks of the whole.
//
//===----------------------------------------------------------------------===//
#include "takt/Frontend/Read.h"

#include "LayerReader.h"
#include "takt/Support/TextFile.h"

#include <fmt/format.h>

#include <limits>

using namespace takt;

namespace {

constexpr int64_t kByteValues = 256; ///< what a byte of text can be

bool readShape(Reader &reader, const YamlNode &node,
               std::vector<int64_t> &shape) {
  const auto *items = reader.list(node, "shape", false);
  if (!items)
    return false;
  constexpr std::size_t kMaxRank = 8;
  if (items->size() > kMaxRank) {
    reader.error(node, fmt::format("'shape' has {} dimensions; at most {} are "
                                   "supported",
                                   items->size(), kMaxRank));
    return false;
  }
  for (const YamlNodePtr &item : *items) {
    auto dim =
        reader.integer(*item, "shape", 1, std::numeric_limits<int32_t>::max());
    if (!dim)
      return false;
    shape.push_back(*dim);
  }
  if (!countElements(shape)) {
    reader.error(node, fmt::format("the shape {} has more than 2^40 elements",
                                   shapeText(shape)));
    return false;
  }
  return true;
}

void readInput(Reader &reader, const YamlNode::Entry &entry, ModelSpec &spec,
               LayerReader &layers) {
  rt::InputInfo input;
  input.name = entry.key;
  Section section(reader, *entry.value, keyTable(modelKeys(), "input"),
                  fmt::format("input '{}'", quotable(entry.key)),
                  reader.loc(entry), &spec.places, "model.inputs." + entry.key);
  if (!reader.checkName(reader.loc(entry), entry.key, "the name of an input") ||
      !section.isMap())
    return;
  const YamlNode *shape = section.require("shape");
  if (shape && !readShape(reader, *shape, input.shape))
    input.shape.clear(); // counts as unknown
  std::size_t dtype = 0;
  if (section.word("dtype", dtype, keyTable(modelWords(), "dtype")))
    input.dtype = static_cast<DType>(dtype);
  bool ids = input.dtype == DType::Int32;
  bool given = section.integer("classes", input.classes, 1,
                               std::numeric_limits<int32_t>::max());
  bool text = spec.data == DataKind::Text;
  if (section.find("classes") && !ids)
    reader.error(section.keyLoc("classes"),
                 "'classes' is for int32 inputs only");
  else if (ids && text && !section.find("classes"))
    input.classes = kByteValues;
  else if (ids && text && given && input.classes < kByteValues)
    reader.error(
        *section.find("classes"),
        fmt::format("'classes' is {}, but text data has {} byte values",
                    input.classes, kByteValues));
  else if (ids && !text)
    section.require("classes");
  layers.addInput(input, reader.loc(entry)); // keys are unique: never taken
}

void readData(Reader &reader, const YamlNode &node, SourceLoc place,
              ModelSpec &spec) {
  Section section(reader, node, keyTable(modelKeys(), "data"), "'data'", place,
                  &spec.places, "data");
  if (!section.isMap())
    return;
  std::size_t kind = 0;
  if (section.require("kind") &&
      section.word("kind", kind, keyTable(modelWords(), "data_kind")))
    spec.data = static_cast<DataKind>(kind);
}

/// The mode, and the section that goes with it.
void readMode(Reader &reader, Section &top, ModelSpec &spec) {
  std::size_t mode = 0;
  top.word("mode", mode, keyTable(modelWords(), "mode"));
  spec.training.mode = static_cast<rt::Mode>(mode);
  const bool infers = spec.training.mode == rt::Mode::Inference;
  if (infers && top.find("training")) {
    reader.error(top.keyLoc("training"),
                 "'training' belongs to the mode 'training'; the mode "
                 "'inference' has a section 'inference' with 'global_batch', "
                 "'micro_batches' and 'seed'");
  } else if (infers) {
    if (const YamlNode *section = top.require("inference"))
      readInference(reader, *section, top.keyLoc("inference"), spec);
  } else if (top.find("inference") && !top.find("training")) {
    reader.error(top.keyLoc("inference"),
                 "'inference' belongs to the mode 'inference', and the mode is "
                 "'training': 'mode: inference' changes it");
  } else {
    if (top.find("inference"))
      reader.error(top.keyLoc("inference"),
                   "a file has 'training' or 'inference', not both");
    if (const YamlNode *section = top.require("training"))
      readTraining(reader, *section, top.keyLoc("training"), spec);
  }
}

/// Text gives `tokens` and `targets`, nothing else; without a loss inference
/// has no use for the targets.
void checkTextInputs(Reader &reader, const ModelSpec &spec, SourceLoc place) {
  const rt::InputInfo *tokens = nullptr, *targets = nullptr;
  for (const rt::InputInfo &input : spec.inputs) {
    if (input.name == "tokens")
      tokens = &input;
    if (input.name == "targets")
      targets = &input;
  }
  const bool infers = spec.training.mode == rt::Mode::Inference;
  if (infers && !targets && tokens && spec.inputs.size() == 1 &&
      tokens->dtype == DType::Int32 && tokens->shape.size() == 1)
    return;
  for (const rt::InputInfo *input : {tokens, targets})
    if (!input || spec.inputs.size() != 2 || input->dtype != DType::Int32 ||
        input->shape.size() != 1 || input->shape != tokens->shape) {
      reader.error(place,
                   fmt::format("data of kind 'text' needs exactly the inputs "
                               "'tokens' and 'targets', both int32 of one "
                               "shape [positions]{}",
                               infers ? ", or 'tokens' alone" : ""));
      return;
    }
}

} // namespace

std::optional<ModelSpec> takt::readModelText(const std::string &file,
                                             std::string text,
                                             Diagnostics &diags) {
  std::size_t before = diags.errorCount();
  Reader reader(file, diags);
  ModelSpec spec;
  spec.file = file;
  spec.data = DataKind::Synthetic;
  OpenedFile opened = openYaml(reader, std::move(text),
                               keyTable(modelKeys(), "file"), spec.places);
  if (!opened.top)
    return std::nullopt;
  Section &top = *opened.top;
  const YamlNode *model = top.require("model");
  readMode(reader, top, spec);
  if (const YamlNode *data = top.find("data"))
    readData(reader, *data, top.keyLoc("data"), spec);
  if (!model)
    return std::nullopt;
  spec.loc = top.keyLoc("model");
  Section section(reader, *model, keyTable(modelKeys(), "model"), "'model'",
                  spec.loc, &spec.places, "model");
  if (!section.isMap())
    return std::nullopt;
  if (section.require("name"))
    section.name("name", spec.name);
  LayerReader layers(reader, spec);
  if (const YamlNode *inputs = section.find("inputs"))
    if (const auto *entries = reader.map(*inputs, "inputs"))
      for (const YamlNode::Entry &entry : *entries)
        readInput(reader, entry, spec, layers);
  if (spec.data == DataKind::Text)
    checkTextInputs(reader, spec, spec.places["data.kind"]);
  if (const YamlNode *list = section.require("layers"))
    layers.readLayers(*list);
  if (diags.errorCount() != before)
    return std::nullopt;
  layers.checkWhole();
  if (spec.training.mode == rt::Mode::Inference)
    freezeAll(spec);
  if (diags.errorCount() != before)
    return std::nullopt;
  if (const YamlNode *placement = top.find("placement"))
    readPlacement(reader, *placement, top.keyLoc("placement"), spec);
  if (diags.errorCount() != before)
    return std::nullopt;
  return spec;
}

std::optional<ModelSpec> takt::readModel(const std::string &path,
                                         Diagnostics &diags) {
  std::optional<std::string> text = readTextFile(path, diags);
  if (!text)
    return std::nullopt;
  return readModelText(path == "-" ? "<stdin>" : path, std::move(*text), diags);
}
