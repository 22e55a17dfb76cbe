//===- GraphStagesTests.cpp - stages of models that are no chain ----------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Against every order of the layers, each cut exactly.
//
//===----------------------------------------------------------------------===//

#include "../Lower/TestModels.h"
#include "takt/Cost/GraphStages.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <random>
#include <set>

using namespace takt;

namespace {

struct Posed {
  Graph graph;
  rt::Training training;
  CostTable costs;
  PartitionProblem problem;
};

/// A small random model with random times, on three devices.
Posed pose(uint64_t seed) {
  std::mt19937_64 random(seed);
  auto pick = [&](int64_t most) { return int64_t(random() % (most + 1)); };
  Posed posed;
  posed.graph = test::makeSkips(seed, 5, 4);
  posed.training.microBatches = int32_t(1 + pick(4));
  posed.training.globalBatch = 4 * posed.training.microBatches;
  posed.costs.replicaOptions = {1, 2};
  for (size_t l = 0; l < posed.graph.layers.size(); ++l) {
    LayerTimes times;
    const Nanos forward = 100 + pick(900), back = 100 + pick(900);
    times.forward = {forward, (forward + 1) / 2 + pick(50)};
    times.inputGrad = {back, (back + 1) / 2 + pick(50)};
    times.weightGrad = {back / 2, back / 4};
    times.update = pick(100);
    posed.costs.layers.push_back(times);
  }
  PartitionCluster cluster;
  cluster.devices = cluster.devicesPerNode = 3;
  cluster.intraNode = {"link", pick(1) * 100, double(1 + pick(9)) * 1e8};
  posed.problem = partitionProblem(posed.graph, layerSegments(posed.graph),
                                   posed.training, posed.costs, cluster);
  posed.problem.stages = pick(3);
  if (pick(1))
    posed.problem.replicas = 1;
  return posed;
}

/// All orders that keep sums as they are.
std::set<std::vector<int32_t>> allOrders(const Graph &graph) {
  std::set<std::pair<int32_t, int32_t>> edges;
  for (auto edge : fixedOrder(graph))
    edges.insert(edge);
  std::set<std::vector<int32_t>> orders;
  std::vector<int32_t> order;
  std::function<void()> grow = [&] {
    const auto n = int32_t(graph.layers.size());
    if (int32_t(order.size()) == n) {
      orders.insert(order);
      return;
    }
    for (int32_t l = 0; l < n; ++l) {
      auto stands = [&](int32_t other) {
        return std::count(order.begin(), order.end(), other) > 0;
      };
      bool ready = !stands(l);
      for (int32_t id : graph.layers[l].inputs)
        ready = ready && (graph.values[id].producer < 0 ||
                          stands(graph.values[id].producer));
      for (auto [before, after] : edges)
        ready = ready && (after != l || stands(before));
      if (!ready)
        continue;
      order.push_back(l);
      grow();
      order.pop_back();
    }
  };
  grow();
  return orders;
}

std::optional<Partition> bestOfAll(const Posed &posed) {
  std::optional<Partition> best;
  for (const std::vector<int32_t> &order : allOrders(posed.graph)) {
    const StagedGraph staged = stagedGraph(posed.graph, posed.costs, order);
    PartitionProblem problem = posed.problem;
    problem.segments =
        partitionProblem(staged.graph, layerSegments(staged.graph),
                         posed.training, staged.costs, problem.cluster)
            .segments;
    PartitionResult result = solvePartition(problem);
    if (result.partition &&
        (!best || result.partition->objective < best->objective))
      best = result.partition;
  }
  return best;
}

GraphStages solve(const Posed &posed,
                  const std::vector<ConstraintSpec> &constraints = {}) {
  std::string error;
  GraphStages found =
      solveGraphStages(posed.graph, posed.training, posed.costs, posed.problem,
                       constraints, int64_t(1) << 30, {}, error);
  EXPECT_EQ(error, "");
  return found;
}

ConstraintSpec pin(const std::string &layer, int64_t stage) {
  ConstraintSpec constraint;
  constraint.kind = ConstraintKind::Pin;
  constraint.names = {layer};
  constraint.number = stage;
  return constraint;
}

} // namespace

