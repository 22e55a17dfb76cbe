//===- GraphClash.cpp - constraints that no order keeps -------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
#include "GraphClash.h"

#include <algorithm>

using namespace takt;
using solver::fails;
using solver::holds;

/// Truths a layer and stage that are decided fast.
static constexpr int64_t kMostTruths = 20000;

GraphQuestion::GraphQuestion(
    const Graph &graph, const GraphProblem &relaxed,
    const PartitionProblem &base,
    const std::vector<std::pair<int32_t, int32_t>> &edges,
    const std::vector<ConstraintSpec> &specs)
    : graph(graph), relaxed(relaxed), base(base), edges(edges), specs(specs) {
  const auto layers = int64_t(graph.layers.size());
  stages =
      base.stages > 0 ? base.stages : std::min(base.cluster.devices, layers);
  if (base.stages == 0 && base.maxStages > 0)
    stages = std::min(stages, base.maxStages);
}

bool GraphQuestion::fits() const {
  return stages >= 1 && stages <= base.cluster.devices &&
         stages * int64_t(graph.layers.size()) <= kMostTruths;
}

struct GraphQuestion::Posing {
  explicit Posing(const GraphQuestion &question)
      : q(question), layers(int32_t(q.graph.layers.size())),
        stages(int32_t(q.stages)) {
    never = problem.addTruth("never");
    problem.require({fails(never)});
    for (int32_t k = 0; k < stages; ++k)
      exists.push_back(problem.addTruth("stage-" + std::to_string(k)));
    for (int32_t l = 0; l < layers; ++l)
      addLayer(l);
    for (const auto &[from, to] : q.edges)
      for (int32_t k = 0; k < stages; ++k)
        problem.require({fails(upTo[to][k]), holds(upTo[from][k])});
    for (int32_t k = 0; k < stages; ++k)
      addStage(k);
  }

  void addLayer(int32_t l) {
    const std::string &name = q.graph.layers[l].name;
    upTo.emplace_back();
    in.emplace_back();
    for (int32_t k = 0; k < stages; ++k) {
      upTo[l].push_back(problem.addTruth(name + "<=" + std::to_string(k)));
      in[l].push_back(problem.addTruth(name + "=" + std::to_string(k)));
    }
    for (int32_t k = 0; k < stages; ++k) {
      problem.require({fails(in[l][k]), holds(upTo[l][k])});
      if (k == 0) {
        problem.require({holds(in[l][k]), fails(upTo[l][k])});
        continue;
      }
      problem.require({fails(upTo[l][k - 1]), holds(upTo[l][k])});
      problem.require({fails(in[l][k]), fails(upTo[l][k - 1])});
      problem.require(
          {holds(in[l][k]), fails(upTo[l][k]), holds(upTo[l][k - 1])});
    }
    problem.require({holds(upTo[l][stages - 1])});
  }

  /// No stage is empty, and none follows on one that is not there.
  void addStage(int32_t k) {
    solver::Clause some{fails(exists[k])};
    for (int32_t l = 0; l < layers; ++l) {
      some.push_back(holds(in[l][k]));
      problem.require({holds(exists[k]), fails(in[l][k])});
    }
    problem.require(some);
    if (k > 0)
      problem.require({fails(exists[k]), holds(exists[k - 1])});
    if (q.base.stages > 0)
      problem.require({holds(exists[k])});
    if (q.base.cluster.memory > 0)
      limitMemory(k, q.base.cluster.memory, nullptr);
  }

  /// With `rule`, only where that truth holds.
  void limitMemory(int32_t k, Bytes limit, const solver::Truth *rule) {
    Bytes sum = 0;
    for (const GraphNode &node : q.relaxed.nodes)
      sum += node.memory;
    if (sum <= limit)
      return;
    const Bytes grain = sum / (solver::kLargestWeight / 4) + 1;
    std::vector<solver::Term> terms;
    int64_t weights = 0;
    for (int32_t l = 0; l < layers; ++l) {
      // Down: the question only gets easier.
      const int64_t weight = q.relaxed.nodes[l].memory / grain;
      terms.push_back({holds(in[l][k]), weight});
      weights += weight;
    }
    if (rule)
      terms.push_back({holds(*rule), weights});
    problem.limitWeight(std::move(terms), limit / grain + (rule ? weights : 0));
  }

  std::vector<std::vector<int32_t>> partsOf(const ConstraintSpec &spec) const {
    std::vector<std::vector<int32_t>> parts;
    for (const std::string &name : spec.names)
      parts.push_back(layersNamed(q.graph, name));
    return parts;
  }

