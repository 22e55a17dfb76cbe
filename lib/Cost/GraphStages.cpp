//===- GraphStages.cpp - stages of a model that is no chain ---------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Orders are tried from the most promising; each is cut exactly.
//
//===----------------------------------------------------------------------===//
#include "takt/Cost/GraphStages.h"

#include "GraphClash.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace takt {

StagedGraph stagedGraph(const Graph &graph, const CostTable &costs,
                        std::vector<int32_t> order) {
  StagedGraph staged{{}, inOrder(graph, order), costs};
  for (size_t i = 0; i < order.size(); ++i)
    staged.costs.layers[i] = costs.layers[order[i]];
  staged.order = std::move(order);
  return staged;
}

namespace {

/// Replica options that a stage may have, as indices: every other stage needs a
/// device, too.
std::vector<size_t> allowedOptions(const PartitionProblem &problem) {
  const bool placed = !problem.rankOfStage.empty();
  const int64_t others =
      placed ? numRanks(problem) - 1 : std::max<int64_t>(problem.stages - 1, 0);
  std::vector<size_t> allowed;
  for (size_t o = 0; o < problem.replicaOptions.size(); ++o)
    if (problem.replicas
            ? problem.replicaOptions[o] == *problem.replicas
            : problem.replicaOptions[o] <= problem.cluster.devices - others)
      allowed.push_back(o);
  if (allowed.empty()) // more stages than devices: solving says so
    allowed.push_back(0);
  return allowed;
}

Nanos timeOf(const LayerTimes &times, size_t option) {
  return times.forward[option] + times.inputGrad[option] +
         times.weightGrad[option];
}

/// Nanoseconds of bytes on the fastest link, without latency.
Nanos wireTime(const PartitionCluster &cluster, double bytes) {
  double rate = 0;
  for (const rt::Link *link : {&cluster.intraNode, &cluster.network}) {
    const bool used = link == &cluster.intraNode
                          ? cluster.devicesPerNode > 1
                          : cluster.devices > cluster.devicesPerNode;
    if (used && link->bytesPerSecond <= 0)
      return 0;
    if (used)
      rate = std::max(rate, link->bytesPerSecond);
  }
  return rate > 0 ? Nanos(std::floor(bytes * 1e9 / rate)) : 0;
}

} // namespace

GraphProblem graphRelaxation(const Graph &graph, const rt::Training &training,
                             const CostTable &costs,
                             const PartitionProblem &problem) {
  GraphProblem relaxed;
  const std::vector<bool> hasGrad = valuesNeedingGrad(graph);
  const std::vector<size_t> allowed = allowedOptions(problem);
  std::vector<int32_t> uses(graph.params.size(), 0);
  for (const Layer &layer : graph.layers)
    for (int32_t param : layer.params)
      ++uses[param];
  for (size_t l = 0; l < graph.layers.size(); ++l) {
    GraphNode node{graph.layers[l].name, {}};
    // On r replicas a block takes the r-th part of its load.
    Nanos load = INT64_MAX;
    for (size_t o : allowed)
      load = std::min(load,
                      problem.replicaOptions[o] * timeOf(costs.layers[l], o));
    node.time = {load};
    const SegmentCost &own = problem.segments[l];
    node.memory = own.weights + own.gradients + own.optimizerState;
    for (int32_t param : graph.layers[l].params)
      if (uses[param] > 1) // a stage may hold it for another layer
        node.memory = 0;
    relaxed.nodes.push_back(std::move(node));
  }
  std::vector<std::vector<int32_t>> readers(graph.values.size());
  for (size_t l = 0; l < graph.layers.size(); ++l)
    for (int32_t id : graph.layers[l].inputs)
      if (readers[id].empty() || readers[id].back() != int32_t(l))
        readers[id].push_back(int32_t(l));
  for (size_t id = 0; id < graph.values.size(); ++id) {
    const Value &value = graph.values[id];
    if (value.producer < 0 || readers[id].empty())
      continue;
    const double bytes =
        double(value.type.bytes()) * double(training.microBatchSize());
    relaxed.tensors.push_back(
        {value.producer, readers[id],
         wireTime(problem.cluster, (hasGrad[id] ? 2 : 1) * bytes)});
  }
  for (auto [before, after] : fixedOrder(graph))
    relaxed.tensors.push_back({before, {after}, 0});
  relaxed.devices = {
      {"device", problem.cluster.devices, problem.cluster.memory, true}};
  relaxed.maxBlocks = problem.stages > 0 ? problem.stages : problem.maxStages;
  relaxed.exactBlocks = problem.stages > 0;
  relaxed.replicaOptions.clear();
  for (size_t o : allowed)
    relaxed.replicaOptions.push_back(problem.replicaOptions[o]);
  relaxed.costModel = GraphCostModel::Relayed;
  relaxed.microBatches = problem.microBatches;
  relaxed.inFlight = problem.inFlight;
  return relaxed;
}

