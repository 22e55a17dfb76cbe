//===- MixedStages.cpp - stages of a model on unequal devices -------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// The chain's problem is posed once for each kind of device: bytes are the same
// on all of them, times are not.
//
//===----------------------------------------------------------------------===//
#include "takt/Cost/MixedStages.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace takt {

namespace {

const CostTable &costsOf(const MixedRequest &request, const std::string &kind) {
  for (const KindCosts &costs : request.costs)
    if (costs.device == kind)
      return costs.table;
  return request.costs.front().table;
}

/// The options of the user with what they are about.
PartitionProblem withOptions(PartitionProblem chain,
                             const PartitionProblem &options) {
  chain.stages = options.stages;
  chain.maxStages = options.maxStages;
  chain.replicas = options.replicas;
  chain.cuts = options.cuts;
  chain.inFlight = options.inFlight;
  return chain;
}

/// All devices in one row, with the fastest link in a node: no better cluster
/// can be made of them.
PartitionCluster oneRow(const MixedRequest &request) {
  PartitionCluster row = request.options.cluster;
  row.devices = 0;
  row.devicesPerNode = 1;
  row.memory = 0;
  for (const DevicePool &pool : request.pools) {
    row.devices += pool.devices;
    if (pool.devicesPerNode == 1)
      continue;
    const rt::Link &link = pool.intraNode;
    const bool isFirst = row.devicesPerNode == 1;
    row.devicesPerNode = std::max(row.devicesPerNode, pool.devicesPerNode);
    const double rate = row.intraNode.bytesPerSecond;
    const bool isFaster =
        rate > 0 && (link.bytesPerSecond <= 0 || link.bytesPerSecond > rate);
    if (isFirst || isFaster)
      row.intraNode = link;
  }
  return row;
}

} // namespace

std::optional<MixedProblem>
mixedProblem(const Graph &graph, const std::vector<Segment> &segments,
             const rt::Training &training, const MixedRequest &request,
             const std::vector<ConstraintSpec> &specs, std::string &error) {
  const auto constraints = sideConstraints(graph, segments, specs, error);
  if (!constraints)
    return std::nullopt;
  MixedProblem problem;
  problem.pools = request.pools;
  problem.objective = request.objective;
  problem.maxTime = request.maxTime;
  problem.maxPrice = request.maxPrice;
  PartitionCluster row = oneRow(request);
  for (DevicePool &pool : problem.pools) {
    row.memory = pool.memory; // of which constraints may want some free
    const PartitionProblem own =
        withOptions(partitionProblem(graph, segments, training,
                                     costsOf(request, pool.kind), row),
                    request.options);
    std::optional<PartitionProblem> kept = constrain(own, *constraints);
    if (!kept) {
      error = "the side constraints contradict each other or '--cuts'";
      return std::nullopt;
    }
    for (const SegmentCost &segment : own.segments) {
      pool.time.push_back(segment.time);
      pool.update.push_back(segment.update);
    }
    pool.memory = kept->cluster.memory;
    problem.chain = std::move(*kept);
  }
  problem.chain.cluster.memory = 0;
  return problem;
}

namespace {

class Solver {
public:
  Solver(const Graph &graph, const rt::Training &training,
         const MixedRequest &request,
         const std::vector<ConstraintSpec> &constraints, int64_t workLimit)
      : graph(graph), training(training), request(request),
        constraints(constraints), workLimit(workLimit) {}

  MixedStages chain(std::string &error) {
    std::optional<MixedStages> found =
        cut(graph, request, chainSegments(graph), constraints, error);
    return found ? std::move(*found) : MixedStages();
  }

  MixedStages anyGraph(std::string &error);

private:
  std::optional<MixedStages> cut(const Graph &ordered, const MixedRequest &own,
                                 std::vector<Segment> segments,
                                 const std::vector<ConstraintSpec> &specs,
                                 std::string &error) const;
  void findRelief(MixedStages &found, const Graph &ordered,
                  const MixedRequest &own) const;
  GraphProblem relaxation() const;
  void setBound(MixedStages &best, Nanos period) const;

