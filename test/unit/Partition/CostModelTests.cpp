//===- CostModelTests.cpp - small planners against all plans --------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Repeats, widths of layers and sizes of samples: the published cases, and all
// plans of small random problems.
//
//===----------------------------------------------------------------------===//

#include "takt/Partition/Costs/LayerWidths.h"
#include "takt/Partition/Costs/Repeats.h"
#include "takt/Partition/Costs/SampleSizes.h"

#include <gtest/gtest.h>

#include <random>

using namespace takt;
using rt::Nanos;

namespace {

constexpr Nanos kMs = 1000000;

//===----------------------------------------------------------------------===//
// Repeats
//===----------------------------------------------------------------------===//

TEST(Repeats, EightSamplesAreReplicated) {
  // Four layers of 1 ms, twenty times.
  RepeatProblem problem{4 * kMs, 20, 8, 2, 0, 0};
  ASSERT_EQ(problem.check().value_or(""), "");
  const RepeatPlan plan = planRepeats(problem);
  EXPECT_EQ(verify(problem, plan).value_or(""), "");
  EXPECT_EQ(plan.replicas, 2);
  EXPECT_EQ(plan.stages, 1);
  EXPECT_EQ(plan.time, 320 * kMs);
  EXPECT_EQ(repeatTime(problem, 1, 2), 360 * kMs);
  problem.handOff = kMs;
  EXPECT_EQ(repeatTime(problem, 1, 2), 361 * kMs);
}

TEST(Repeats, OneSampleStaysOnOneDevice) {
  RepeatProblem problem{4 * kMs, 20, 1, 2, 0, 0};
  EXPECT_EQ(repeatTime(problem, 1, 2), 80 * kMs);
  RepeatPlan plan = planRepeats(problem);
  EXPECT_EQ(plan.devices(), 1);
  EXPECT_EQ(plan.time, 80 * kMs);
  problem.handOff = kMs;
  EXPECT_EQ(repeatTime(problem, 1, 2), 81 * kMs);
  EXPECT_EQ(planRepeats(problem).devices(), 1);
}

TEST(Repeats, OneStreamIsPipelined) {
  RepeatProblem problem{4 * kMs, 20, 8, 2, kMs, 0};
  problem.maxReplicas = 1;
  const RepeatPlan plan = planRepeats(problem);
  EXPECT_EQ(verify(problem, plan).value_or(""), "");
  EXPECT_EQ(plan.stages, 2);
  EXPECT_EQ(plan.time, 361 * kMs);
}

TEST(Repeats, EqualAllCutsAndShares) {
  std::mt19937 random(21);
  int pipelined = 0, replicated = 0, both = 0;
  for (int round = 0; round < 300; ++round) {
    SCOPED_TRACE(round);
    auto upTo = [&](int n) { return int64_t(random() % unsigned(n + 1)); };
    RepeatProblem problem{1 + upTo(5), 1 + upTo(5), 1 + upTo(5),
                          1 + upTo(5), upTo(4),     0};
    problem.maxReplicas = upTo(3);
    ASSERT_EQ(problem.check().value_or(""), "");
    const RepeatPlan plan = planRepeats(problem);
    EXPECT_EQ(verify(problem, plan).value_or(""), "");
    EXPECT_EQ(plan.time, bruteForceRepeats(problem));
    pipelined += plan.stages > 1;
    if (problem.maxReplicas == 0) {
      EXPECT_EQ(plan.stages, 1); // replicas are never slower
    }
    replicated += plan.replicas > 1;
    both += plan.stages > 1 && plan.replicas > 1;
  }
  EXPECT_GT(pipelined, 5);
  EXPECT_GT(replicated, 50);
  EXPECT_GT(both, 2);
}

TEST(Repeats, FaultsAreFound) {
  EXPECT_TRUE((RepeatProblem{1, 0, 1, 1, 0, 0}.check().has_value()));
  EXPECT_TRUE((RepeatProblem{-1, 1, 1, 1, 0, 0}.check().has_value()));
  EXPECT_TRUE((RepeatProblem{int64_t(1) << 50, 1 << 20, 1, 1, 0, 0}
                   .check()
                   .has_value()));
  const RepeatProblem problem{1, 4, 4, 2, 0, 0};
  RepeatPlan plan = planRepeats(problem);
  plan.time -= 1;
  EXPECT_TRUE(verify(problem, plan).has_value());
  plan = {2, 2, 1};
  EXPECT_TRUE(verify(problem, plan).has_value());
}

//===----------------------------------------------------------------------===//
// Widths
//===----------------------------------------------------------------------===//

/// In units of 0.1: widths 1, 2, 4, 8 of two convolutions and a product.
WidthProblem threeLayers(double limit) {
  WidthProblem problem;
  problem.widths = {1, 2, 4, 8};
  problem.layers = {{"c1", {80, 42, 24, 16}, 1, 0},
                    {"c2", {60, 33, 20, 15}, 2, 0},
                    {"fc", {20, 14, 12, 13}, 6, 0}};
  problem.link.latency = 1; // a change takes two
  problem.limit = limit;
  return problem;
}

struct WidthRow {
  double limit;
  Nanos time, deviceTime;
  std::vector<int64_t> widths;
};

TEST(LayerWidths, TakeThePublishedRows) {
  for (const WidthRow &row :
       {WidthRow{1, 160, 160, {1, 1, 1}}, WidthRow{1.25, 84, 190, {4, 2, 1}},
        WidthRow{1.5, 69, 208, {4, 4, 1}}, WidthRow{2, 63, 244, {8, 4, 1}},
        WidthRow{4, 54, 344, {8, 8, 4}}, WidthRow{0, 53, 424, {8, 8, 8}}}) {
    SCOPED_TRACE(row.limit);
    const WidthProblem problem = threeLayers(row.limit);
    const auto plan = solveWidths(problem);
    ASSERT_TRUE(plan.has_value());
    EXPECT_EQ(verify(problem, *plan).value_or(""), "");
    EXPECT_EQ(plan->widths, row.widths);
    EXPECT_EQ(plan->time, row.time);
    EXPECT_EQ(plan->deviceTime, row.deviceTime);
  }
}

TEST(LayerWidths, SlackIsWhatNarrowLayersLeave) {
  const WidthProblem problem = threeLayers(1.25);
  const auto plan = solveWidths(problem);
  ASSERT_TRUE(plan.has_value());
  // c2 leaves two of four for 35, fc three for 20.
  EXPECT_EQ(idleDeviceTime(problem, *plan), 2 * 35 + 3 * 20);
}

TEST(LayerWidths, EqualAllWidths) {
  std::mt19937 random(22);
  int changes = 0, infeasible = 0;
  for (int round = 0; round < 400; ++round) {
    SCOPED_TRACE(round);
    auto upTo = [&](int n) { return int64_t(random() % unsigned(n + 1)); };
    WidthProblem problem;
    problem.widths = {1};
    while (int64_t(problem.widths.size()) < 1 + upTo(2))
      problem.widths.push_back(problem.widths.back() * 2);
    for (int64_t l = 1 + upTo(5); l > 0; --l) {
      WidthLayer layer{"layer", {}, upTo(4), 16 * upTo(8)};
      for (const int64_t width : problem.widths)
        layer.time.push_back(
            width > 1 && upTo(9) == 0 ? -1 : upTo(20) + upTo(60) / width);
      problem.layers.push_back(layer);
    }
    problem.link = {"link", upTo(3), 4e9};
    problem.limit = upTo(2) == 0 ? 0 : 0.8 + 0.25 * double(upTo(6));
    ASSERT_EQ(problem.check().value_or(""), "");
    const auto plan = solveWidths(problem);
    const auto best = bruteForceWidths(problem);
    ASSERT_EQ(plan.has_value(), best.has_value());
    infeasible += !plan;
    if (!plan)
      continue;
    EXPECT_EQ(verify(problem, *plan).value_or(""), "");
    EXPECT_EQ(plan->time, best->time);
    EXPECT_EQ(plan->deviceTime, best->deviceTime);
    for (size_t l = 1; l < plan->widths.size(); ++l)
      changes += plan->widths[l] != plan->widths[l - 1];
  }
  EXPECT_GT(changes, 50);
  EXPECT_GT(infeasible, 10);
}

TEST(LayerWidths, FaultsAreFound) {
  auto faultOf = [&](auto change) {
    WidthProblem problem = threeLayers(2);
    change(problem);
    EXPECT_FALSE(solveWidths(problem).has_value());
    return problem.check().value_or("");
  };
  EXPECT_NE(faultOf([](WidthProblem &p) { p.layers.clear(); }), "");
  EXPECT_NE(faultOf([](WidthProblem &p) { p.widths = {2, 4, 8, 16}; }), "");
  EXPECT_NE(faultOf([](WidthProblem &p) { p.layers[1].time.pop_back(); }), "");
  EXPECT_NE(faultOf([](WidthProblem &p) { p.layers[1].time[0] = -1; }), "");
  EXPECT_NE(faultOf([](WidthProblem &p) { p.limit = -1; }), "");
  const WidthProblem problem = threeLayers(2);
  auto plan = *solveWidths(problem);
  plan.widths[2] = 4; // 18 x 4 is more than 2 x 20
  EXPECT_NE(verify(problem, plan).value_or(""), "");
  plan = *solveWidths(problem);
  plan.deviceTime += 1;
  EXPECT_NE(verify(problem, plan).value_or(""), "");
}

//===----------------------------------------------------------------------===//
// Sizes
//===----------------------------------------------------------------------===//

SizedProblem eightLayers() {
  SizedProblem problem;
  for (int work = 1; work <= 8; ++work)
    problem.layers.push_back({double(work), 0});
  problem.speeds = {2, 1};
  return problem;
}

TEST(SampleSizes, SlowDeviceComesFirst) {
  SizedProblem problem = eightLayers();
  auto plan = solveSized(problem);
  ASSERT_TRUE(plan.has_value());
  EXPECT_EQ(verify(problem, *plan).value_or(""), "");
  EXPECT_DOUBLE_EQ(plan->period, 13);
  EXPECT_DOUBLE_EQ(plan->bound, 12);
  ASSERT_EQ(plan->stages.size(), 2u);
  EXPECT_EQ(plan->stages[0].device, 1);
  EXPECT_EQ(plan->stages[0].end, 4);

  problem.freeOrder = false;
  plan = solveSized(problem);
  ASSERT_TRUE(plan.has_value());
  EXPECT_EQ(verify(problem, *plan).value_or(""), "");
  EXPECT_DOUBLE_EQ(plan->period, 14);
  EXPECT_EQ(plan->stages[0].end, 7);
}

TEST(SampleSizes, LargeSamplesMoveTheCut) {
  // A layer of fixed work, then two that follow the sample.
  SizedProblem problem;
  problem.layers = {{4, 0}, {0, 1}, {0, 1}};
  problem.speeds = {1, 1};
  problem.sizes = {1, 1};
  EXPECT_EQ(solveSized(problem)->stages[0].end, 1);
  problem.sizes = {1, 19}; // 10 in the mean
  const auto plan = solveSized(problem);
  EXPECT_EQ(plan->stages[0].end, 2);
  EXPECT_DOUBLE_EQ(plan->period, 14);
  // One by one: max(5, 1) and max(23, 19).
  EXPECT_DOUBLE_EQ(plan->lockstep, 14);
}

TEST(SampleSizes, EqualAllOrdersAndCuts) {
  std::mt19937 random(23);
  int lockstepped = 0, reordered = 0;
  for (int round = 0; round < 300; ++round) {
    SCOPED_TRACE(round);
    auto upTo = [&](int n) { return double(random() % unsigned(n + 1)); };
    SizedProblem problem;
    problem.layers.resize(size_t(1 + upTo(6)));
    for (SizedLayer &layer : problem.layers)
      layer = {upTo(9), upTo(9)};
    problem.sizes.resize(size_t(1 + upTo(3)));
    for (double &size : problem.sizes)
      size = upTo(4);
    problem.speeds.resize(size_t(1 + upTo(3)));
    for (double &speed : problem.speeds)
      speed = 1 + upTo(3);
    problem.freeOrder = upTo(3) != 0;
    ASSERT_EQ(problem.check().value_or(""), "");
    const auto plan = solveSized(problem);
    const auto best = bruteForceSized(problem);
    ASSERT_TRUE(plan.has_value() && best.has_value());
    EXPECT_EQ(verify(problem, *plan).value_or(""), "");
    EXPECT_NEAR(plan->period, best->period, 1e-9);
    EXPECT_GE(plan->period, plan->bound - 1e-9);
    EXPECT_GE(plan->lockstep, plan->period - 1e-9);
    lockstepped += plan->lockstep > plan->period + 1e-9;
    for (size_t s = 0; s < plan->stages.size(); ++s)
      reordered += plan->stages[s].device != int32_t(s);
  }
  EXPECT_GT(lockstepped, 10);
  EXPECT_GT(reordered, 50);
}

TEST(SampleSizes, FaultsAreFound) {
  auto faultOf = [&](auto change) {
    SizedProblem problem = eightLayers();
    change(problem);
    EXPECT_FALSE(solveSized(problem).has_value());
    return problem.check().value_or("");
  };
  EXPECT_NE(faultOf([](SizedProblem &p) { p.layers.clear(); }), "");
  EXPECT_NE(faultOf([](SizedProblem &p) { p.layers[0].fixed = -1; }), "");
  EXPECT_NE(faultOf([](SizedProblem &p) { p.speeds[0] = 0; }), "");
  EXPECT_NE(faultOf([](SizedProblem &p) { p.sizes.clear(); }), "");
  EXPECT_NE(faultOf([](SizedProblem &p) { p.speeds.resize(17, 1); }), "");
  const SizedProblem problem = eightLayers();
  SizedPlan plan = *solveSized(problem);
  std::swap(plan.stages[0].device, plan.stages[1].device);
  EXPECT_NE(verify(problem, plan).value_or(""), "");
  plan = *solveSized(problem);
  plan.stages[1].device = plan.stages[0].device;
  EXPECT_NE(verify(problem, plan).value_or(""), "");
  plan = *solveSized(problem);
  plan.stages.pop_back();
  EXPECT_NE(verify(problem, plan).value_or(""), "");
}

} // namespace