TEST(GraphStages, NoOrderBeatsTheBound) {
  int best = 0, exact = 0, solved = 0;
  for (uint64_t seed = 0; seed < 60; ++seed) {
    const Posed posed = pose(seed);
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    const GraphStages found = solve(posed);
    const std::optional<Partition> all = bestOfAll(posed);
    ASSERT_EQ(found.result.partition.has_value(), all.has_value());
    if (!all)
      continue;
    const Partition &partition = *found.result.partition;
    EXPECT_TRUE(isOrder(posed.graph, found.staged.order));
    EXPECT_EQ(verify(found.problem, found.constraints, partition),
              std::nullopt);
    EXPECT_LE(partition.bound, all->objective);
    EXPECT_GE(partition.objective, all->objective);
    ++solved;
    best += partition.objective == all->objective;
    exact += partition.bound == partition.objective;
  }
  // The order comes from the period alone, so it need not be the best for few
  // micro-batches; mostly it is.
  EXPECT_GT(solved, 40);
  EXPECT_GT(2 * best, solved);
  EXPECT_GT(exact, 0);
}

TEST(GraphStages, PublishedPlannersCutOrders) {
  int pipelines = 0, reordered = 0;
  for (uint64_t seed = 0; seed < 60; ++seed) {
    Posed posed = pose(seed);
    posed.problem.stages = 0;
    posed.problem.replicas.reset();
    const std::optional<Partition> all = bestOfAll(posed);
    ASSERT_TRUE(all.has_value());
    for (const CostModel model :
         {CostModel::DnnPartitioning, CostModel::Piper}) {
      SCOPED_TRACE(testing::Message()
                   << "seed " << seed << ", " << costModelName(model));
      ModelFault fault;
      const auto modelled =
          graphStagesByModel(posed.graph, posed.training, posed.costs,
                             posed.problem, model, int64_t(1) << 30, fault);
      ASSERT_TRUE(modelled.has_value()) << fault.text;
      const GraphStages &found = modelled->found;
      ASSERT_TRUE(found.result.partition.has_value());
      EXPECT_GT(modelled->step, 0);
      EXPECT_TRUE(isOrder(posed.graph, found.staged.order));
      std::vector<size_t> place(found.staged.order.size());
      for (size_t i = 0; i < place.size(); ++i)
        place[found.staged.order[i]] = i;
      for (auto [before, after] : fixedOrder(posed.graph))
        EXPECT_LT(place[before], place[after]);
      const Partition &partition = *found.result.partition;
      EXPECT_EQ(verify(found.problem, partition), std::nullopt);
      EXPECT_LE(partition.bound, all->objective);
      EXPECT_GE(partition.objective, all->objective);
      pipelines += partition.stages.size() > 1;
      reordered += !std::is_sorted(found.staged.order.begin(),
                                   found.staged.order.end());
    }
  }
  EXPECT_GT(pipelines, 30);
  EXPECT_GT(reordered, 0);
}

TEST(GraphStages, MemoryThatNoStagesHaveIsProven) {
  Posed posed = pose(1);
  posed.problem.stages = 2;
  posed.problem.cluster.memory = 64;
  const GraphStages found = solve(posed);
  EXPECT_FALSE(found.result.partition);
  EXPECT_FALSE(found.result.outOfWork);
  EXPECT_NE(found.result.infeasible.reason.find("needs"), std::string::npos)
      << found.result.infeasible.reason;
}

TEST(GraphStages, PinsChangeTheOrder) {
  int changed = 0, kept = 0;
  for (uint64_t seed = 0; seed < 40; ++seed) {
    Posed posed = pose(seed);
    posed.problem.stages = 2;
    posed.problem.replicas = 1;
    // The last layer but two in the first stage, where that can be.
    const auto n = int32_t(posed.graph.layers.size());
    const int32_t early = n - 3;
    const GraphStages found =
        solve(posed, {pin(posed.graph.layers[early].name, 0)});
    if (!found.result.partition)
      continue;
    ++kept;
    const auto place = std::find(found.staged.order.begin(),
                                 found.staged.order.end(), early);
    EXPECT_LT(place - found.staged.order.begin(),
              found.result.partition->stages[0].end);
    changed += !std::is_sorted(found.staged.order.begin(),
                               found.staged.order.end());
  }
  EXPECT_GT(kept, 0);
  EXPECT_GT(changed, 0);
}

TEST(GraphStages, PinsAgainstTheDataContradictEachOther) {
  Posed posed = pose(3);
  posed.problem.stages = 2;
  const GraphStages found = solve(posed, {pin("loss", 0), pin("in", 1)});
  EXPECT_FALSE(found.result.partition);
  EXPECT_EQ(found.contradiction, (std::vector<int32_t>{0, 1}));
}

TEST(GraphStages, ThreeReadersKeepTheirOrder) {
  bool any = false;
  for (uint64_t seed = 0; seed < 40; ++seed) {
    const Graph graph = test::makeSkips(seed, 10, 4);
    const auto pairs = fixedOrder(graph);
    any |= !pairs.empty();
    for (auto [before, after] : pairs)
      EXPECT_LT(before, after);
  }
  EXPECT_TRUE(any);
  // Residual blocks have two readers: nothing is fixed.
  EXPECT_TRUE(fixedOrder(test::makeGpt({})).empty());
}

