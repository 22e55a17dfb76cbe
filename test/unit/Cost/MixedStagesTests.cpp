//===- MixedStagesTests.cpp - stages of a model on unequal devices --------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Models that are no chain against every order of the layers, each cut exactly;
// constraints that keep memory free or cannot be kept.
//
//===----------------------------------------------------------------------===//

#include "../Lower/TestModels.h"
#include "takt/Cost/MixedStages.h"

#include <gtest/gtest.h>

#include <functional>
#include <random>
#include <set>

using namespace takt;

namespace {

struct Posed {
  Graph graph;
  rt::Training training;
  MixedRequest request;
};

/// A small random model on two fast and two slow devices; prices and memory
/// differ as well.
Posed pose(uint64_t seed) {
  std::mt19937_64 random(seed);
  auto pick = [&](int64_t most) { return int64_t(random() % (most + 1)); };
  Posed posed;
  posed.graph = test::makeSkips(seed, 5, 4);
  posed.training.microBatches = int32_t(1 + pick(4));
  posed.training.globalBatch = 4 * posed.training.microBatches;
  for (const char *kind : {"fast", "slow"}) {
    KindCosts costs{kind, {}};
    costs.table.replicaOptions = {1, 2};
    const int64_t slow = kind[0] == 's' ? 2 : 1;
    for (size_t l = 0; l < posed.graph.layers.size(); ++l) {
      LayerTimes times;
      const Nanos forward = slow * (100 + pick(900));
      const Nanos back = slow * (100 + pick(900));
      times.forward = {forward, (forward + 1) / 2 + pick(50)};
      times.inputGrad = {back, (back + 1) / 2 + pick(50)};
      times.weightGrad = {back / 2, back / 4};
      times.update = pick(100);
      costs.table.layers.push_back(times);
    }
    posed.request.costs.push_back(std::move(costs));
    DevicePool pool;
    pool.kind = kind;
    pool.devices = pool.devicesPerNode = 2;
    pool.intraNode = {"link", pick(1) * 100, double(1 + pick(9)) * 1e8};
    pool.price = 1 + pick(3000000) / slow;
    posed.request.pools.push_back(std::move(pool));
  }
  posed.request.options.cluster.network = {"network", 200, 1e8};
  posed.request.options.stages = pick(3);
  if (pick(1))
    posed.request.options.replicas = 1;
  if (pick(1))
    posed.request.objective = StageObjective::Price;
  return posed;
}

MixedStages solve(const Posed &posed,
                  const std::vector<ConstraintSpec> &constraints = {}) {
  std::string error;
  MixedStages found =
      solveMixedStages(posed.graph, posed.training, posed.request, true,
                       constraints, int64_t(1) << 26, error);
  EXPECT_EQ(error, "");
  return found;
}

/// All orders that keep sums as they are.
void eachOrder(const Graph &graph,
               const std::function<void(const std::vector<int32_t> &)> &visit) {
  const auto fixed = fixedOrder(graph);
  std::vector<int32_t> order;
  std::vector<bool> stands(graph.layers.size());
  std::function<void()> grow = [&] {
    if (order.size() == graph.layers.size())
      return visit(order);
    for (int32_t l = 0; l < int32_t(graph.layers.size()); ++l) {
      bool ready = !stands[l];
      for (int32_t id : graph.layers[l].inputs)
        ready = ready && (graph.values[id].producer < 0 ||
                          stands[graph.values[id].producer]);
      for (auto [before, after] : fixed)
        ready = ready && (after != l || stands[before]);
      if (!ready)
        continue;
      order.push_back(l);
      stands[l] = true;
      grow();
      stands[l] = false;
      order.pop_back();
    }
  };
  grow();
}

double costOf(const MixedRequest &request, const MixedPartition &partition) {
  return request.objective == StageObjective::Price ? partition.price()
                                                    : double(partition.time);
}

std::optional<double> bestOfAll(const Posed &posed) {
  std::optional<double> best;
  eachOrder(posed.graph, [&](const std::vector<int32_t> &order) {
    MixedRequest own = posed.request;
    Graph ordered;
    for (KindCosts &costs : own.costs) {
      StagedGraph staged = stagedGraph(posed.graph, costs.table, order);
      costs.table = staged.costs;
      ordered = std::move(staged.graph);
    }
    std::string error;
    const auto problem = mixedProblem(ordered, layerSegments(ordered),
                                      posed.training, own, {}, error);
    ASSERT_TRUE(problem) << error;
    const MixedResult result = solveMixed(*problem);
    if (!result.partition)
      return;
    const double cost = costOf(own, *result.partition);
    if (!best || cost < *best)
      best = cost;
  });
  return best;
}

} // namespace

TEST(UnequalGraphs, NoOrderBeatsTheBound) {
  int best = 0, solved = 0, mixed = 0;
  for (uint64_t seed = 0; seed < 40; ++seed) {
    const Posed posed = pose(seed);
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    const MixedStages found = solve(posed);
    const std::optional<double> all = bestOfAll(posed);
    ASSERT_EQ(found.result.partition.has_value(), all.has_value());
    if (!all)
      continue;
    const MixedPartition &partition = *found.result.partition;
    EXPECT_TRUE(isOrder(posed.graph, found.staged.order));
    EXPECT_EQ(verify(found.problem, partition), std::nullopt);
    const double own = costOf(posed.request, partition);
    EXPECT_LE(own * double(partition.bound) / double(partition.time),
              *all * (1 + 1e-9));
    EXPECT_GE(own, *all * (1 - 1e-9));
    ++solved;
    best += own <= *all * (1 + 1e-9);
    for (const MixedStage &stage : partition.stages)
      if (stage.pool != partition.stages[0].pool) {
        ++mixed;
        break;
      }
  }
  EXPECT_GT(solved, 25);
  EXPECT_GT(2 * best, solved);
  EXPECT_GT(mixed, 5);
}

TEST(UnequalGraphs, HeadroomIsOfEachKind) {
  Posed posed = pose(4);
  for (DevicePool &pool : posed.request.pools)
    pool.memory = 1000000;
  posed.request.pools[1].memory = 500000;
  ConstraintSpec half;
  half.kind = ConstraintKind::HeadroomPpm;
  half.number = 500000;
  std::string error;
  const auto problem =
      mixedProblem(posed.graph, layerSegments(posed.graph), posed.training,
                   posed.request, {half}, error);
  ASSERT_TRUE(problem) << error;
  EXPECT_EQ(problem->pools[0].memory, 500000);
  EXPECT_EQ(problem->pools[1].memory, 250000);
}

TEST(UnequalGraphs, NamesTheConstraintToGiveUp) {
  Posed posed = pose(4);
  posed.request.options.stages = 2;
  ConstraintSpec late;
  late.kind = ConstraintKind::Pin;
  late.names = {"loss"};
  late.number = 3;
  ConstraintSpec harmless;
  harmless.kind = ConstraintKind::MaxStages;
  harmless.number = 4;
  const MixedStages found = solve(posed, {harmless, late});
  EXPECT_FALSE(found.result.partition);
  EXPECT_TRUE(found.clash);
  EXPECT_EQ(found.relief, 1);
  EXPECT_GT(found.reliefTime, 0);
}
