//===- SplitTests.cpp - cuts of replicas, price, double buffers -----------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Split learning on a published profile and against all cuts; prices against
// all plans; PipeDream-2BW's memory and choice.
//
//===----------------------------------------------------------------------===//

#include "TestData.h"

#include "takt/Frontend/ProfileGraph.h"
#include "takt/Partition/Costs/PerReplicaCuts.h"
#include "takt/Partition/Costs/PricedStages.h"
#include "takt/Partition/Costs/TwoBw.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

using namespace takt;
using test::readProfile;

namespace {

//===----------------------------------------------------------------------===//
// A cut for each replica
//===----------------------------------------------------------------------===//

/// With the input as first layer, which a client may send as it is.
SplitProblem vgg19(double bandwidth) {
  SplitProblem problem;
  problem.layers = readProfile("dapple/vgg-19-pbs-32.txt");
  ProfiledNode input;
  input.forward = 3.4e-3;
  input.outputBytes = 19e6;
  problem.layers.insert(problem.layers.begin(), input);
  problem.clients = {{1, 0}, {4, 0}};
  problem.bandwidth = bandwidth;
  return problem;
}

TEST(PerReplicaCuts, Vgg19OnAWeakAndAStrongClient) {
  for (const double bandwidth : {100e6, 1e9, 5e9}) {
    SCOPED_TRACE(bandwidth);
    const SplitProblem problem = vgg19(bandwidth);
    ASSERT_EQ(problem.layers.size(), 26u);
    const auto plan = solveSplit(problem);
    const auto best = bruteForceSplit(problem);
    ASSERT_TRUE(plan.has_value() && best.has_value());
    EXPECT_EQ(verify(problem, *plan).value_or(""), "");
    EXPECT_NEAR(plan->seconds, best->seconds, 1e-9);
    EXPECT_LE(plan->cuts[0], plan->cuts[1]);
  }
  // At 100 MB/s all activations but the last are too large: the cuts are the
  // same, and the weak client is the slower one on its side. With a faster link
  // it sends its input as it is.
  const auto slow = solveSplit(vgg19(100e6)), fast = solveSplit(vgg19(1e9));
  EXPECT_EQ(slow->cuts, (std::vector<int32_t>{25, 25}));
  EXPECT_NEAR(slow->seconds, 0.150019, 1e-6);
  EXPECT_EQ(fast->cuts, (std::vector<int32_t>{1, 25}));
  EXPECT_LE(clientSeconds(vgg19(1e9), 0, fast->cuts[0]),
            clientSeconds(vgg19(1e9), 1, fast->cuts[1]));
}

std::vector<ProfiledNode> randomLayers(std::mt19937 &random, int most) {
  auto upTo = [&](int n) { return int(random() % unsigned(n + 1)); };
  std::vector<ProfiledNode> layers(size_t(1 + upTo(most - 1)));
  for (ProfiledNode &layer : layers) {
    layer.forward = 0.25 * upTo(8);
    layer.backward = 0.25 * upTo(8);
    layer.outputBytes = 4.0 * upTo(8);
    layer.parameterBytes = 4.0 * upTo(8);
  }
  return layers;
}

TEST(PerReplicaCuts, EqualAllCuts) {
  std::mt19937 random(31);
  int infeasible = 0, unlike = 0;
  for (int round = 0; round < 200; ++round) {
    SCOPED_TRACE(round);
    auto upTo = [&](int n) { return int(random() % unsigned(n + 1)); };
    SplitProblem problem;
    problem.layers = randomLayers(random, 5);
    problem.clients.resize(size_t(1 + upTo(2)));
    for (SplitClient &client : problem.clients)
      client = {double(1 + upTo(3)), upTo(2) == 0 ? 8.0 * (1 + upTo(8)) : 0};
    problem.bandwidth = 4.0 * (1 + upTo(9));
    problem.serverSpeed = upTo(2) * 4.0;
    ASSERT_EQ(problem.check().value_or(""), "");
    const auto plan = solveSplit(problem);
    const auto best = bruteForceSplit(problem);
    ASSERT_EQ(plan.has_value(), best.has_value());
    infeasible += !plan;
    if (!plan)
      continue;
    EXPECT_EQ(verify(problem, *plan).value_or(""), "");
    EXPECT_NEAR(plan->seconds, best->seconds, 1e-9);
    const SplitPlan again = shareBandwidth(problem, plan->cuts);
    EXPECT_NEAR(again.seconds, plan->seconds, 1e-9);
    for (const int32_t cut : plan->cuts)
      unlike += cut != plan->cuts[0];
  }
  EXPECT_GT(infeasible, 5);
  EXPECT_GT(unlike, 20);
}

TEST(PerReplicaCuts, FaultsAreFound) {
  std::mt19937 random(32);
  SplitProblem good;
  good.layers = randomLayers(random, 5);
  good.layers[0].outputBytes = 64;
  good.clients = {{1, 0}, {2, 0}};
  good.bandwidth = 8;
  auto faultOf = [&](auto change) {
    SplitProblem problem = good;
    change(problem);
    EXPECT_FALSE(solveSplit(problem).has_value());
    return problem.check().value_or("");
  };
  EXPECT_NE(faultOf([](SplitProblem &p) { p.layers.clear(); }), "");
  EXPECT_NE(faultOf([](SplitProblem &p) { p.clients.clear(); }), "");
  EXPECT_NE(faultOf([](SplitProblem &p) { p.clients[0].speed = 0; }), "");
  EXPECT_NE(faultOf([](SplitProblem &p) { p.bandwidth = 0; }), "");
  EXPECT_NE(faultOf([](SplitProblem &p) { p.serverSpeed = -1; }), "");
  SplitPlan plan = *solveSplit(good);
  plan.seconds *= 0.99;
  EXPECT_NE(verify(good, plan).value_or(""), "");
  plan = *solveSplit(good);
  plan.shares[0] += good.bandwidth;
  EXPECT_NE(verify(good, plan).value_or(""), "");
  plan = *solveSplit(good);
  plan.cuts[0] = 0;
  EXPECT_NE(verify(good, plan).value_or(""), "");
}

//===----------------------------------------------------------------------===//
// Price
//===----------------------------------------------------------------------===//

TEST(PricedStages, PassesOfStorage) {
  const double plain[] = {2, 2.5, 2.75, 2.875};
  for (int i = 0; i < 4; ++i) {
    EXPECT_DOUBLE_EQ(storagePasses(2 << i, false), plain[i]);
    EXPECT_DOUBLE_EQ(storagePasses(2 << i, true), 2);
    // A duplex link wins what the plain passes are more than two.
    EXPECT_DOUBLE_EQ(storagePasses(2 << i, false) / storagePasses(2 << i, true),
                     plain[i] / 2);
  }
  EXPECT_EQ(storagePasses(1, true), 0);
}

/// Figures are powers of two, so that sums are exact in any order.
PricedProblem randomPriced(std::mt19937 &random) {
  auto upTo = [&](int n) { return int(random() % unsigned(n + 1)); };
  PricedProblem problem;
  problem.layers = randomLayers(random, 6);
  for (int c = 1 + upTo(2); c > 0; --c)
    problem.classes.push_back(
        {"class", double(1 << upTo(2)), double(8 << upTo(2)),
         upTo(2) == 0 ? 64.0 + 32 * upTo(8) : 4096.0, double(1 + upTo(6))});
  problem.microBatches = 4;
  problem.replicaOptions = {1};
  if (upTo(1) == 0)
    problem.replicaOptions = {1, 2, 4};
  problem.maxStages = upTo(3);
  problem.duplex = upTo(1) == 0;
  return problem;
}

TEST(PricedStages, ParetoPlansAreThoseOfAllPlans) {
  std::mt19937 random(33);
  int infeasible = 0, several = 0;
  for (int round = 0; round < 300; ++round) {
    SCOPED_TRACE(round);
    const PricedProblem problem = randomPriced(random);
    ASSERT_EQ(problem.check().value_or(""), "");
    const auto plans = paretoPlans(problem);
    const auto all = bruteForcePriced(problem);
    ASSERT_EQ(plans.size(), all.size());
    infeasible += plans.empty();
    several += plans.size() > 2;
    for (size_t i = 0; i < plans.size(); ++i) {
      EXPECT_EQ(verify(problem, plans[i]).value_or(""), "");
      EXPECT_DOUBLE_EQ(plans[i].seconds, all[i].seconds);
      EXPECT_DOUBLE_EQ(plans[i].price, all[i].price);
      if (i > 0) {
        EXPECT_GT(plans[i].seconds, plans[i - 1].seconds);
        EXPECT_LT(plans[i].price, plans[i - 1].price);
      }
    }
    if (plans.empty())
      continue;
    // The ends are the optima of one objective alone.
    EXPECT_DOUBLE_EQ(choosePriced(problem, 1, 0)->seconds,
                     plans.front().seconds);
    EXPECT_DOUBLE_EQ(choosePriced(problem, 0, 1)->price, plans.back().price);
    for (const double weight : {0.25, 1.0, 4.0})
      for (const PricedPlan &plan : all)
        EXPECT_LE(choosePriced(problem, weight, 1)->objective(weight, 1),
                  plan.objective(weight, 1) + 1e-9);
  }
  EXPECT_GT(infeasible, 5);
  EXPECT_GT(several, 50);
}

TEST(PricedStages, RealChainHasAMonotoneFront) {
  PricedProblem problem;
  problem.layers = readProfile("dapple/bert-24-pbs-6.txt");
  problem.classes = {{"small", 0.25, 75e6, 3e9, 0.25},
                     {"middle", 0.5, 150e6, 6e9, 0.5},
                     {"large", 1, 300e6, 12e9, 1}};
  problem.microBatches = 8;
  problem.replicaOptions = {1, 2, 4, 8};
  problem.maxStages = 8;
  const auto plans = paretoPlans(problem);
  ASSERT_GT(plans.size(), 3u);
  for (size_t i = 0; i < plans.size(); ++i) {
    EXPECT_EQ(verify(problem, plans[i]).value_or(""), "");
    if (i > 0) {
      EXPECT_GT(plans[i].seconds, plans[i - 1].seconds);
      EXPECT_LT(plans[i].price, plans[i - 1].price);
    }
  }
}

TEST(PricedStages, FaultsAreFound) {
  std::mt19937 random(34);
  PricedProblem good = randomPriced(random);
  good.classes = {{"only", 1, 8, 1e9, 1}};
  good.maxStages = 0;
  auto faultOf = [&](auto change) {
    PricedProblem problem = good;
    change(problem);
    EXPECT_TRUE(paretoPlans(problem).empty());
    return problem.check().value_or("");
  };
  EXPECT_NE(faultOf([](PricedProblem &p) { p.classes.clear(); }), "");
  EXPECT_NE(faultOf([](PricedProblem &p) { p.classes[0].speed = 0; }), "");
  EXPECT_NE(faultOf([](PricedProblem &p) { p.replicaOptions = {3}; }), "");
  EXPECT_NE(faultOf([](PricedProblem &p) { p.layers[0].forward = -1; }), "");
  PricedPlan plan = *choosePriced(good, 1, 0);
  plan.price *= 0.99;
  EXPECT_NE(verify(good, plan).value_or(""), "");
  plan = *choosePriced(good, 1, 0);
  plan.stages.back().end -= 1;
  EXPECT_NE(verify(good, plan).value_or(""), "");
}

//===----------------------------------------------------------------------===//
// Two buffers of weights
//===----------------------------------------------------------------------===//

/// About a billion parameters on 64 devices of 16 GB in servers of 8.
TwoBwProblem largeModel() {
  TwoBwProblem problem;
  problem.blocks = 32;
  problem.parameterBytes = 5.2e9;
  problem.activationBytesPerSample = 3.2e9;
  problem.inputBytesPerSample = 4e6;
  problem.fixedSeconds = 0.12;
  problem.secondsPerSample = 0.15;
  problem.devices = 64;
  problem.devicesPerServer = 8;
  problem.withinRate = 100e9;
  problem.acrossRate = 3e9;
  problem.memoryBytes = 16e9;
  problem.batch = 512;
  problem.microBatches = {1, 2, 4, 8, 16, 32};
  return problem;
}

TEST(TwoBw, MemoryIsWhatIsPublished) {
  TwoBwProblem problem = largeModel();
  const double w = problem.parameterBytes;
  const double a = 4 * problem.activationBytesPerSample;
  const double in = 4 * problem.inputBytesPerSample;
  EXPECT_DOUBLE_EQ(twoBwMemory(problem, 8, 4, true, 16),
                   2 * w / 8 + a / 8 + 8 * in);
  EXPECT_DOUBLE_EQ(twoBwMemory(problem, 8, 4, false, 16),
                   2 * w / 8 + a + 8 * in);
  problem.schedule = TwoBwSchedule::Flush;
  EXPECT_DOUBLE_EQ(twoBwMemory(problem, 8, 4, true, 16),
                   w / 8 + a / 8 + 8 * in);
  EXPECT_DOUBLE_EQ(twoBwMemory(problem, 8, 4, false, 16), w / 8 + a + 8 * in);
  problem.schedule = TwoBwSchedule::GPipe;
  EXPECT_DOUBLE_EQ(twoBwMemory(problem, 8, 4, true, 16),
                   w / 8 + a / 8 + 16 * in);
}

TEST(TwoBw, VersionsAreDelayedByOne) {
  for (int64_t k = 1; k <= 16; ++k)
    EXPECT_EQ(twoBwVersion(k, 4), k <= 8 ? 0 : k <= 12 ? 1 : 2);
}

/// Throughput written out once more, for all layouts.
TEST(TwoBw, ChoosesTheBestOfAllLayouts) {
  std::mt19937 random(41);
  int recomputed = 0, deep = 0, wide = 0;
  for (int round = 0; round < 200; ++round) {
    SCOPED_TRACE(round);
    auto upTo = [&](int n) { return int(random() % unsigned(n + 1)); };
    TwoBwProblem problem = largeModel();
    problem.blocks = 4 << upTo(2);
    problem.devices = 1 + upTo(15);
    problem.devicesPerServer = 1 << upTo(3);
    problem.memoryBytes = 2e9 * (1 + upTo(8));
    problem.batch = 16 << upTo(4);
    problem.schedule = TwoBwSchedule(upTo(2));
    const auto plan = planTwoBw(problem);
    double best = 0;
    for (int64_t w = 1; w <= problem.devices; ++w)
      for (int64_t d = 1; w * d <= problem.devices; ++d)
        for (const int64_t b : problem.microBatches)
          for (const double slower : {1.0, 4.0 / 3}) {
            if (problem.blocks % d != 0 || b * w * d > problem.batch)
              continue;
            const double m = double(d * (problem.batch / (b * w * d)));
            if (twoBwMemory(problem, d, b, slower > 1, int64_t(m)) >
                problem.memoryBytes)
              continue;
            double t = (0.12 + 0.15 * double(b)) / double(d) * slower;
            if (d > 1)
              t += 2 * 4e6 * double(b) /
                   (w * d <= problem.devicesPerServer ? 100e9 : 3e9);
            const double reduce = 2.0 * double(w - 1) / double(w) * 5.2e9 /
                                  double(d) /
                                  (w <= problem.devicesPerServer ? 100e9 : 3e9);
            t = std::max(t, reduce / m);
            const bool flush =
                problem.schedule != TwoBwSchedule::DoubleBuffered;
            best = std::max(best, double(w * b) * m /
                                      ((m + (flush ? double(d - 1) : 0)) * t));
          }
    ASSERT_EQ(plan.has_value(), best > 0);
    if (!plan)
      continue;
    EXPECT_EQ(verify(problem, *plan).value_or(""), "");
    EXPECT_NEAR(plan->samplesPerSecond, best, 1e-9 * best);
    recomputed += plan->recompute;
    deep += plan->depth > 1;
    wide += plan->replicas > 1;
  }
  EXPECT_GT(recomputed, 5);
  EXPECT_GT(deep, 50);
  EXPECT_GT(wide, 50);
}

TEST(TwoBw, LessMemoryGoesDeeper) {
  TwoBwProblem problem = largeModel();
  const auto roomy = planTwoBw(problem);
  // Two versions of 5.2 GB: at least three stages.
  problem.memoryBytes = 4e9;
  const auto tight = planTwoBw(problem);
  ASSERT_TRUE(roomy.has_value() && tight.has_value());
  EXPECT_GT(tight->depth, roomy->depth);
  EXPECT_TRUE(tight->recompute);
  EXPECT_LT(tight->samplesPerSecond, roomy->samplesPerSecond);
  // One version fits where two do not.
  problem.memoryBytes = 1.2e9;
  problem.blocks = 8;
  EXPECT_FALSE(planTwoBw(problem).has_value());
  problem.schedule = TwoBwSchedule::Flush;
  EXPECT_TRUE(planTwoBw(problem).has_value());
}

TEST(TwoBw, LargeBatchesHideTheAllReduceAndTheFlush) {
  TwoBwProblem problem = largeModel();
  problem.batch = 64;
  const auto small = planTwoBw(problem);
  problem.batch = 2048;
  const auto large = planTwoBw(problem);
  ASSERT_TRUE(small.has_value() && large.has_value());
  EXPECT_GT(large->samplesPerSecond, small->samplesPerSecond);
  problem.schedule = TwoBwSchedule::Flush;
  const auto flushed = planTwoBw(problem);
  problem.batch = 64;
  const auto flushedSmall = planTwoBw(problem);
  ASSERT_TRUE(flushed.has_value() && flushedSmall.has_value());
  EXPECT_LE(flushed->samplesPerSecond, large->samplesPerSecond);
  // (m + d - 1) / m is less with more micro-batches.
  EXPECT_LE(large->samplesPerSecond / flushed->samplesPerSecond,
            small->samplesPerSecond / flushedSmall->samplesPerSecond);
}

TEST(TwoBw, FaultsAreFound) {
  auto faultOf = [&](auto change) {
    TwoBwProblem problem = largeModel();
    change(problem);
    EXPECT_FALSE(planTwoBw(problem).has_value());
    return problem.check().value_or("");
  };
  EXPECT_NE(faultOf([](TwoBwProblem &p) { p.blocks = 0; }), "");
  EXPECT_NE(faultOf([](TwoBwProblem &p) { p.withinRate = 0; }), "");
  EXPECT_NE(faultOf([](TwoBwProblem &p) { p.microBatches = {2, 1}; }), "");
  EXPECT_NE(faultOf([](TwoBwProblem &p) { p.parameterBytes = -1; }), "");
  EXPECT_EQ(faultOf([](TwoBwProblem &p) { p.memoryBytes = 1e6; }), "");
  const TwoBwProblem problem = largeModel();
  TwoBwPlan plan = *planTwoBw(problem);
  plan.samplesPerSecond *= 2;
  EXPECT_NE(verify(problem, plan).value_or(""), "");
  plan = *planTwoBw(problem);
  plan.replicas = 65;
  EXPECT_NE(verify(problem, plan).value_or(""), "");
}

} // namespace
