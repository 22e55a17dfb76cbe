//===- Condensed.cpp - the graph with groups contracted -------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Groups by union-find, then strongly connected ones by Tarjan's algorithm, on
// a stack of its own because graphs may be deep.
//
//===----------------------------------------------------------------------===//

#include "Condensed.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <queue>

namespace takt::graphcut {

std::vector<int32_t> orderByKeys(const std::vector<std::vector<int32_t>> &after,
                                 const std::vector<uint64_t> &keys) {
  std::vector<int32_t> waiting(after.size(), 0), order;
  for (const std::vector<int32_t> &next : after)
    for (const int32_t v : next)
      ++waiting[v];
  using Entry = std::pair<uint64_t, int32_t>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<Entry>> ready;
  for (size_t v = 0; v < after.size(); ++v)
    if (waiting[v] == 0)
      ready.push({keys[v], int32_t(v)});
  while (!ready.empty()) {
    const int32_t v = ready.top().second;
    ready.pop();
    order.push_back(v);
    for (const int32_t next : after[v])
      if (--waiting[next] == 0)
        ready.push({keys[next], next});
  }
  return order;
}

namespace {

using Lists = std::vector<std::vector<int32_t>>;

/// Numbers of strongly connected components, by Tarjan's algorithm.
class Components {
public:
  explicit Components(const Lists &after)
      : after(after), of(after.size(), -1), seen(after.size(), -1),
        low(after.size(), 0), next(after.size(), 0) {
    for (size_t v = 0; v < after.size(); ++v)
      if (seen[v] < 0)
        visit(int32_t(v));
  }

  const std::vector<int32_t> &numbers() const { return of; }
  int32_t count() const { return components; }

private:
  void enter(int32_t v) {
    seen[v] = low[v] = time++;
    open.push_back(v);
    path.push_back(v);
  }

  void visit(int32_t root) {
    enter(root);
    while (!path.empty()) {
      const int32_t v = path.back();
      if (next[v] < after[v].size()) {
        const int32_t w = after[v][next[v]++];
        if (seen[w] < 0)
          enter(w);
        else if (of[w] < 0)
          low[v] = std::min(low[v], seen[w]);
        continue;
      }
      path.pop_back();
      if (!path.empty())
        low[path.back()] = std::min(low[path.back()], low[v]);
      if (low[v] == seen[v])
        close(v);
    }
  }

  void close(int32_t v) {
    for (int32_t w = -1; w != v; open.pop_back()) {
      w = open.back();
      of[w] = components;
    }
    ++components;
  }

  const Lists &after;
  std::vector<int32_t> of, seen, low;
  std::vector<size_t> next;
  std::vector<int32_t> open, path;
  int32_t time = 0, components = 0;
};

int32_t rootOf(std::vector<int32_t> &parent, int32_t v) {
  while (parent[v] != v)
    v = parent[v] = parent[parent[v]];
  return v;
}

void sortUnique(std::vector<int32_t> &list) {
  std::sort(list.begin(), list.end());
  list.erase(std::unique(list.begin(), list.end()), list.end());
}

/// Ordered edges between groups.
Lists edgesBetween(const GraphProblem &problem,
                   const std::vector<int32_t> &groupOf, int32_t groups) {
  Lists after(groups);
  for (const GraphTensor &tensor : problem.tensors)
    for (const int32_t reader : tensor.consumers) {
      const int32_t from = groupOf[tensor.producer], to = groupOf[reader];
      if (tensor.ordered && from != to)
        after[from].push_back(to);
    }
  for (std::vector<int32_t> &list : after)
    sortUnique(list);
  return after;
}

/// Joins a group without load (memory counts only if it may run out) to its
/// only neighbour, if it only reads from it or is only read by it: alone or
/// elsewhere it would only add a transfer. Such groups (inputs, unused outputs)
/// would multiply the down-sets.
class Weightless {
public:
  Weightless(const GraphProblem &problem, std::vector<int32_t> &parent)
      : problem(problem), parent(parent), memoryMatters(mayRunOut(problem)) {}