  const Graph &graph;
  const rt::Training &training;
  const MixedRequest &request;
  const std::vector<ConstraintSpec> &constraints;
  const int64_t workLimit;
};

std::optional<MixedStages> Solver::cut(const Graph &ordered,
                                       const MixedRequest &own,
                                       std::vector<Segment> segments,
                                       const std::vector<ConstraintSpec> &specs,
                                       std::string &error) const {
  MixedStages found;
  std::optional<MixedProblem> problem =
      mixedProblem(ordered, segments, training, own, specs, error);
  if (!problem)
    return std::nullopt;
  found.problem = std::move(*problem);
  found.segments = std::move(segments);
  found.staged.graph = ordered;
  found.result = solveMixed(found.problem, workLimit);
  if (!found.result.partition && !found.result.outOfWork && !specs.empty())
    findRelief(found, ordered, own);
  return found;
}

/// What is infeasible with the constraints but not without is no matter of
/// devices.
void Solver::findRelief(MixedStages &found, const Graph &ordered,
                        const MixedRequest &own) const {
  std::string ignored;
  auto without = [&](int32_t left) {
    std::vector<ConstraintSpec> kept;
    for (size_t c = 0; left >= 0 && c < constraints.size(); ++c)
      if (int32_t(c) != left)
        kept.push_back(constraints[c]);
    std::optional<MixedProblem> problem =
        mixedProblem(ordered, found.segments, training, own, kept, ignored);
    return problem ? solveMixed(*problem, workLimit) : MixedResult();
  };
  if (!without(-1).partition)
    return;
  found.clash = true;
  std::optional<double> least;
  for (int32_t c = 0; c < int32_t(constraints.size()); ++c) {
    const MixedResult freed = without(c);
    if (!freed.partition)
      continue;
    const double cost = own.objective == StageObjective::Price
                            ? freed.partition->price()
                            : double(freed.partition->time);
    if (least && *least <= cost)
      continue;
    least = cost;
    found.relief = c;
    found.reliefTime = freed.partition->time;
  }
}

/// The nodes of `graphRelaxation` with a time for each pool.
GraphProblem Solver::relaxation() const {
  GraphProblem relaxed;
  const std::vector<Segment> segments = layerSegments(graph);
  std::string ignored;
  std::optional<MixedProblem> limits =
      mixedProblem(graph, segments, training, request, constraints, ignored);
  for (const DevicePool &pool : request.pools) {
    const CostTable &costs = costsOf(request, pool.kind);
    PartitionProblem one = withOptions(
        partitionProblem(graph, segments, training, costs, oneRow(request)),
        limits ? limits->chain : request.options);
    const GraphProblem own = graphRelaxation(graph, training, costs, one);
    if (relaxed.nodes.empty()) {
      relaxed = own;
      relaxed.devices.clear();
    } else {
      for (size_t l = 0; l < own.nodes.size(); ++l)
        relaxed.nodes[l].time.push_back(own.nodes[l].time.front());
    }
    relaxed.devices.push_back({pool.kind, pool.devices, pool.memory, true});
  }
  return relaxed;
}

/// Every layer runs once for the first micro-batch, the period passes for each
/// other. A price is bounded by the busy time of the cheapest devices.
void Solver::setBound(MixedStages &best, Nanos period) const {
  MixedPartition &partition = *best.result.partition;
  double sum = 0, paid = 0;
  for (size_t l = 0; l < graph.layers.size(); ++l) {
    double least = 1e300, cheapest = 1e300;
    for (const DevicePool &pool : request.pools) {
      const CostTable &costs = costsOf(request, pool.kind);
      const LayerTimes &times = costs.layers[l];
      for (size_t o = 0; o < costs.replicaOptions.size(); ++o) {
        if (request.options.replicas &&
            *request.options.replicas != costs.replicaOptions[o])
          continue;
        const double time = double(times.forward[o]) +
                            double(times.inputGrad[o]) +
                            double(times.weightGrad[o]);
        least = std::min(least, time);
        cheapest = std::min(cheapest, time * double(pool.price) *
                                          double(costs.replicaOptions[o]));
      }
    }
    sum += least;
    paid += double(training.microBatches) * cheapest;
  }
  double bound = sum + double(training.microBatches - 1) * double(period);
  if (request.objective == StageObjective::Price)
    bound = paid / double(std::max<int64_t>(1, partition.rate));
  partition.bound = std::min(partition.time, Nanos(bound * (1 - 1e-12)));
  partition.method =
      partition.bound == partition.time ? "exact" : "graph on unequal devices";
}

MixedStages Solver::anyGraph(std::string &error) {
  std::vector<int32_t> order(graph.layers.size());
  std::iota(order.begin(), order.end(), 0);
  std::vector<std::vector<int32_t>> candidates;
  Nanos period = 0;
  if (!request.options.cuts) {
    const GraphProblem relaxed = relaxation();
    if (!relaxed.check()) {
      const GraphResult asked = solveGraph(relaxed);
      if (asked.partition) {
        period = asked.partition->bound;
        std::vector<int32_t> byBlocks;
        for (const GraphBlock &block : asked.partition->blocks)
          byBlocks.insert(byBlocks.end(), block.nodes.begin(),
                          block.nodes.end());
        if (byBlocks != order)
          candidates.push_back(std::move(byBlocks));
      }
    }
  }
  candidates.push_back(order);
  std::optional<MixedStages> best;
  auto costOf = [&](const MixedStages &stages) {
    return request.objective == StageObjective::Price
               ? stages.result.partition->price()
               : double(stages.result.partition->time);
  };
  for (const std::vector<int32_t> &candidate : candidates) {
    MixedRequest own = request;
    StagedGraph staged;
    for (KindCosts &costs : own.costs) {
      staged = stagedGraph(graph, costs.table, candidate);
      costs.table = staged.costs;
    }
    std::optional<MixedStages> found =
        cut(staged.graph, own, layerSegments(staged.graph), constraints, error);
    if (!found)
      return {};
    found->staged.order = candidate;
    const bool isBetter =
        !best || (found->result.partition &&
                  (!best->result.partition || costOf(*found) < costOf(*best)));
    if (isBetter)
      best = std::move(found);
  }
  if (best->result.partition && !request.options.cuts)
    setBound(*best, period);
  return std::move(*best);
}

} // namespace

MixedStages solveMixedStages(const Graph &graph, const rt::Training &training,
                             const MixedRequest &request, bool asGraph,
                             const std::vector<ConstraintSpec> &constraints,
                             int64_t workLimit, std::string &error) {
  Solver solver(graph, training, request, constraints, workLimit);
  return asGraph ? solver.anyGraph(error) : solver.chain(error);
}

} // namespace takt
