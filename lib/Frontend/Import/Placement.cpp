//===- Placement.cpp - dnn-partitioning inputs ----------------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Operators with times on an accelerator. Forward and backward of one colour
// class are one layer, and so are classes that read each other. The files state
// how long a tensor takes to move, not how large it is: it becomes as large as
// moves in that time at 1 GB/s.
//
//===----------------------------------------------------------------------===//
#include "Importers.h"

#include <fmt/format.h>

#include <map>

using namespace takt;

namespace {

constexpr int64_t kMostIds = 1000000000;
constexpr double kMillisecond = 1e6;
constexpr double kBytesInMillisecond = 1e6; // at 1 GB/s

struct Operator {
  int32_t layer = -1;
  bool backward = false;
  int64_t output = 0;
  std::set<int64_t> readers;
};

class PlacementImporter {
public:
  PlacementImporter(const std::string &fileName, Diagnostics &diags)
      : json(fileName, diags) {
    chain.fileName = fileName;
  }

  bool read(const YamlNode &root) {
    const auto nodes = json.maps(root, "nodes");
    for (const YamlNode *node : nodes)
      addOperator(*node);
    for (const YamlNode *edge : json.maps(root, "edges"))
      addEdge(*edge);
    if (!json.failed())
      joinLayers();
    return !json.failed();
  }

  JsonReader json;
  Chain chain;
  bool trains = false;

private:
  void addOperator(const YamlNode &node) {
    const int64_t id = json.whole(node, "id", 0, kMostIds);
    Operator op;
    op.backward = json.number(node, "isBackwardNode", 1) != 0;
    trains |= op.backward;
    // A class of its own where none is stated.
    const bool hasClass = JsonReader::find(node, "colorClass");
    const int64_t colour =
        hasClass ? json.whole(node, "colorClass", 0, kMostIds) : -1 - id;
    const bool runs = json.number(node, "supportedOnFpga", 1) != 0;
    const char *latency = runs ? "fpgaLatency" : "cpuLatency";
    const int64_t time = json.time(node, latency, kMillisecond);
    const int64_t size = json.bytes(node, "size");
    auto [known, isNew] = layers.emplace(colour, int32_t(chain.nodes.size()));
    if (isNew) {
      chain.nodes.emplace_back();
      chain.nodes.back().loc = json.places().loc(node);
    }
    CostNode &layer = chain.nodes[known->second];
    // Of a class the first forward operator gives the name.
    if (isNew || (!op.backward && !named.count(known->second)))
      layer.name = fmt::format("node{}", id);
    if (!op.backward)
      named.insert(known->second);
    (op.backward ? layer.backward : layer.forward) += time;
    layer.parameters += size;
    if (layer.forward > kMaxTime || layer.backward > kMaxTime ||
        layer.parameters > kMaxBytes)
      json.places().error(node, "the sums of this node's class are too large");
    op.layer = known->second;
    if (!operators.emplace(id, op).second)
      json.places().error(node, fmt::format("'id' {} is given twice", id));
  }

  void addEdge(const YamlNode &edge) {
    const int64_t from = json.whole(edge, "sourceId", 0, kMostIds);
    const int64_t to = json.whole(edge, "destId", 0, kMostIds);
    const int64_t bytes = json.bytes(edge, "cost", kBytesInMillisecond);
    for (const int64_t id : {from, to})
      if (!operators.count(id)) {
        json.places().error(edge, fmt::format("there is no node {}", id));
        return;
      }
    Operator &op = operators[from];
    op.output = std::max(op.output, bytes);
    op.readers.insert(to);
  }

  /// Edges of the forward pass order the layers. Of classes that are backward
  /// only, their own edges do, turned round.
  void joinLayers() {
    for (const auto &[id, op] : operators) {
      CostNode &layer = chain.nodes[op.layer];
      bool crosses = false;
      for (const int64_t reader : op.readers) {
        const Operator &other = operators[reader];
        if (other.layer == op.layer)
          continue;
        if (!op.backward && !other.backward) {
          layer.readers.insert(other.layer);
          crosses = true;
        } else if (op.backward && other.backward &&
                   !(named.count(op.layer) && named.count(other.layer))) {
          chain.nodes[other.layer].readers.insert(op.layer);
        }
      }
      if (crosses)
        layer.output += op.output;
      if (layer.output > kMaxBytes) {
        json.places().error(layer.loc, "the outputs of this node's class are "
                                       "too large");
        return;
      }
    }
  }

  std::map<int64_t, int32_t> layers; ///< by colour class
  std::map<int64_t, Operator> operators;
  std::set<int32_t> named; ///< layers with a forward operator
};

} // namespace

std::optional<std::string> takt::importPlacement(const std::string &text,
                                                 const std::string &fileName,
                                                 const ImportOptions &options,
                                                 Diagnostics &diags) {
  PlacementImporter importer(fileName, diags);
  Chain &chain = importer.chain;
  const YamlNodePtr root = importer.json.parse(text);
  if (!root ||
      !settleBatch(options, 8, fileName, diags, chain.samples,
                   chain.microBatches) ||
      !importer.read(*root))
    return std::nullopt;
  chain.nodes = joinCycles(chain.nodes);
  const int64_t devices = importer.json.whole(*root, "maxFPGAs", 0, kMostIds);
  const int64_t memory = importer.json.bytes(*root, "maxSizePerFPGA");
  if (importer.json.failed())
    return std::nullopt;
  chain.origin = fmt::format(
      "Imported from a placement input of dnn-partitioning ({}), written for "
      "{}\n"
      "accelerators of {} bytes. Layers are its colour classes as one chain;\n"
      "times are those of the accelerator, tensors as large as moves in the\n"
      "stated time at 1 GB/s, parameters the stated sizes.",
      importer.trains ? "training" : "inference", devices, memory);
  return writeChain(chain, diags);
}