  void join() {
    // An empty block may be what makes the number of blocks right.
    if (problem.exactBlocks)
      return;
    for (bool more = true; more;)
      more = pass();
  }

private:
  /// Whether some device cannot hold the whole graph.
  static bool mayRunOut(const GraphProblem &problem) {
    Bytes whole = 0; // check() keeps it below 2^60
    for (const GraphNode &node : problem.nodes)
      whole += node.memory + node.saved * problem.microBatches;
    for (const GraphTie &tie : problem.ties)
      whole += tie.memory;
    for (const DeviceKind &kind : problem.devices)
      if (kind.memory != 0 && kind.memory < whole)
        return true;
    return false;
  }

  struct Group {
    bool loaded = false, reads = false, isRead = false;
    uint32_t cannotRun = 0;
    int32_t neighbour = -1; ///< -2: several
  };

  void meet(Group &group, int32_t other) const {
    group.neighbour =
        group.neighbour == -1 || group.neighbour == other ? other : -2;
  }

  std::vector<Group> groups() {
    std::vector<Group> found(problem.nodes.size());
    for (size_t v = 0; v < found.size(); ++v) {
      const GraphNode &node = problem.nodes[v];
      Group &group = found[rootOf(parent, int32_t(v))];
      group.loaded |= node.reduce > 0;
      group.loaded |= memoryMatters && (node.memory > 0 || node.saved > 0);
      for (size_t kind = 0; kind < node.time.size(); ++kind) {
        group.loaded |= node.time[kind] > 0;
        if (node.time[kind] == kCannotRun)
          group.cannotRun |= uint32_t(1) << kind;
      }
    }
    for (const GraphTie &tie : problem.ties)
      for (const int32_t v : tie.nodes)
        found[rootOf(parent, v)].loaded = true;
    for (const GraphTensor &tensor : problem.tensors) {
      const int32_t home = rootOf(parent, tensor.producer);
      for (const int32_t reader : tensor.consumers) {
        const int32_t other = rootOf(parent, reader);
        if (other == home)
          continue;
        found[home].isRead = found[other].reads = true;
        meet(found[home], other);
        meet(found[other], home);
      }
    }
    return found;
  }

  bool pass() {
    const std::vector<Group> found = groups();
    bool joined = false;
    for (size_t v = 0; v < found.size(); ++v) {
      const Group &group = found[v];
      if (parent[v] != int32_t(v) || group.loaded || group.neighbour < 0 ||
          (group.reads && group.isRead))
        continue;
      if (group.cannotRun & ~found[group.neighbour].cannotRun)
        continue; // the neighbour would lose a kind of device
      const int32_t into = rootOf(parent, group.neighbour);
      if (into == int32_t(v))
        continue;
      parent[v] = into;
      joined = true;
    }
    return joined;
  }

