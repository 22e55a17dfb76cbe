//===- PiperInput.cpp - published inputs of Piper as problems -------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
#include "takt/Frontend/PiperInput.h"

#include "Import/Importers.h"

#include <fmt/format.h>

#include <charconv>
#include <map>
#include <set>

using namespace takt;

namespace {

constexpr int64_t kMostIds = 1000000000;
constexpr double kMost = 1e18;

class InputReader {
public:
  InputReader(const std::string &file, Diagnostics &diags)
      : json(file, diags) {}

  std::optional<PiperProblem> read(const std::string &text) {
    const YamlNodePtr root = json.parse(text);
    if (!root)
      return std::nullopt;
    problem.devices = json.whole(*root, "maxDevices", 1, 1 << 20);
    problem.memoryBytes = json.number(*root, "maxMemoryPerDevice", kMost);
    problem.bandwidth = json.number(*root, "bandwidth", 1e24);
    problem.samples = json.whole(*root, "mbsInBatch", 1, 1 << 30);
    const auto nodes = json.maps(*root, "nodes");
    for (const YamlNode *node : nodes)
      readId(*node);
    for (const YamlNode *edge : json.maps(*root, "edges"))
      readEdge(*edge);
    if (json.failed())
      return std::nullopt;
    for (size_t v = 0; v < nodes.size(); ++v)
      readVariants(*nodes[v], int32_t(v));
    if (json.failed())
      return std::nullopt;
    if (auto fault = problem.check())
      json.places().error(*root, *fault);
    if (json.failed())
      return std::nullopt;
    return std::move(problem);
  }

private:
  void readId(const YamlNode &node) {
    const int64_t id = json.whole(node, "id", 0, kMostIds);
    const YamlNode *name = JsonReader::find(node, "name");
    if (!indices.emplace(id, int32_t(problem.nodes.size())).second)
      json.places().error(node, fmt::format("'id' {} is given twice", id));
    problem.nodes.push_back({name ? name->scalar : "", {}});
    ids.push_back(id);
    in.emplace_back();
    out.emplace_back();
  }

  void readEdge(const YamlNode &object) {
    const auto from = indices.find(json.whole(object, "sourceId", 0, kMostIds));
    const auto to = indices.find(json.whole(object, "destId", 0, kMostIds));
    const double bytes = json.number(object, "communicationCost", kMost);
    if (from == indices.end() || to == indices.end()) {
      json.places().error(object, "joins nodes that are not there");
      return;
    }
    if (!joined.insert({from->second, to->second}).second) {
      json.places().error(object, "joins two nodes a second time");
      return;
    }
    out[from->second].push_back(to->second);
    in[to->second].push_back(from->second);
    problem.edges.push_back({from->second, to->second, bytes});
  }

  void readVariants(const YamlNode &node, int32_t index) {
    const YamlNode *degrees = json.require(node, "TMPCs");
    if (!degrees || !json.places().map(*degrees, "TMPCs"))
      return;
    for (const YamlNode::Entry &entry : degrees->entries) {
      int64_t degree = 0;
      const char *end = entry.key.data() + entry.key.size();
      const auto parsed = std::from_chars(entry.key.data(), end, degree);
      if (parsed.ec != std::errc() || parsed.ptr != end || degree < 1 ||
          degree > 1 << 20) {
        json.places().error(
            *entry.value,
            fmt::format("'{}' is no number of devices", entry.key));
        continue;
      }
      for (const YamlNode *object : json.maps(*degrees, entry.key))
        problem.nodes[index].variants[degree].push_back(
            variantOf(*object, index));
    }
  }

  PiperVariant variantOf(const YamlNode &object, int32_t index) {
    PiperVariant variant;
    if (const YamlNode *id = json.require(object, "id"))
      variant.name = id->scalar;
    variant.seconds = json.number(object, "timePerSample", 1e9);
    variant.parameterBytes = json.number(object, "parameterSize", kMost);
    variant.bytesPerSample = json.number(object, "memoryUsageA", kMost);
    variant.fixedBytes = json.number(object, "memoryUsageB", kMost);
    const auto added = [&](const char *key, const auto &others) {
      std::vector<double> bytes;
      const YamlNode *map = json.require(object, key);
      if (map)
        for (const int32_t other : others)
          bytes.push_back(json.number(*map, std::to_string(ids[other]), kMost));
      return bytes;
    };
    variant.inBytes = added("syncTimeFw", in[index]);
    variant.outBytes = added("syncTimeBw", out[index]);
    return variant;
  }

  JsonReader json;
  PiperProblem problem;
  std::vector<int64_t> ids;
  std::map<int64_t, int32_t> indices;
  std::set<std::pair<int32_t, int32_t>> joined;
  std::vector<std::vector<int32_t>> in, out; ///< nodes, in the order of edges
};

} // namespace

std::optional<PiperProblem> takt::readPiperInput(const std::string &text,
                                                 const std::string &fileName,
                                                 Diagnostics &diags) {
  return InputReader(fileName, diags).read(text);
}
