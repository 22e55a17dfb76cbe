//===- SkipTest.cpp - cuts that several values cross ----------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Random models with values read by layers near and far, cut anywhere: the plan
// is sound, proven and runs, and trains to the bits of one stage.
//
//===----------------------------------------------------------------------===//
#include "TestModels.h"

#include "takt-rt/core/clock.h"
#include "takt-rt/core/proof.h"
#include "takt-rt/host/trainer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>

using namespace takt;
using namespace takt::test;

namespace {

rt::Plan provenPlan(const LoweringProblem &problem) {
  EXPECT_EQ(problem.check(), std::nullopt);
  rt::Plan plan = lower(problem);
  std::vector<std::string> faults = rt::checkStructure(plan);
  EXPECT_TRUE(faults.empty()) << faults.front();
  rt::Proof proof = rt::certify(plan);
  EXPECT_TRUE(proof.holds()) << rt::proofText(proof);
  return plan;
}

struct Trained {
  std::vector<double> losses;
  rt::TensorMap weights;
};

Trained train(const rt::Plan &plan, int steps) {
  std::unique_ptr<rt::Source> source = rt::syntheticSource(plan);
  rt::Trainer trainer(plan, *source);
  Trained trained;
  for (int i = 0; i < steps; ++i)
    trained.losses.push_back(trainer.step().loss);
  trained.weights = trainer.weights();
  return trained;
}

/// `count` different layers before which a stage begins.
std::vector<int32_t> randomCuts(std::mt19937_64 &random, const Graph &graph,
                                size_t count) {
  std::vector<int32_t> cuts;
  while (cuts.size() < count) {
    auto cut = int32_t(1 + random() % (graph.layers.size() - 1));
    if (std::find(cuts.begin(), cuts.end(), cut) == cuts.end())
      cuts.push_back(cut);
  }
  std::sort(cuts.begin(), cuts.end());
  return cuts;
}

void expectSame(const Trained &one, const Trained &many) {
  EXPECT_EQ(one.losses, many.losses);
  ASSERT_EQ(one.weights.size(), many.weights.size());
  for (const auto &[name, tensor] : one.weights)
    EXPECT_EQ(tensor.values, many.weights.at(name).values) << name;
}

} // namespace

TEST(Skips, ManyCutsAreCrossedBySeveralValues) {
  int64_t cuts = 0, several = 0;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    Graph graph = makeSkips(seed, 10, 4);
    EXPECT_EQ(graph.check(), std::nullopt);
    for (int32_t l = 1; l < int32_t(graph.layers.size()); ++l) {
      ++cuts;
      several += crossingValues(graph, l).size() > 1;
    }
  }
  EXPECT_GT(2 * several, cuts);
}

TEST(Skips, EveryCutTrainsToTheBitsOfOneStage) {
  for (uint64_t seed = 0; seed < 24; ++seed) {
    std::mt19937_64 random(seed);
    Graph graph = makeSkips(seed, int(4 + random() % 8), 4);
    const int32_t microBatches = 1 + random() % 4;
    Trained one = train(
        provenPlan(cutBefore(graph, {}, microBatches, {1}, "gpipe")), 4);
    for (size_t stages = 2; stages <= 4; ++stages) {
      const std::string schedule = random() % 2 ? "gpipe" : "1f1b";
      std::vector<int32_t> cuts = randomCuts(random, graph, stages - 1);
      SCOPED_TRACE(testing::Message() << "seed " << seed << ", " << stages
                                      << " stages, " << schedule);
      rt::Plan plan =
          provenPlan(cutBefore(graph, cuts, microBatches,
                               std::vector<int32_t>(stages, 1), schedule));
      expectSame(one, train(plan, 4));
    }
  }
}

TEST(Skips, ReplicasMayDifferBetweenStages) {
  for (uint64_t seed = 0; seed < 12; ++seed) {
    std::mt19937_64 random(seed + 100);
    Graph graph = makeSkips(seed, 8, 4);
    std::vector<int32_t> replicas;
    for (int s = 0; s < 3; ++s)
      replicas.push_back(1 << random() % 3);
    rt::Plan plan = provenPlan(cutBefore(graph, randomCuts(random, graph, 2), 3,
                                         replicas, "1f1b"));
    Trained one = train(provenPlan(cutBefore(graph, {}, 3, {1}, "gpipe")), 4);
    Trained many = train(plan, 4);
    for (size_t i = 0; i < one.losses.size(); ++i)
      EXPECT_NEAR(one.losses[i], many.losses[i], 1e-5 * one.losses[i]);
  }
}

TEST(Skips, SeveralStagesARankHandTheirValuesOver) {
  for (uint64_t seed = 0; seed < 12; ++seed) {
    std::mt19937_64 random(seed + 200);
    Graph graph = makeSkips(seed, 10, 4);
    LoweringProblem flat =
        cutBefore(graph, randomCuts(random, graph, 3), 4, {1, 1, 1, 1}, "1f1b");
    Trained one = train(provenPlan(cutBefore(graph, {}, 4, {1}, "gpipe")), 4);
    for (bool split : {false, true}) {
      expectSame(one, train(provenPlan(placeStages(
                                flat, interleaved(2, 2, 4, split))),
                            4));
      expectSame(one,
                 train(provenPlan(placeStages(flat, vShaped(2, 4, split))), 4));
    }
  }
}

TEST(Skips, AValueThatPassesThroughIsSentOnce) {
  // in reads x; the far sum reads it again in the last of three stages.
  Graph graph = makeSkips(3, 9, 4);
  for (int32_t l = 2; l + 1 < int32_t(graph.layers.size()); ++l) {
    LoweringProblem problem =
        cutBefore(graph, {l - 1, l}, 2, {1, 1, 1}, "1f1b");
    rt::Plan plan = provenPlan(problem);
    size_t values = crossingValues(graph, l - 1).size() +
                    crossingValues(graph, l).size();
    size_t channels = 0;
    for (const rt::Channel &channel : plan.channels)
      channels += channel.kind == rt::ChannelKind::Activation;
    EXPECT_EQ(channels, values);
  }
}