  const GraphProblem &problem;
  std::vector<int32_t> &parent;
  const bool memoryMatters;
};

/// The group of each node, groups in the order of `Condensed`.
std::vector<int32_t> groupNodes(const GraphProblem &problem) {
  const int32_t size = problem.nodes.size();
  std::vector<int32_t> parent(size);
  std::iota(parent.begin(), parent.end(), 0);
  for (const std::vector<int32_t> &group : problem.together)
    for (const int32_t v : group)
      parent[rootOf(parent, v)] = rootOf(parent, group.front());
  Weightless(problem, parent).join();
  std::vector<int32_t> root(size);
  for (int32_t v = 0; v < size; ++v)
    root[v] = rootOf(parent, v);
  const Components components(edgesBetween(problem, root, size));
  std::vector<int32_t> groupOf(size), number(components.count(), -1);
  // Components in the order of their smallest nodes, then topologically.
  int32_t groups = 0;
  for (int32_t v = 0; v < size; ++v) {
    int32_t &group = number[components.numbers()[root[v]]];
    if (group < 0)
      group = groups++;
    groupOf[v] = group;
  }
  const std::vector<int32_t> order = orderByKeys(
      edgesBetween(problem, groupOf, groups), std::vector<uint64_t>(groups, 0));
  std::vector<int32_t> place(groups);
  for (int32_t i = 0; i < groups; ++i)
    place[order[i]] = i;
  for (int32_t &group : groupOf)
    group = place[group];
  return groupOf;
}

void addNode(GraphNode &sum, const GraphNode &node, bool first) {
  if (first) {
    sum = node;
    return;
  }
  for (size_t kind = 0; kind < node.time.size(); ++kind) {
    Nanos &time = sum.time[kind];
    time = time == kCannotRun || node.time[kind] == kCannotRun
               ? kCannotRun
               : time + node.time[kind];
  }
  sum.reduce += node.reduce;
  sum.memory += node.memory;
  sum.saved += node.saved;
}

void addTensors(const GraphProblem &problem, Condensed &graph) {
  graph.tensorsOf.resize(graph.size);
  for (const GraphTensor &tensor : problem.tensors) {
    CondensedTensor copy{graph.groupOf[tensor.producer], {}, tensor.time};
    for (const int32_t reader : tensor.consumers)
      if (graph.groupOf[reader] != copy.producer)
        copy.consumers.push_back(graph.groupOf[reader]);
    if (copy.consumers.empty() || tensor.time == 0)
      continue;
    sortUnique(copy.consumers);
    const int32_t number = int32_t(graph.tensors.size());
    graph.tensorsOf[copy.producer].push_back(number);
    for (const int32_t v : copy.consumers)
      graph.tensorsOf[v].push_back(number);
    graph.tensors.push_back(std::move(copy));
  }
}

void addTies(const GraphProblem &problem, Condensed &graph) {
  graph.tiesOf.resize(graph.size);
  for (const GraphTie &tie : problem.ties) {
    std::vector<int32_t> touched;
    for (const int32_t v : tie.nodes)
      touched.push_back(graph.groupOf[v]);
    sortUnique(touched);
    if (touched.size() == 1) { // never parted
      graph.nodes[touched[0]].memory += tie.memory;
      graph.nodes[touched[0]].reduce += tie.reduce;
      continue;
    }
    CondensedTie copy{Bits(graph.words, 0), tie.memory, tie.time, tie.reduce};
    for (const int32_t v : touched) {
      put(copy.nodes.data(), v);
      graph.tiesOf[v].push_back(int32_t(graph.ties.size()));
    }
    graph.ties.push_back(std::move(copy));
  }
}

} // namespace

Condensed condense(const GraphProblem &problem) {
  Condensed graph;
  graph.groupOf = groupNodes(problem);
  for (const int32_t group : graph.groupOf)
    graph.size = std::max(graph.size, group + 1);
  graph.words = wordsFor(graph.size);
  graph.members.resize(graph.size);
  graph.nodes.resize(graph.size);
  for (size_t v = 0; v < problem.nodes.size(); ++v) {
    const int32_t group = graph.groupOf[v];
    addNode(graph.nodes[group], problem.nodes[v], graph.members[group].empty());
    graph.members[group].push_back(int32_t(v));
  }
  graph.after = edgesBetween(problem, graph.groupOf, graph.size);
  graph.before.resize(graph.size);
  for (int32_t v = 0; v < graph.size; ++v)
    for (const int32_t next : graph.after[v])
      graph.before[next].push_back(v);
  addTensors(problem, graph);
  addTies(problem, graph);
  return graph;
}

std::vector<uint64_t> keysOf(const Condensed &graph,
                             const std::vector<int32_t> &order) {
  std::vector<uint64_t> keys(graph.size, order.size());
  for (size_t i = 0; i < order.size(); ++i) {
    uint64_t &key = keys[graph.groupOf[order[i]]];
    key = std::min<uint64_t>(key, i);
  }
  return keys;
}

} // namespace takt::graphcut
