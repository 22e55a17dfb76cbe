//===- Chain.cpp - graphs known by costs as chains ------------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Profiled layers read one value each, so a graph becomes a chain. What a cut
// of it carries is counted tensor by tensor: one that is read far behind is
// carried through all cuts between.
//
//===----------------------------------------------------------------------===//
#include "Importers.h"

#include "takt/Support/Quantity.h"

#include <fmt/format.h>

#include <algorithm>

using namespace takt;

/// Topological order, smallest index first (Kahn 1962); shorter than the graph
/// if that has a cycle.
static std::vector<int32_t> orderOf(const std::vector<CostNode> &nodes) {
  std::vector<int32_t> missing(nodes.size(), 0);
  for (const CostNode &node : nodes)
    for (const int32_t reader : node.readers)
      ++missing[reader];
  std::set<int32_t> ready;
  for (size_t i = 0; i < nodes.size(); ++i)
    if (missing[i] == 0)
      ready.insert(int32_t(i));
  std::vector<int32_t> order;
  while (!ready.empty()) {
    const int32_t next = *ready.begin();
    ready.erase(ready.begin());
    order.push_back(next);
    for (const int32_t reader : nodes[next].readers)
      if (--missing[reader] == 0)
        ready.insert(reader);
  }
  return order;
}

/// Nodes in the order in which a depth-first walk leaves them.
static std::vector<int32_t>
walkOrder(const std::vector<std::vector<int32_t>> &edges) {
  std::vector<int32_t> order;
  std::vector<bool> seen(edges.size(), false);
  std::vector<std::pair<int32_t, size_t>> stack; // node, next edge
  for (size_t root = 0; root < edges.size(); ++root) {
    if (!seen[root])
      stack.push_back({int32_t(root), 0});
    seen[root] = true;
    while (!stack.empty()) {
      auto &[node, next] = stack.back();
      if (next == edges[node].size()) {
        order.push_back(node);
        stack.pop_back();
        continue;
      }
      const int32_t to = edges[node][next++];
      if (!seen[to])
        stack.push_back({to, 0});
      seen[to] = true;
    }
  }
  return order;
}

/// The first node of each node's strongly connected component (Sharir 1981).
static std::vector<int32_t> componentsOf(const std::vector<CostNode> &nodes) {
  std::vector<std::vector<int32_t>> forth(nodes.size()), back(nodes.size());
  for (size_t i = 0; i < nodes.size(); ++i)
    for (const int32_t reader : nodes[i].readers) {
      forth[i].push_back(reader);
      back[reader].push_back(int32_t(i));
    }
  const std::vector<int32_t> order = walkOrder(forth);
  std::vector<int32_t> first(nodes.size(), -1), stack, members;
  for (auto root = order.rbegin(); root != order.rend(); ++root) {
    if (first[*root] >= 0)
      continue;
    members = stack = {*root};
    first[*root] = *root;
    while (!stack.empty()) {
      const int32_t node = stack.back();
      stack.pop_back();
      for (const int32_t from : back[node])
        if (first[from] < 0) {
          first[from] = *root;
          stack.push_back(from);
          members.push_back(from);
        }
    }
    const int32_t least = *std::min_element(members.begin(), members.end());
    for (const int32_t member : members)
      first[member] = least;
  }
  return first;
}

std::vector<CostNode> takt::joinCycles(const std::vector<CostNode> &nodes) {
  const std::vector<int32_t> first = componentsOf(nodes);
  std::vector<int32_t> index(nodes.size(), -1);
  std::vector<CostNode> joined;
  for (size_t i = 0; i < nodes.size(); ++i)
    if (first[i] == int32_t(i)) {
      index[i] = int32_t(joined.size());
      joined.push_back(nodes[i]);
      CostNode &node = joined.back();
      node.forward = node.backward = node.output = node.parameters = 0;
      node.readers.clear();
    }
  for (size_t i = 0; i < nodes.size(); ++i) {
    CostNode &node = joined[index[first[i]]];
    node.forward += nodes[i].forward;
    node.backward += nodes[i].backward;
    node.parameters += nodes[i].parameters;
    bool leaves = false;
    for (const int32_t reader : nodes[i].readers)
      if (first[reader] != first[i]) {
        node.readers.insert(index[first[reader]]);
        leaves = true;
      }
    if (leaves)
      node.output += nodes[i].output;
  }
  return joined;
}

/// Bytes that cross the end of each layer of the order.
static std::vector<int64_t> crossing(const std::vector<CostNode> &nodes,
                                     const std::vector<int32_t> &order) {
  std::vector<int32_t> place(nodes.size());
  for (size_t i = 0; i < order.size(); ++i)
    place[order[i]] = int32_t(i);
  std::vector<int64_t> change(order.size() + 1, 0), bytes;
  for (size_t i = 0; i < order.size(); ++i) {
    int32_t last = int32_t(i);
    for (const int32_t reader : nodes[order[i]].readers)
      last = std::max(last, place[reader]);
    change[i] += nodes[order[i]].output;
    change[last] -= nodes[order[i]].output;
  }
  int64_t alive = 0;
  for (size_t i = 0; i < order.size(); ++i)
    bytes.push_back(alive += change[i]);
  return bytes;
}

std::optional<std::string> takt::writeChain(const Chain &chain,
                                            Diagnostics &diags) {
  const std::vector<CostNode> &nodes = chain.nodes;
  if (nodes.empty()) {
    diags.error({chain.fileName, 1, 1}, "the file has no layers");
    return std::nullopt;
  }
  const std::vector<int32_t> order = orderOf(nodes);
  if (order.size() != nodes.size()) {
    const std::set<int32_t> ordered(order.begin(), order.end());
    size_t fault = 0;
    while (ordered.count(int32_t(fault)))
      ++fault;
    diags.error(nodes[fault].loc, fmt::format("'{}' lies on a cycle or behind "
                                              "one",
                                              quotable(nodes[fault].name)));
    return std::nullopt;
  }
  const std::vector<int64_t> carried = crossing(nodes, order);
  std::string out;
  for (std::size_t at = 0; at < chain.origin.size();) {
    const std::size_t end = chain.origin.find('\n', at);
    out += "# " + chain.origin.substr(at, end - at) + "\n";
    at = end == std::string::npos ? end : end + 1;
  }
  out += fmt::format("schema_version: 1\n"
                     "model:\n"
                     "  name: {}\n"
                     "  layers:\n",
                     modelName(chain.fileName));
  for (size_t i = 0; i < order.size(); ++i) {
    const CostNode &node = nodes[order[i]];
    if (carried[i] > kMaxBytes) {
      diags.error(node.loc, fmt::format("{} bytes cross the end of '{}'",
                                        carried[i], quotable(node.name)));
      return std::nullopt;
    }
    out += fmt::format(
        "    - profiled: {{name: {}, forward: {}, backward: {}, activation: "
        "{}, parameters: {}, samples: {}}}\n",
        identifier(fmt::format("n{}_{}", order[i], node.name), 60),
        exactTime(node.forward), exactTime(node.backward),
        exactBytes(carried[i]), exactBytes(node.parameters), chain.samples);
  }
  out += fmt::format("training:\n"
                     "  global_batch: {}\n"
                     "  micro_batches: {}\n",
                     chain.samples * chain.microBatches, chain.microBatches);
  return checkedModel(std::move(out), chain.fileName, diags);
}
