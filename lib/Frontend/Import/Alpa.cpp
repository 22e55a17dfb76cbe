//===- Alpa.cpp - plans of Alpa -------------------------------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// A plan names slices of equal work that make a stage each; a slice is as many
// blocks of the model. The model becomes layers by the sizes in the file, the
// plan's cuts become constraints. How a stage is split over its devices is told
// in a comment: Takt splits samples, not operators.
//
//===----------------------------------------------------------------------===//
#include "Importers.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

using namespace takt;

namespace {

constexpr int64_t kMostBlocks = 10000;
constexpr int64_t kMostWidth = 1 << 24;

struct Sizes {
  int64_t positions = 0, width = 0, blocks = 0, heads = 0, vocab = 0;
};

class AlpaImporter {
public:
  AlpaImporter(const std::string &fileName, Diagnostics &diags)
      : json(fileName, diags) {}

  /// The plan of that name; without a name the only one.
  const YamlNode *choose(const YamlNode &root, const std::string &name) {
    std::vector<std::string> known;
    std::vector<const YamlNode *> plans = json.maps(root, "gpt");
    const YamlNode *chosen = nullptr;
    for (const YamlNode *plan : plans) {
      const YamlNode *model = json.require(*plan, "model");
      if (!model)
        return nullptr;
      known.push_back(quotable(model->scalar));
      if (model->scalar == name || (name.empty() && plans.size() == 1))
        chosen = plan;
    }
    if (!chosen && !json.failed())
      json.places().error(
          root, name.empty()
                    ? fmt::format("the file has several plans: give --plan "
                                  "with one of {}",
                                  fmt::join(known, ", "))
                    : fmt::format("there is no GPT plan '{}'; there are {}",
                                  quotable(name), fmt::join(known, ", ")));
    return chosen;
  }

  Sizes sizes(const YamlNode &root, const std::string &model) {
    Sizes sizes;
    const YamlNode *all = json.require(root, "gpt_specs");
    const YamlNode *spec = all ? json.require(*all, model) : nullptr;
    if (!spec)
      return sizes;
    sizes.positions = json.whole(*spec, "seq", 1, kMostWidth);
    sizes.width = json.whole(*spec, "hidden", 1, kMostWidth);
    sizes.blocks = json.whole(*spec, "layers", 1, kMostBlocks);
    sizes.heads = json.whole(*spec, "heads", 1, kMostWidth);
    sizes.vocab = json.whole(*spec, "vocab", 1, kMostWidth);
    return sizes;
  }

  /// First slice of each stage; stages are runs of slices without a gap.
  std::vector<int64_t> stages(const YamlNode &plan, int64_t slices) {
    std::vector<int64_t> begins;
    const YamlNode *node = json.require(plan, "stage_layer_ids");
    const auto *items =
        node ? json.places().list(*node, "stage_layer_ids", false) : nullptr;
    int64_t next = 0;
    for (size_t i = 0; items && i < items->size(); ++i) {
      const auto *ids = json.places().list(*(*items)[i], "a stage", false);
      if (!ids)
        return begins;
      begins.push_back(next);
      for (const YamlNodePtr &id : *ids) {
        const auto number =
            json.places().integer(*id, "a slice", 0, kMostBlocks);
        if (number && *number != next)
          json.places().error(*id, fmt::format("slice {} stands where {} is "
                                               "due",
                                               *number, next));
        if (json.failed())
          return begins;
        ++next;
      }
    }
    if (!json.failed() && next != slices)
      json.places().error(
          *node, fmt::format("the stages hold {} of {} slices", next, slices));
    return begins;
  }

  /// "1x2" for a submesh of one host and two devices.
  std::vector<std::string> meshes(const YamlNode &plan) {
    std::vector<std::string> texts;
    const YamlNode *node = json.require(plan, "submesh_hosts_by_devices");
    const auto *items =
        node ? json.places().list(*node, "submesh_hosts_by_devices", false)
             : nullptr;
    for (size_t i = 0; items && i < items->size(); ++i) {
      std::vector<int64_t> sides;
      if (const auto *pair =
              json.places().list(*(*items)[i], "a submesh", false))
        for (const YamlNodePtr &side : *pair)
          sides.push_back(json.places()
                              .integer(*side, "a submesh", 1, 1 << 20)
                              .value_or(1));
      texts.push_back(fmt::format("{}", fmt::join(sides, "x")));
    }
    return texts;
  }

