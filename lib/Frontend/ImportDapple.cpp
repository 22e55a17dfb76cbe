//===- ImportDapple.cpp - published layer profiles as models --------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Drop what is no layer, order the rest, write YAML.
//
//===----------------------------------------------------------------------===//
#include "takt/Frontend/ImportDapple.h"

#include "DappleProfile.h"
#include "Import/Importers.h"
#include "takt/Frontend/Read.h"
#include "takt/Support/Quantity.h"
#include "takt/Support/TextFile.h"

#include <fmt/format.h>

#include <charconv>
#include <limits>
#include <map>
#include <set>
#include <string_view>
#include <vector>

using namespace takt;

namespace {

bool startsWith(const std::string &text, std::string_view prefix) {
  return text.compare(0, prefix.size(), prefix) == 0;
}

/// Sources "Input..." and sinks "__getitem__..." are no layers.
void dropPseudoNodes(std::map<int64_t, DappleNode> &nodes) {
  std::vector<int64_t> drop;
  for (const auto &[number, node] : nodes)
    if ((node.from.empty() && startsWith(node.description, "Input")) ||
        (node.to.empty() && startsWith(node.description, "__getitem__")))
      drop.push_back(number);
  for (int64_t number : drop) {
    for (int64_t other : nodes[number].from)
      nodes[other].to.erase(number);
    for (int64_t other : nodes[number].to)
      nodes[other].from.erase(number);
    nodes.erase(number);
  }
}

/// Topological order, smallest number first (Kahn 1962); shorter than the graph
/// if that has a cycle.
std::vector<int64_t> orderNodes(const std::map<int64_t, DappleNode> &nodes) {
  std::map<int64_t, std::size_t> missing;
  std::set<int64_t> ready;
  for (const auto &[number, node] : nodes) {
    missing[number] = node.from.size();
    if (node.from.empty())
      ready.insert(number);
  }
  std::vector<int64_t> order;
  while (!ready.empty()) {
    int64_t next = *ready.begin();
    ready.erase(ready.begin());
    order.push_back(next);
    for (int64_t to : nodes.at(next).to)
      if (--missing[to] == 0)
        ready.insert(to);
  }
  return order;
}

std::string baseName(const std::string &path) {
  std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? path : path.substr(slash + 1);
}

/// 32 of "vgg-19-pbs-32.txt" or "x-pbs32".
std::optional<int64_t> samplesInName(const std::string &name) {
  std::size_t at = name.rfind("pbs");
  if (at == std::string::npos)
    return std::nullopt;
  at += 3;
  if (at < name.size() && (name[at] == '-' || name[at] == '_'))
    ++at;
  int64_t value = 0;
  auto [end, code] =
      std::from_chars(name.data() + at, name.data() + name.size(), value);
  return code == std::errc() && value > 0 ? std::optional<int64_t>(value)
                                          : std::nullopt;
}

} // namespace

std::optional<std::string>
takt::importDapple(const std::string &text, const std::string &fileName,
                   const ImportDappleOptions &options, Diagnostics &diags) {
  std::string checked = text;
  if (!checkText(fileName, checked, diags))
    return std::nullopt;
  diags.addSource(fileName, checked);
  std::string base = baseName(fileName);
  std::optional<int64_t> samples =
      options.samples ? options.samples : samplesInName(base);
  if (!samples) {
    diags.error({fileName, 0, 0},
                "the number of samples is not known: the file name has no "
                "'pbs-N'; give --samples");
    return std::nullopt;
  }
  constexpr int64_t kMaxBatch = std::numeric_limits<int32_t>::max();
  if (*samples < 1 || options.microBatches < 1 ||
      options.microBatches > kMaxMicroBatches ||
      *samples > kMaxBatch / options.microBatches) {
    diags.error({fileName, 0, 0},
                fmt::format("{} micro-batches of {} samples are out of range",
                            options.microBatches, *samples));
    return std::nullopt;
  }

  auto parsed = parseDappleProfile(checked, fileName, diags);
  if (!parsed)
    return std::nullopt;
  std::map<int64_t, DappleNode> &nodes = *parsed;
  dropPseudoNodes(nodes);
  std::vector<int64_t> order = orderNodes(nodes);
  if (order.size() != nodes.size()) {
    std::set<int64_t> ordered(order.begin(), order.end());
    for (const auto &[number, node] : nodes)
      if (!ordered.count(number)) {
        diags.error(
            {fileName, node.line, 1},
            fmt::format("'node{}' lies on a cycle or behind one", number));
        return std::nullopt;
      }
  }
  if (order.empty()) {
    diags.error({fileName, 1, 1}, "the profile has no layers");
    return std::nullopt;
  }

  std::string name = identifier(base.substr(0, base.rfind('.')), 64);
  std::string out = fmt::format(
      "# Imported from the layer profile '{}': measured for {} samples;\n"
      "# inputs dropped, the graph put into one chain.\n"
      "schema_version: 1\n"
      "model:\n"
      "  name: {}\n"
      "  layers:\n",
      quotable(base), *samples, name);
  for (int64_t number : order) {
    const DappleNode &node = nodes.at(number);
    out += fmt::format(
        "    - profiled: {{name: node{}_{}, forward: {}, backward: {}, "
        "activation: {}, parameters: {}, samples: {}}}\n",
        number, identifier(node.description, 40), exactTime(node.forward),
        exactTime(node.backward), exactBytes(node.activation),
        exactBytes(node.parameters), *samples);
  }
  out += fmt::format("training:\n"
                     "  global_batch: {}\n"
                     "  micro_batches: {}\n",
                     *samples * options.microBatches, options.microBatches);
  // Single figures are in range by now; sums and tensors may not be.
  Diagnostics faults;
  if (!readModelText(base, out, faults)) {
    diags.error({fileName, 1, 1}, "the profile does not make a model: " +
                                      faults.all().front().message);
    return std::nullopt;
  }
  return out;
}
