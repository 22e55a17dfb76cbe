//===- Piper.cpp - inputs of Piper ----------------------------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Of each node's variants the one without tensor parallelism and without
// recomputation. Only the sum of forward and backward is stated; a third of it
// counts as forward, as products take twice the work backward.
//
//===----------------------------------------------------------------------===//
#include "Importers.h"

#include <fmt/format.h>

#include <map>

using namespace takt;

namespace {

constexpr int64_t kMostIds = 1000000000;

/// The first variant at tensor-parallel degree 1 that recomputes nothing.
const YamlNode *plainVariant(JsonReader &json, const YamlNode &node) {
  const YamlNode *degrees = json.require(node, "TMPCs");
  if (!degrees || !json.require(*degrees, "1"))
    return nullptr;
  const auto variants = json.maps(*degrees, "1");
  for (const YamlNode *variant : variants)
    if (const YamlNode *id = JsonReader::find(*variant, "id");
        id && id->scalar == "vanilla")
      return variant;
  if (!json.failed())
    json.places().error(node, "has no variant 'vanilla' at degree 1");
  return nullptr;
}

} // namespace

std::optional<std::string> takt::importPiper(const std::string &text,
                                             const std::string &fileName,
                                             const ImportOptions &options,
                                             Diagnostics &diags) {
  if (options.timeUnit <= 0) {
    diags.error({fileName, 0, 0},
                "the file does not state its unit of time: give --time-unit s "
                "or ms");
    return std::nullopt;
  }
  JsonReader json(fileName, diags);
  const YamlNodePtr root = json.parse(text);
  if (!root)
    return std::nullopt;
  Chain chain;
  chain.fileName = fileName;
  std::map<int64_t, int32_t> indices;
  for (const YamlNode *node : json.maps(*root, "nodes")) {
    const int64_t id = json.whole(*node, "id", 0, kMostIds);
    CostNode layer;
    layer.loc = json.places().loc(*node);
    const YamlNode *name = json.require(*node, "name");
    layer.name = name ? name->scalar : "";
    if (const YamlNode *variant = plainVariant(json, *node)) {
      const int64_t time =
          json.time(*variant, "timePerSample", options.timeUnit);
      layer.forward = time / 3;
      layer.backward = time - layer.forward;
      layer.parameters = json.bytes(*variant, "parameterSize");
    }
    if (!indices.emplace(id, int32_t(chain.nodes.size())).second)
      json.places().error(*node, fmt::format("'id' {} is given twice", id));
    chain.nodes.push_back(std::move(layer));
  }
  for (const YamlNode *edge : json.maps(*root, "edges")) {
    const auto from = indices.find(json.whole(*edge, "sourceId", 0, kMostIds));
    const auto to = indices.find(json.whole(*edge, "destId", 0, kMostIds));
    const int64_t bytes = json.bytes(*edge, "communicationCost");
    if (from == indices.end() || to == indices.end()) {
      json.places().error(*edge, "joins nodes that are not there");
      continue;
    }
    CostNode &source = chain.nodes[from->second];
    source.readers.insert(to->second);
    source.output = std::max(source.output, bytes);
  }
  const int64_t batch = json.whole(*root, "mbsInBatch", 1, kMostIds);
  const int64_t devices = json.whole(*root, "maxDevices", 1, kMostIds);
  const int64_t memory = json.bytes(*root, "maxMemoryPerDevice");
  const double bandwidth = json.number(*root, "bandwidth", 1e24);
  if (json.failed() || !settleBatch(options, batch, fileName, diags,
                                    chain.samples, chain.microBatches))
    return std::nullopt;
  for (CostNode &node : chain.nodes) {
    const bool fits = node.forward <= kMaxTime / chain.samples &&
                      node.backward <= kMaxTime / chain.samples &&
                      node.output <= kMaxBytes / chain.samples;
    if (!fits) {
      diags.error(node.loc, fmt::format("{} samples of this node are out of "
                                        "range",
                                        chain.samples));
      return std::nullopt;
    }
    node.forward *= chain.samples;
    node.backward *= chain.samples;
    node.output *= chain.samples;
  }
  chain.origin = fmt::format(
      "Imported from an input of Piper, written for {} devices of {} bytes\n"
      "with links of {} bytes/s. The graph is one chain; each layer is the\n"
      "variant without tensor parallelism and recomputation, a third of its\n"
      "time forward.",
      devices, memory, bandwidth);
  return writeChain(chain, diags);
}