TEST(GraphStages, ResidualBlocksAreAChain) {
  const Graph gpt = test::makeGpt({});
  EXPECT_TRUE(isChain(gpt, chainSegments(gpt)));
  int graphs = 0;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const Graph skips = test::makeSkips(seed, 14, 4);
    graphs += !isChain(skips, chainSegments(skips));
  }
  EXPECT_GT(graphs, 0);
}

namespace {

std::vector<ConstraintSpec> randomConstraints(const Graph &graph,
                                              std::mt19937_64 &random) {
  auto pick = [&](int64_t most) { return int64_t(random() % (most + 1)); };
  auto layer = [&] {
    return graph.layers[pick(int64_t(graph.layers.size()) - 1)].name;
  };
  std::vector<ConstraintSpec> constraints;
  for (int64_t c = 0; c < 4; ++c) {
    ConstraintSpec &one = constraints.emplace_back();
    const ConstraintKind kinds[] = {
        ConstraintKind::KeepTogether, ConstraintKind::KeepApart,
        ConstraintKind::NoCutAfter,   ConstraintKind::NoCutBefore,
        ConstraintKind::Pin,          ConstraintKind::Stages,
        ConstraintKind::MaxStages};
    one.kind = kinds[pick(6)];
    one.number = 1 + pick(2);
    if (one.kind == ConstraintKind::Pin)
      --one.number;
    if (one.kind == ConstraintKind::Stages ||
        one.kind == ConstraintKind::MaxStages)
      continue;
    one.names = {layer()};
    if (one.kind == ConstraintKind::KeepTogether ||
        one.kind == ConstraintKind::KeepApart)
      do
        one.names.resize(1), one.names.push_back(layer());
      while (one.names[0] == one.names[1]);
  }
  return constraints;
}

/// Whether some order can be cut as all the constraints but those of `without`
/// demand.
bool canBeKept(const Posed &posed, std::vector<ConstraintSpec> constraints,
               const std::set<int32_t> &without) {
  for (auto c = without.rbegin(); c != without.rend(); ++c)
    constraints.erase(constraints.begin() + *c);
  std::string error;
  for (const std::vector<int32_t> &order : allOrders(posed.graph)) {
    const StagedGraph staged = stagedGraph(posed.graph, posed.costs, order);
    const std::vector<Segment> segments = layerSegments(staged.graph);
    PartitionProblem problem = posed.problem;
    problem.segments = partitionProblem(staged.graph, segments, posed.training,
                                        staged.costs, problem.cluster)
                           .segments;
    const auto kept =
        sideConstraints(staged.graph, segments, constraints, error);
    if (solvePartition(problem, *kept, int64_t(1) << 30).partition)
      return true;
  }
  return false;
}

} // namespace

TEST(GraphStages, ClashesAreThoseOfAllOrders) {
  if (!solver::available())
    GTEST_SKIP() << "asks the constraint solver";
  int clashes = 0, relieved = 0, unexplained = 0, kept = 0;
  for (uint64_t seed = 0; seed < 120; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    const Posed posed = pose(seed);
    std::mt19937_64 random(seed);
    const std::vector<ConstraintSpec> constraints =
        randomConstraints(posed.graph, random);
    const GraphStages found = solve(posed, constraints);
    const bool can = canBeKept(posed, constraints, {});
    kept += found.result.partition.has_value();
    if (found.result.partition) {
      EXPECT_TRUE(can);
      EXPECT_TRUE(found.clash.cores.empty());
      continue;
    }
    if (found.clash.cores.empty()) {
      unexplained += !can;
      continue;
    }
    ++clashes;
    EXPECT_FALSE(can);
    // The first list cannot be kept even alone.
    std::set<int32_t> others, given;
    for (int32_t c = 0; c < int32_t(constraints.size()); ++c)
      others.insert(c);
    for (const int32_t c : found.clash.cores.front())
      others.erase(c);
    EXPECT_FALSE(canBeKept(posed, constraints, others));
    for (const Relief &relief : found.clash.reliefs)
      given.insert(relief.constraint);
    relieved += !given.empty();
    if (!given.empty()) {
      EXPECT_TRUE(canBeKept(posed, constraints, given));
    }
  }
  EXPECT_GT(kept, 20);
  EXPECT_GT(clashes, 20);
  EXPECT_GT(relieved, 15);
  EXPECT_LT(unexplained, clashes);
  RecordProperty("clashes", clashes);
}
