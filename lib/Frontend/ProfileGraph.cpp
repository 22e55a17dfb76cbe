//===- ProfileGraph.cpp - layer profiles as graph problems ----------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// The importer of models makes a chain of a profile; here its edges stay.
//
//===----------------------------------------------------------------------===//
#include "takt/Frontend/ProfileGraph.h"

#include "DappleProfile.h"

#include <fmt/format.h>

#include <cmath>

using namespace takt;

namespace {

using Nodes = std::map<int64_t, DappleNode>;

bool startsWith(const std::string &text, const char *word) {
  return text.rfind(word, 0) == 0;
}

bool isLayer(const DappleNode &node, const ProfileGraphOptions &options) {
  if (node.from.empty() && startsWith(node.description, "Input"))
    return false;
  return options.keepUnusedOutputs || !node.to.empty() ||
         !startsWith(node.description, "__getitem__");
}

Nanos transferTime(Bytes bytes, const ProfileGraphOptions &options) {
  if (options.bytesPerSecond <= 0)
    return 0;
  const double times = options.training ? 2e9 : 1e9;
  return Nanos(std::llround(double(bytes) * times / options.bytesPerSecond));
}

GraphNode nodeOf(int64_t number, const DappleNode &layer,
                 const ProfileGraphOptions &options) {
  GraphNode node;
  node.name = fmt::format("node{}", number);
  node.time = {layer.forward + (options.training ? layer.backward : 0)};
  node.memory = layer.parameters;
  if (options.training) {
    node.reduce = transferTime(layer.parameters, options) / 2;
    node.saved = layer.activation;
  }
  return node;
}

} // namespace

std::optional<GraphProblem>
takt::readProfileGraph(const std::string &text, const std::string &fileName,
                       const ProfileGraphOptions &options, Diagnostics &diags) {
  const std::optional<Nodes> nodes = parseDappleProfile(text, fileName, diags);
  if (!nodes)
    return std::nullopt;
  GraphProblem problem;
  problem.devices = {DeviceKind{"device", 1, 0, true}};
  std::map<int64_t, int32_t> index;
  for (const auto &[number, layer] : *nodes)
    if (isLayer(layer, options)) {
      index.emplace(number, int32_t(problem.nodes.size()));
      problem.nodes.push_back(nodeOf(number, layer, options));
    }
  for (const auto &[number, at] : index) {
    const DappleNode &layer = nodes->at(number);
    GraphTensor tensor;
    tensor.producer = at;
    for (const int64_t reader : layer.to)
      if (auto found = index.find(reader); found != index.end())
        tensor.consumers.push_back(found->second);
    tensor.time = transferTime(layer.activation, options);
    if (!tensor.consumers.empty())
      problem.tensors.push_back(std::move(tensor));
  }
  if (auto fault = problem.check()) {
    diags.error({fileName, 1, 1}, *fault);
    return std::nullopt;
  }
  return problem;
}

std::optional<std::vector<ProfiledNode>>
takt::readProfiledNodes(const std::string &text, const std::string &fileName,
                        Diagnostics &diags) {
  const std::optional<Nodes> nodes = parseDappleProfile(text, fileName, diags);
  if (!nodes)
    return std::nullopt;
  std::map<int, int64_t> numbers; // by line
  for (const auto &[number, layer] : *nodes)
    if (isLayer(layer, {}))
      numbers.emplace(layer.line, number);
  std::map<int64_t, int32_t> index;
  for (const auto &[line, number] : numbers)
    index.emplace(number, int32_t(index.size()));
  std::vector<ProfiledNode> found;
  for (const auto &[line, number] : numbers) {
    const DappleNode &layer = nodes->at(number);
    ProfiledNode node;
    node.name = fmt::format("node{}", number);
    node.forward = double(layer.forward) * 1e-9;
    node.backward = double(layer.backward) * 1e-9;
    node.outputBytes = double(layer.activation);
    node.parameterBytes = double(layer.parameters);
    for (const int64_t reader : layer.to)
      if (auto at = index.find(reader); at != index.end())
        node.readers.push_back(at->second);
    found.push_back(std::move(node));
  }
  return found;
}
