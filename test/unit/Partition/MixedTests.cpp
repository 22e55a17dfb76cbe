//===- MixedTests.cpp - stage assignment on unequal devices ---------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// The search against the enumeration of all assignments, against the program of
// equal devices where there is one pool, and what it says when nothing fits.
//
//===----------------------------------------------------------------------===//
#include "GptChain.h"
#include "RandomProblem.h"

#include "takt/Partition/Mixed.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

using namespace takt;
using namespace takt::test;

namespace {

/// A pool that takes `slow` times as long as the segments say.
DevicePool poolOf(const PartitionProblem &chain, std::string kind,
                  int64_t devices, int64_t node, int64_t slow) {
  DevicePool pool;
  pool.kind = std::move(kind);
  pool.devices = devices;
  pool.devicesPerNode = node;
  pool.intraNode = chain.cluster.intraNode;
  pool.memory = chain.cluster.memory;
  for (const SegmentCost &segment : chain.segments) {
    pool.time.push_back(segment.time);
    pool.update.push_back(segment.update);
    for (auto *times : {&pool.time.back(), &pool.update.back()})
      for (Nanos &time : *times)
        time *= slow;
  }
  return pool;
}

/// At most 5 segments and 3 pools of up to 4 devices.
MixedProblem randomMixed(uint64_t seed) {
  Random random(seed * 977 + 5);
  MixedProblem problem;
  problem.chain = randomProblem(seed);
  PartitionProblem &chain = problem.chain;
  chain.useAllDevices = false;
  chain.segments.resize(
      std::min<size_t>(chain.segments.size(), size_t(random.in(1, 5))));
  const int64_t segments = int64_t(chain.segments.size());
  if (chain.cuts)
    chain.cuts->erase(
        std::remove_if(chain.cuts->begin(), chain.cuts->end(),
                       [&](int64_t cut) { return cut >= segments; }),
        chain.cuts->end());
  if (random.chance(15) && segments > 1) {
    const int64_t first = random.in(0, segments - 2);
    chain.apart.push_back({first, random.in(first + 1, segments - 1)});
  }
  if (random.chance(15))
    chain.pins.push_back({random.in(0, segments - 1), random.in(0, 2)});
  const int64_t pools = random.in(1, segments > 4 ? 2 : 3);
  for (int64_t k = 0; k < pools; ++k) {
    const int64_t node = random.in(1, 3);
    DevicePool pool =
        poolOf(chain, fmt::format("kind{}", k),
               node * random.in(1, node > 2 ? 1 : 2), node, random.in(1, 3));
    pool.memory = chain.cluster.memory * random.in(1, 3) / 2;
    pool.price = random.in(0, 6) * 500000;
    if (random.chance(40))
      pool.intraNode.bytesPerSecond *= 3;
    // Now and then a kind is good at some segments and bad at others.
    if (random.chance(40))
      for (std::vector<Nanos> &times : pool.time)
        for (Nanos &time : times)
          time = time * random.in(2, 5) / 3;
    problem.pools.push_back(std::move(pool));
  }
  if (random.chance(50))
    problem.objective = StageObjective::Price;
  return problem;
}

double costOf(const MixedProblem &problem, const MixedPartition &partition) {
  return problem.objective == StageObjective::Price ? partition.price()
                                                    : double(partition.time);
}

void expectSame(const MixedProblem &problem, const MixedResult &found,
                const MixedResult &expected) {
  ASSERT_EQ(found.partition.has_value(), expected.partition.has_value())
      << found.infeasible.reason;
  if (!found.partition) {
    EXPECT_FALSE(found.infeasible.reason.empty());
    return;
  }
  const double best = costOf(problem, *expected.partition);
  EXPECT_NEAR(costOf(problem, *found.partition), best, 1e-9 * best);
  EXPECT_EQ(found.partition->bound, found.partition->time);
  EXPECT_EQ(found.partition->method, "exact");
  EXPECT_EQ(verify(problem, *found.partition).value_or(""), "");
}

TEST(MixedStages, AgreesWithAllAssignments) {
  int infeasible = 0, mixed = 0, replicated = 0;
  for (uint64_t seed = 0; seed < 600; ++seed) {
    SCOPED_TRACE(seed);
    const MixedProblem problem = randomMixed(seed);
    const MixedResult expected = bruteForceMixed(problem);
    const MixedResult found = solveMixed(problem);
    expectSame(problem, found, expected);
    infeasible += !found.partition;
    if (!found.partition)
      continue;
    bool several = false;
    for (const MixedStage &stage : found.partition->stages) {
      several |= stage.pool != found.partition->stages[0].pool;
      replicated += problem.chain.replicaOptions[stage.option] > 1;
    }
    mixed += several;
  }
  EXPECT_GT(infeasible, 60);
  EXPECT_LT(infeasible, 400);
  EXPECT_GT(mixed, 60);
  EXPECT_GT(replicated, 60);
}

TEST(MixedStages, KeepsLimitsOnTheOther) {
  int kept = 0, refused = 0;
  for (uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    MixedProblem problem = randomMixed(seed);
    const bool byPrice = problem.objective == StageObjective::Price;
    const MixedResult free = bruteForceMixed(problem);
    if (!free.partition)
      continue;
    // Below what the best of the one takes of the other.
    if (byPrice)
      problem.maxTime = free.partition->time * 9 / 10 + 1;
    else
      problem.maxPrice = free.partition->price() * 0.8;
    const MixedResult expected = bruteForceMixed(problem);
    const MixedResult found = solveMixed(problem);
    expectSame(problem, found, expected);
    (found.partition ? kept : refused) += 1;
    if (found.partition)
      continue;
    EXPECT_NE(found.infeasible.reason.find(byPrice ? "takes at most"
                                                   : "costs at most"),
              std::string::npos)
        << found.infeasible.reason;
    EXPECT_EQ(found.infeasible.waysOut.size(), 1u);
  }
  EXPECT_GT(kept, 20);
  EXPECT_GT(refused, 20);
}

TEST(MixedStages, BoundsHoldUnderAnyWorkLimit) {
  int stopped = 0;
  for (uint64_t seed = 0; seed < 150; ++seed) {
    const MixedProblem problem = randomMixed(seed);
    const MixedResult expected = bruteForceMixed(problem);
    for (int64_t limit = 1; limit < 3000; limit *= 3) {
      SCOPED_TRACE(testing::Message() << seed << " limit " << limit);
      const MixedResult found = solveMixed(problem, limit);
      if (!found.partition) {
        EXPECT_TRUE(found.outOfWork || !expected.partition);
        continue;
      }
      ASSERT_TRUE(expected.partition.has_value());
      const double best = costOf(problem, *expected.partition);
      const double scale = problem.objective == StageObjective::Price
                               ? priceOf(found.partition->rate, 1)
                               : 1;
      EXPECT_LE(double(found.partition->bound) * scale, best * (1 + 1e-9));
      EXPECT_GE(costOf(problem, *found.partition), best * (1 - 1e-9));
      EXPECT_EQ(verify(problem, *found.partition).value_or(""), "");
      stopped += found.partition->method != "exact";
    }
  }
  EXPECT_GT(stopped, 50);
}

TEST(MixedStages, OnePoolIsTheProgramOfEqualDevices) {
  int compared = 0;
  for (uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    PartitionProblem chain = randomProblem(seed);
    chain.useAllDevices = false;
    const int64_t devices = chain.cluster.devices;
    chain.cluster.devicesPerNode = devices; // idle devices gain nothing
    const PartitionResult equal = solvePartition(chain);
    MixedProblem problem;
    problem.chain = chain;
    problem.pools = {poolOf(chain, "only", devices, devices, 1)};
    const MixedResult found = solveMixed(problem);
    ASSERT_EQ(found.partition.has_value(), equal.partition.has_value());
    if (!found.partition)
      continue;
    EXPECT_EQ(found.partition->time, equal.partition->objective);
    ++compared;
  }
  EXPECT_GT(compared, 100);
}

TEST(MixedStages, FastDevicesGetMoreOfTheModel) {
  GptChainShape shape;
  shape.blocks = 12;
  MixedProblem problem;
  problem.chain = gptChain(shape);
  problem.chain.replicas = 4;
  problem.pools = {poolOf(problem.chain, "fast", 8, 8, 1),
                   poolOf(problem.chain, "slow", 8, 8, 3)};
  for (DevicePool &pool : problem.pools)
    pool.memory = 0;
  const MixedResult found = solveMixed(problem);
  ASSERT_TRUE(found.partition.has_value());
  EXPECT_EQ(found.partition->method, "exact");
  EXPECT_EQ(verify(problem, *found.partition).value_or(""), "");
  int64_t segments[2] = {0, 0}, stages[2] = {0, 0};
  for (const MixedStage &stage : found.partition->stages) {
    segments[stage.pool] += stage.end - stage.begin;
    ++stages[stage.pool];
  }
  ASSERT_GT(stages[0], 0);
  ASSERT_GT(stages[1], 0);
  EXPECT_GT(segments[0] * stages[1], 2 * segments[1] * stages[0]);
}

TEST(MixedStages, PaysForTheCheapDevices) {
  GptChainShape shape;
  shape.blocks = 4;
  MixedProblem problem;
  problem.chain = gptChain(shape);
  problem.pools = {poolOf(problem.chain, "fast", 4, 4, 1),
                   poolOf(problem.chain, "slow", 4, 4, 2)};
  for (DevicePool &pool : problem.pools)
    pool.memory = 0;
  problem.pools[0].price = 8000000; // four times the price, twice the speed
  problem.pools[1].price = 2000000;
  MixedResult fastest = solveMixed(problem);
  problem.objective = StageObjective::Price;
  MixedResult cheapest = solveMixed(problem);
  ASSERT_TRUE(fastest.partition && cheapest.partition);
  EXPECT_LT(fastest.partition->time, cheapest.partition->time);
  EXPECT_GT(fastest.partition->price(), cheapest.partition->price());
  for (const MixedStage &stage : cheapest.partition->stages)
    EXPECT_EQ(problem.pools[stage.pool].kind, "slow");
}

TEST(MixedStages, SaysWhatWouldFit) {
  GptChainShape shape;
  shape.blocks = 4;
  MixedProblem problem;
  problem.chain = gptChain(shape);
  problem.pools = {poolOf(problem.chain, "big", 1, 1, 1),
                   poolOf(problem.chain, "small", 2, 1, 1)};
  problem.pools[0].memory = Bytes(2) << 30;
  problem.pools[1].memory = Bytes(1) << 30;
  const MixedResult found = solveMixed(problem);
  ASSERT_FALSE(found.partition.has_value());
  EXPECT_FALSE(found.outOfWork);
  EXPECT_NE(found.infeasible.reason.find("'big'"), std::string::npos)
      << found.infeasible.reason;
  ASSERT_FALSE(found.infeasible.waysOut.empty());
  bool tried = false;
  for (const MixedWay &way : found.infeasible.waysOut) {
    // "give every 'KIND' at least N GiB": taken at its word, it must do.
    const size_t at = way.text.find("at least ");
    if (at == std::string::npos)
      continue;
    ASSERT_GE(way.pool, 0);
    MixedProblem changed = problem;
    changed.pools[way.pool].memory =
        Bytes(std::stod(way.text.substr(at + 9)) * double(Bytes(1) << 30) + 1);
    EXPECT_TRUE(solveMixed(changed, 1 << 22).partition.has_value()) << way.text;
    tried = true;
  }
  EXPECT_TRUE(tried);
}

TEST(MixedStages, RefusesWhatCannotBe) {
  MixedProblem problem = randomMixed(1);
  MixedProblem changed = problem;
  changed.pools.clear();
  EXPECT_TRUE(changed.check().has_value());
  changed = problem;
  changed.pools[0].devices = changed.pools[0].devicesPerNode + 1;
  changed.pools[0].devicesPerNode = 2 * changed.pools[0].devices;
  EXPECT_TRUE(changed.check().has_value());
  changed = problem;
  changed.pools[0].time.pop_back();
  EXPECT_TRUE(changed.check().has_value());
  changed = problem;
  changed.pools[0].price = -1;
  EXPECT_TRUE(solveMixed(changed).infeasible.reason.find("price") !=
              std::string::npos);
}

TEST(MixedStages, ChecksEveryFigure) {
  int tampered = 0;
  for (uint64_t seed = 0; seed < 100; ++seed) {
    const MixedProblem problem = randomMixed(seed);
    const MixedResult found = solveMixed(problem);
    if (!found.partition)
      continue;
    MixedPartition wrong = *found.partition;
    switch (seed % 6) {
    case 0:
      wrong.time += 1;
      break;
    case 1:
      wrong.rate += 1;
      break;
    case 2:
      wrong.stages.back().end -= 1;
      break;
    case 3:
      wrong.stages[0].firstDevice = 100;
      break;
    case 4:
      wrong.stages[0].memory += 1;
      break;
    default:
      wrong.bound = wrong.time + 1;
    }
    EXPECT_TRUE(verify(problem, wrong).has_value()) << seed;
    ++tampered;
  }
  EXPECT_GT(tampered, 40);
}

} // namespace
