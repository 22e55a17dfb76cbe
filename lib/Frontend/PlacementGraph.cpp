//===- PlacementGraph.cpp - published placement inputs as problems --------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// The files are one line of JSON, so a fault is placed by the node or edge that
// has it.
//
//===----------------------------------------------------------------------===//
#include "takt/Frontend/PlacementGraph.h"

#include "takt/Frontend/Reader.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

using namespace takt;
using nlohmann::json;

namespace {

constexpr double kMostIds = 1e9;

class GraphReader {
public:
  GraphReader(const std::string &file, Diagnostics &diags)
      : file(file), diags(diags), errorsBefore(diags.errorCount()) {}

  std::optional<GraphProblem> read(const json &root) {
    if (!root.is_object()) {
      error("the file", "is not an object");
      return std::nullopt;
    }
    readDevices(root);
    for (const json &node : list(root, "nodes"))
      readNode(node, fmt::format("nodes[{}]", problem.nodes.size()));
    if (failed())
      return std::nullopt;
    size_t index = 0;
    for (const json &edge : list(root, "edges"))
      readEdge(edge, fmt::format("edges[{}]", index++));
    if (failed())
      return std::nullopt;
    addTensors();
    addGroups();
    if (auto fault = problem.check())
      error("the graph", *fault);
    if (failed())
      return std::nullopt;
    return std::move(problem);
  }

private:
  bool failed() const { return diags.errorCount() > errorsBefore; }

  void error(const std::string &where, const std::string &what) {
    diags.error({file, 1, 1}, fmt::format("{}: {}", where, what));
  }

  const json &list(const json &root, const char *key) {
    static const json empty = json::array();
    const auto found = root.find(key);
    if (found != root.end() && found->is_array())
      return *found;
    error("the file", fmt::format("has no list '{}'", key));
    return empty;
  }

  /// A number times `scale`, rounded; 0 after an error. Truth values count as 0
  /// and 1, as in some of the published files.
  int64_t number(const json &object, const std::string &where, const char *key,
                 double scale, double most) {
    const auto found = object.is_object() ? object.find(key) : object.end();
    if (found == object.end() || !(found->is_number() || found->is_boolean())) {
      error(where, fmt::format("lacks the number '{}'", key));
      return 0;
    }
    const double value = found->is_boolean() ? double(found->get<bool>())
                                             : found->get<double>() * scale;
    if (!(value >= 0 && value <= most)) {
      error(where, fmt::format("'{}' is out of range", key));
      return 0;
    }
    return std::llround(value);
  }

  void readDevices(const json &root) {
    const std::string where = "the file";
    DeviceKind accelerator{"accelerator", 0, 0, true}, cpu{"cpu", 0, 0, false};
    accelerator.count = number(root, where, "maxFPGAs", 1, 1e5);
    accelerator.memory =
        number(root, where, "maxSizePerFPGA", 1, double(kMaxBytes));
    cpu.count = number(root, where, "maxCPUs", 1, 1e5);
    if (accelerator.memory == 0 && accelerator.count > 0)
      error(where, "'maxSizePerFPGA' is not above 0");
    problem.devices = {accelerator, cpu};
  }

  void readNode(const json &object, const std::string &where) {
    GraphNode node;
    const int64_t id = number(object, where, "id", 1, kMostIds);
    node.name = fmt::format("{}", id);
    const Nanos accelerator =
        number(object, where, "fpgaLatency", 1e6, double(kMaxTime));
    const Nanos cpu =
        number(object, where, "cpuLatency", 1e6, double(kMaxTime));
    const bool supported = number(object, where, "supportedOnFpga", 1, 1) != 0;
    node.time = {supported ? accelerator : kCannotRun, cpu};
    node.memory = number(object, where, "size", 1, double(kMaxBytes));
    const bool back = number(object, where, "isBackwardNode", 1, 1) != 0;
    const int32_t index = int32_t(problem.nodes.size());
    if (object.is_object() && object.contains("colorClass")) {
      const int64_t colour = number(object, where, "colorClass", 1, kMostIds);
      classes[colour].push_back(index);
      colourOf.emplace(index, colour);
    }
    if (!indices.emplace(id, index).second)
      error(where, fmt::format("'id' {} is given twice", id));
    backward.push_back(back);
    problem.nodes.push_back(std::move(node));
  }

  void readEdge(const json &object, const std::string &where) {
    const auto from =
        indices.find(number(object, where, "sourceId", 1, kMostIds));
    const auto to = indices.find(number(object, where, "destId", 1, kMostIds));
    const Nanos cost = number(object, where, "cost", 1e6, double(kMaxTime));
    if (from == indices.end() || to == indices.end())
      error(where, "joins nodes that are not there");
    else if (from->second == to->second)
      error(where, "leads from a node to itself");
    else if (auto [known, isNew] = costs.emplace(from->second, cost);
             !isNew && known->second != cost)
      error(where, "has another 'cost' than the first edge of its source");
    else
      readers[from->second].insert(to->second);
  }

  /// Whether the node's colour class lies in the forward graph, which then
  /// orders it.
  bool hasForward(int32_t v) const {
    const auto found = colourOf.find(v);
    if (found == colourOf.end())
      return !backward[v];
    for (const int32_t other : classes.at(found->second))
      if (!backward[other])
        return true;
    return false;
  }

  /// One tensor a source; what orders is told apart from what costs.
  void addTensors() {
    std::vector<GraphTensor> orders;
    for (const auto &[source, reading] : readers) {
      GraphTensor tensor{source, {}, costs[source], true};
      std::vector<int32_t> forward;
      for (const int32_t reader : reading) {
        tensor.consumers.push_back(reader);
        if (!backward[source] && !backward[reader])
          forward.push_back(reader);
        else if (backward[source] && backward[reader] &&
                 !(hasForward(source) && hasForward(reader)))
          orders.push_back({reader, {source}, 0, true});
      }
      tensor.ordered = forward.size() == reading.size();
      if (!tensor.ordered && !forward.empty())
        orders.push_back({source, forward, 0, true});
      problem.tensors.push_back(std::move(tensor));
    }
    problem.tensors.insert(problem.tensors.end(), orders.begin(), orders.end());
  }

  void addGroups() {
    for (auto &[colour, nodes] : classes)
      if (nodes.size() > 1)
        problem.together.push_back(std::move(nodes));
  }

  const std::string file;
  Diagnostics &diags;
  const size_t errorsBefore;
  GraphProblem problem;
  std::map<int64_t, int32_t> indices;
  std::map<int64_t, std::vector<int32_t>> classes;
  std::map<int32_t, int64_t> colourOf;
  std::vector<bool> backward;
  std::map<int32_t, Nanos> costs;
  std::map<int32_t, std::set<int32_t>> readers;
};

} // namespace

std::optional<GraphProblem>
takt::readPlacementGraph(const std::string &text, const std::string &fileName,
                         Diagnostics &diags) {
  try {
    return GraphReader(fileName, diags).read(json::parse(text));
  } catch (const json::parse_error &fault) {
    const size_t end =
        std::min(fault.byte > 0 ? fault.byte - 1 : 0, text.size());
    const int line =
        1 + int(std::count(text.begin(), text.begin() + end, '\n'));
    const size_t start = text.rfind('\n', end > 0 ? end - 1 : 0);
    const int column =
        int(end - (line == 1 || start == std::string::npos ? 0 : start + 1)) +
        1;
    diags.error({fileName, line, column}, "the text is not JSON here");
    return std::nullopt;
  }
}