  JsonReader json;
};

std::string layersText(const Sizes &s) {
  return fmt::format(
      "  inputs:\n"
      "    tokens: {{shape: [{0}], dtype: int32, classes: {4}}}\n"
      "    targets: {{shape: [{0}], dtype: int32, classes: {4}}}\n"
      "  layers:\n"
      "    - embedding: {{name: tok, input: tokens, vocab: {4}, width: {1}}}\n"
      "    - positional_embedding: {{name: pos}}\n"
      "    - repeat:\n"
      "        name: h\n"
      "        count: {2}\n"
      "        layers:\n"
      "          - residual:\n"
      "              layers:\n"
      "                - layer_norm: {{name: ln1}}\n"
      "                - attention: {{name: attn, heads: {3}}}\n"
      "          - residual:\n"
      "              layers:\n"
      "                - layer_norm: {{name: ln2}}\n"
      "                - linear: {{name: fc, out: {5}}}\n"
      "                - gelu: {{name: act}}\n"
      "                - linear: {{name: proj, out: {1}}}\n"
      "    - layer_norm: {{name: lnf}}\n"
      "    - linear: {{name: head, out: {4}, bias: false, tied: tok}}\n"
      "    - cross_entropy: {{name: loss, target: targets}}\n",
      s.positions, s.width, s.blocks, s.heads, s.vocab, 4 * s.width);
}

} // namespace

std::optional<std::string> takt::importAlpa(const std::string &text,
                                            const std::string &fileName,
                                            const ImportOptions &options,
                                            Diagnostics &diags) {
  AlpaImporter importer(fileName, diags);
  JsonReader &json = importer.json;
  const YamlNodePtr root = json.parse(text);
  if (!root)
    return std::nullopt;
  const YamlNode *plan = importer.choose(*root, options.plan);
  if (!plan)
    return std::nullopt;
  const std::string model = JsonReader::find(*plan, "model")->scalar;
  const Sizes sizes = importer.sizes(*root, model);
  const int64_t slices = json.whole(*plan, "auto_layers", 1, kMostBlocks);
  const int64_t batch = json.whole(*plan, "micro_batches", 1, 65535);
  const std::vector<int64_t> begins = importer.stages(*plan, slices);
  const std::vector<std::string> meshes = importer.meshes(*plan);
  if (!json.failed() && slices > sizes.blocks)
    json.places().error(*plan, fmt::format("{} slices of {} blocks are empty",
                                           slices, sizes.blocks));
  int64_t samples = 0, microBatches = 0;
  if (json.failed() ||
      !settleBatch(options, batch, fileName, diags, samples, microBatches))
    return std::nullopt;
  std::string out = fmt::format(
      "# Imported from Alpa's plan for GPT {}: {} slices of equal work in {}\n"
      "# stages, on submeshes (hosts x devices) {}.\n"
      "schema_version: 1\n"
      "model:\n"
      "  name: {}\n",
      quotable(model), slices, begins.size(), fmt::join(meshes, " "),
      identifier("gpt_" + model, 60));
  out += layersText(sizes);
  out += fmt::format("training:\n"
                     "  global_batch: {}\n"
                     "  micro_batches: {}\n"
                     "  optimizer: {{kind: adamw, learning_rate: 1e-4}}\n"
                     "data: {{kind: synthetic}}\n"
                     "placement:\n"
                     "  constraints:\n"
                     "    - stages: {}\n",
                     samples * microBatches, microBatches, begins.size());
  for (size_t stage = 0; stage < begins.size(); ++stage) {
    const int64_t end = stage + 1 < begins.size() ? begins[stage + 1] : slices;
    const int64_t first = begins[stage] * sizes.blocks / slices;
    const int64_t last = end * sizes.blocks / slices - 1;
    out += fmt::format("    - pin: {{layer: h.{}, stage: {}}}\n", first, stage);
    if (last > first)
      out +=
          fmt::format("    - pin: {{layer: h.{}, stage: {}}}\n", last, stage);
  }
  return checkedModel(std::move(out), fileName, diags);
}