  void add(const ConstraintSpec &spec, int32_t rule) {
    const auto parts = partsOf(spec);
    switch (spec.kind) {
    case ConstraintKind::KeepTogether:
      join(parts, rule);
      break;
    case ConstraintKind::KeepApart:
      for (size_t a = 0; a < parts.size(); ++a)
        for (size_t b = 0; b < a; ++b)
          separate(parts[a], parts[b], rule);
      break;
    case ConstraintKind::Pin:
      for (const std::vector<int32_t> &part : parts)
        for (const int32_t l : part)
          problem.require(
              {holds(spec.number < stages ? in[l][spec.number] : never)}, rule);
      break;
    case ConstraintKind::Stages:
      problem.require(
          {holds(spec.number <= stages ? exists[spec.number - 1] : never)},
          rule);
      [[fallthrough]];
    case ConstraintKind::MaxStages:
      if (spec.number < stages)
        problem.require({fails(exists[spec.number])}, rule);
      break;
    case ConstraintKind::NoCutAfter:
    case ConstraintKind::NoCutBefore:
      for (const std::vector<int32_t> &part : parts)
        if (part.size() == 1)
          keepNeighbour(part.front(), spec.kind == ConstraintKind::NoCutAfter,
                        rule);
      break;
    case ConstraintKind::HeadroomBytes:
    case ConstraintKind::HeadroomPpm:
      addHeadroom(spec, rule);
      break;
    }
  }

  void join(const std::vector<std::vector<int32_t>> &parts, int32_t rule) {
    int32_t first = -1;
    for (const std::vector<int32_t> &part : parts)
      for (const int32_t l : part) {
        if (first < 0)
          first = l;
        for (int32_t k = 0; k < stages && l != first; ++k)
          problem.require({fails(in[first][k]), holds(in[l][k])}, rule);
      }
  }

  void separate(const std::vector<int32_t> &a, const std::vector<int32_t> &b,
                int32_t rule) {
    for (const int32_t l : a)
      for (const int32_t m : b)
        for (int32_t k = 0; k < stages; ++k)
          problem.require({fails(in[l][k]), fails(in[m][k])}, rule);
  }

  /// Something in the stage may stand behind the layer, or before it.
  void keepNeighbour(int32_t l, bool after, int32_t rule) {
    std::vector<bool> bound(layers, false);
    bound[l] = true;
    std::vector<std::pair<int32_t, int32_t>> sorted = q.edges;
    std::sort(sorted.begin(), sorted.end());
    // What comes before the layer in any order, or behind it.
    if (after)
      for (auto edge = sorted.rbegin(); edge != sorted.rend(); ++edge)
        bound[edge->first] = bound[edge->first] || bound[edge->second];
    else
      for (const auto &[from, to] : sorted)
        bound[to] = bound[to] || bound[from];
    for (int32_t k = after ? 0 : 1; k < (after ? stages - 1 : stages); ++k) {
      solver::Clause clause{fails(in[l][k])};
      if (after)
        clause.push_back(fails(exists[k + 1]));
      for (int32_t m = 0; m < layers; ++m)
        if (!bound[m])
          clause.push_back(holds(in[m][k]));
      problem.require(clause, rule);
    }
  }

  void addHeadroom(const ConstraintSpec &spec, int32_t rule) {
    if (q.base.cluster.memory == 0)
      return;
    SideConstraint constraint;
    constraint.kind = spec.kind;
    constraint.number = spec.number;
    const auto smaller = constrain(q.base, {constraint});
    if (!smaller)
      return;
    const solver::Truth kept = problem.addTruth("headroom");
    problem.require({holds(kept)}, rule);
    for (int32_t k = 0; k < stages; ++k)
      limitMemory(k, smaller->cluster.memory, &kept);
  }

  const GraphQuestion &q;
  const int32_t layers, stages;
  solver::Problem problem;
  solver::Truth never;
  std::vector<solver::Truth> exists;                ///< of each stage
  std::vector<std::vector<solver::Truth>> upTo, in; ///< by layer and stage
};

solver::Problem GraphQuestion::pose(const std::vector<int32_t> &kept) const {
  Posing posing(*this);
  for (const int32_t c : kept)
    posing.add(specs[c],
               posing.problem.addRule("constraint-" + std::to_string(c)));
  return std::move(posing.problem);
}

std::vector<int32_t>
GraphQuestion::orderOf(const solver::Values &values) const {
  const Posing posing(*this); // truths have the numbers they had
  std::vector<std::pair<int32_t, int32_t>> placed;
  for (int32_t l = 0; l < posing.layers; ++l)
    for (int32_t k = 0; k < posing.stages; ++k)
      if (values.truths[posing.in[l][k].id])
        placed.push_back({k, l});
  std::sort(placed.begin(), placed.end());
  std::vector<int32_t> order;
  for (const auto &[stage, layer] : placed)
    order.push_back(layer);
  return order;
}