namespace {

/// Earliest and latest stage of every layer, as far as pins say.
struct Windows {
  std::vector<int64_t> first, last;
  std::vector<int32_t> firstBy, lastBy; ///< constraint that says so; -1: none
};

class Solver {
public:
  Solver(const Graph &graph, const rt::Training &training,
         const CostTable &costs, const PartitionProblem &base,
         const std::vector<ConstraintSpec> &specs, int64_t workLimit,
         const solver::Settings &settings)
      : graph(graph), training(training), costs(costs), base(base),
        specs(specs), workLimit(workLimit), settings(settings) {}

  GraphStages solve(std::string &error);
  ClashReport explain(std::string &error) const;

private:
  void findEdges();
  Windows windows() const;
  std::vector<int32_t> sortedBy(const Windows &windows,
                                const std::vector<int32_t> &order) const;
  bool tryOrder(std::vector<int32_t> order, std::string &error);
  bool tryOrderOfSolver(std::string &error);
  void askGraph();
  void setBound();

  const Graph &graph;
  const rt::Training &training;
  const CostTable &costs;
  const PartitionProblem &base;
  const std::vector<ConstraintSpec> &specs;
  const int64_t workLimit;
  const solver::Settings settings;

  std::vector<std::pair<int32_t, int32_t>> edges; ///< ascending by the first
  std::optional<GraphResult> asked;
  GraphRung rung = GraphRung::Average;
  Nanos period = 0; ///< no stages do better, whatever the order
  int64_t orders = 0;
  GraphStages best;
};

void Solver::findEdges() {
  edges = fixedOrder(graph);
  for (size_t l = 0; l < graph.layers.size(); ++l)
    for (int32_t id : graph.layers[l].inputs)
      if (int32_t producer = graph.values[id].producer; producer >= 0)
        edges.push_back({producer, int32_t(l)});
  std::sort(edges.begin(), edges.end());
}

Windows Solver::windows() const {
  const size_t n = graph.layers.size();
  Windows w{std::vector<int64_t>(n, 0), std::vector<int64_t>(n, INT64_MAX),
            std::vector<int32_t>(n, -1), std::vector<int32_t>(n, -1)};
  for (size_t c = 0; c < specs.size(); ++c) {
    if (specs[c].kind != ConstraintKind::Pin)
      continue;
    for (const std::string &name : specs[c].names)
      for (int32_t l : layersNamed(graph, name)) {
        if (specs[c].number >= w.first[l]) {
          w.first[l] = specs[c].number;
          w.firstBy[l] = int32_t(c);
        }
        if (specs[c].number <= w.last[l]) {
          w.last[l] = specs[c].number;
          w.lastBy[l] = int32_t(c);
        }
      }
  }
  // Every edge leads to a layer further down the model.
  for (auto [from, to] : edges)
    if (w.first[from] > w.first[to]) {
      w.first[to] = w.first[from];
      w.firstBy[to] = w.firstBy[from];
    }
  for (auto edge = edges.rbegin(); edge != edges.rend(); ++edge)
    if (auto [from, to] = *edge; w.last[to] < w.last[from]) {
      w.last[from] = w.last[to];
      w.lastBy[from] = w.lastBy[to];
    }
  return w;
}

/// Both ends of a window ascend along the edges, so this is an order again, and
/// pins ascend in it.
std::vector<int32_t> Solver::sortedBy(const Windows &w,
                                      const std::vector<int32_t> &order) const {
  std::vector<int32_t> sorted = order;
  std::stable_sort(sorted.begin(), sorted.end(), [&](int32_t a, int32_t b) {
    return std::pair(w.first[a], w.last[a]) < std::pair(w.first[b], w.last[b]);
  });
  return sorted;
}

/// Stages of one order; keeps them if they are the best so far. False: `error`
/// says what is wrong with a constraint.
bool Solver::tryOrder(std::vector<int32_t> order, std::string &error) {
  GraphStages found;
  found.failure = best.failure; // of the bound, whichever order is taken
  found.staged = stagedGraph(graph, costs, std::move(order));
  const std::vector<Segment> segments = layerSegments(found.staged.graph);
  found.problem = base;
  found.problem.segments =
      partitionProblem(found.staged.graph, segments, training,
                       found.staged.costs, base.cluster)
          .segments;
  auto constraints =
      sideConstraints(found.staged.graph, segments, specs, error);
  if (!constraints)
    return false;
  found.constraints = std::move(*constraints);
  found.result = solvePartition(found.problem, found.constraints, workLimit);
  ++orders;
  const bool isFirst = orders == 1;
  if (!found.result.partition
          ? isFirst
          : !best.result.partition || found.result.partition->objective <
                                          best.result.partition->objective)
    best = std::move(found);
  return true;
}

/// An order in which the constraints can be kept as far as the solver knows.
bool Solver::tryOrderOfSolver(std::string &error) {
  const GraphProblem relaxed = graphRelaxation(graph, training, costs, base);
  const GraphQuestion question(graph, relaxed, base, edges, specs);
  if (!question.fits())
    return true;
  std::vector<int32_t> all(specs.size());
  std::iota(all.begin(), all.end(), 0);
  const solver::Answer answer = decide(question.pose(all), settings);
  if (answer.failure)
    best.failure = answer.failure;
  if (answer.verdict != solver::Verdict::Satisfiable)
    return true;
  return tryOrder(question.orderOf(answer.values), error);
}

/// The order and the period by graph assignment, where they are free.
void Solver::askGraph() {
  PartitionProblem limits = base;
  std::string ignored;
  if (auto constraints =
          sideConstraints(graph, layerSegments(graph), specs, ignored))
    if (auto constrained = constrain(base, *constraints))
      limits = std::move(*constrained);
  GraphProblem relaxed = graphRelaxation(graph, training, costs, limits);
  for (const ConstraintSpec &spec : specs) {
    if (spec.kind != ConstraintKind::KeepTogether)
      continue;
    std::vector<int32_t> &group = relaxed.together.emplace_back();
    for (const std::string &name : spec.names)
      for (int32_t l : layersNamed(graph, name))
        group.push_back(l);
    std::sort(group.begin(), group.end());
    group.erase(std::unique(group.begin(), group.end()), group.end());
    if (group.size() < 2)
      relaxed.together.pop_back();
  }
  if (relaxed.check())
    return; // sums too large for it: the simple bound is left
  GraphSettings limited;
  limited.solver = settings;
  asked = solveGraph(relaxed, limited);
  if (asked->partition) {
    period = asked->partition->bound;
    rung = asked->partition->rung;
    best.failure = asked->partition->failure;
  }
}

/// Every layer runs once for the first micro-batch, the period passes for each
/// other, and some stage updates at least the average.
void Solver::setBound() {
  Partition &partition = *best.result.partition;
  const bool placed = !base.rankOfStage.empty();
  const int64_t stages = base.stages > 0      ? base.stages
                         : base.maxStages > 0 ? base.maxStages
                                              : base.cluster.devices;
  const int64_t busy = placed ? numRanks(base) : stages;
  if (base.cuts || busy < 2)
    return; // proven for these stages, or there is only one way
  Nanos sum = 0, largest = 0, update = 0;
  for (size_t l = 0; l < costs.layers.size(); ++l) {
    Nanos least = INT64_MAX;
    for (size_t o : allowedOptions(base))
      least = std::min(least, timeOf(costs.layers[l], o));
    sum += least;
    largest = std::max(largest, least);
    update += costs.layers[l].update;
  }
  const Nanos average = (sum + busy - 1) / busy;
  if (placed || !asked || !asked->partition)
    period = std::max(largest, average);
  const Nanos bound = base.continuous ? period
                                      : sum + (base.microBatches - 1) * period +
                                            (update + busy - 1) / busy;
  partition.bound = std::min(partition.objective, bound);
  partition.method = fmt::format("graph, bound by {}", graphRungName(rung));
}

GraphStages Solver::solve(std::string &error) {
  findEdges();
  const Windows w = windows();
  for (size_t l = 0; l < graph.layers.size(); ++l)
    if (w.first[l] > w.last[l]) {
      best.contradiction = {w.lastBy[l], w.firstBy[l]};
      return std::move(best);
    }
  std::vector<int32_t> order(graph.layers.size());
  std::iota(order.begin(), order.end(), 0);
  std::vector<std::vector<int32_t>> candidates;
  auto add = [&](std::vector<int32_t> candidate) {
    if (std::find(candidates.begin(), candidates.end(), candidate) ==
        candidates.end())
      candidates.push_back(std::move(candidate));
  };
  if (!base.cuts && base.rankOfStage.empty()) {
    askGraph();
    if (asked && !asked->partition && !asked->outOfWork) {
      best.result.infeasible = asked->infeasible;
      return std::move(best);
    }
    if (asked && asked->partition) {
      std::vector<int32_t> byBlocks;
      for (const GraphBlock &block : asked->partition->blocks)
        byBlocks.insert(byBlocks.end(), block.nodes.begin(), block.nodes.end());
      add(sortedBy(w, byBlocks));
    }
  }
  if (!base.cuts)
    add(sortedBy(w, order));
  add(order);
  for (std::vector<int32_t> &candidate : candidates)
    if (!tryOrder(std::move(candidate), error))
      return std::move(best);
  if (!best.result.partition && !base.cuts && base.rankOfStage.empty() &&
      !specs.empty())
    if (!tryOrderOfSolver(error))
      return std::move(best);
  if (best.result.partition) {
    setBound();
  } else if (!base.cuts) {
    // Other orders may do; with one stage they are all the same.
    best.result.outOfWork |= base.stages != 1 && base.maxStages != 1;
    best.result.infeasible.reason =
        fmt::format("in {} order{} of the layers that {} tried: {}", orders,
                    orders == 1 ? "" : "s", orders == 1 ? "was" : "were",
                    best.result.infeasible.reason);
  }
  return std::move(best);
}

/// Where all orders that were tried end without an answer.
ClashReport Solver::explain(std::string &error) const {
  const GraphProblem relaxed = graphRelaxation(graph, training, costs, base);
  return explainGraphClash(
      {graph, relaxed, base, edges, specs, settings},
      [&](const std::set<int32_t> &kept) {
        std::vector<ConstraintSpec> rest;
        for (const int32_t c : kept)
          rest.push_back(specs[c]);
        return Solver(graph, training, costs, base, rest, workLimit, settings)
            .solve(error);
      });
}

} // namespace

GraphStages solveGraphStages(const Graph &graph, const rt::Training &training,
                             const CostTable &costs,
                             const PartitionProblem &problem,
                             const std::vector<ConstraintSpec> &constraints,
                             int64_t workLimit,
                             const solver::Settings &settings,
                             std::string &error) {
  Solver solver(graph, training, costs, problem, constraints, workLimit,
                settings);
  GraphStages found = solver.solve(error);
  // Given cuts leave one order, which is a chain.
  if (found.result.partition || constraints.empty() || !error.empty() ||
      !problem.rankOfStage.empty())
    return found;
  if (problem.cuts && !found.constraints.empty())
    found.clash = explainClash(found.problem, found.constraints, settings);
  else if (!problem.cuts)
    found.clash = solver.explain(error);
  return found;
}

} // namespace takt
