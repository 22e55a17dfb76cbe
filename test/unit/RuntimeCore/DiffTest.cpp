//===- DiffTest.cpp - two plans side by side --------------------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Each kind of difference by itself, and costs that add up.
//
//===----------------------------------------------------------------------===//
#include "PlanBuilder.h"

#include "takt-rt/core/diff.h"
#include "takt-rt/core/error.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

using namespace takt::rt;
using namespace takt::rt::test;

TEST(Diff, APlanIsTheSameAsItself) {
  Plan plan = makePipeline({});
  PlanDiff diff = diffPlans(plan, plan);
  EXPECT_TRUE(diff.layers.empty() && diff.stages.empty() &&
              diff.orders.empty());
  EXPECT_EQ(diff.before.step, diff.after.step);
  EXPECT_NE(printText(diff).find("the same layers"), std::string::npos);
}

// GPipe holds more and works in another order, for the same step.
TEST(Diff, OrderAndItsCost) {
  PipelineShape shape;
  shape.stages = 3;
  shape.forward = 10;
  shape.backward = 20;
  shape.link = {"l", 5, 0};
  Plan before = makePipeline(shape);
  shape.oneFOneB = false;
  Plan after = makePipeline(shape);
  PlanDiff diff = diffPlans(before, after);
  EXPECT_TRUE(diff.layers.empty());
  ASSERT_EQ(diff.orders.size(), 3u);
  EXPECT_EQ(diff.orders[2].position, 1);
  EXPECT_EQ(diff.orders[2].before, "2B0");
  EXPECT_EQ(diff.orders[2].after, "2F1");
  for (const StepCost &cost : {diff.before, diff.after}) {
    EXPECT_NEAR(cost.compute + cost.bubble + cost.exposed, cost.step, 2);
    EXPECT_EQ(cost.compute, 120);
  }
}

TEST(Diff, SaysThatStepsDoUnequalWork) {
  PipelineShape shape;
  Plan before = makePipeline(shape);
  shape.microBatches *= 2;
  Plan after = makePipeline(shape);
  PlanDiff diff = diffPlans(before, after);
  EXPECT_EQ(diff.samplesAfter, 2 * diff.samplesBefore);
  EXPECT_NE(printText(diff).find("a step takes 48 samples -> 96"),
            std::string::npos)
      << printText(diff);
  auto json = nlohmann::json::parse(toJson(diff));
  EXPECT_EQ(json["after"]["micro_batches"], 8);
}

TEST(Diff, RefusesPlansOfOtherModels) {
  Plan before = makePipeline({}), after = makePipeline({});
  for (LayerInfo &layer : after.layers)
    layer.name = "other_" + layer.name;
  EXPECT_THROW(diffPlans(before, after), Error);
}

TEST(Diff, LayersReplicasAndMemory) {
  PipelineShape shape;
  Plan before = makePipeline(shape);
  shape.replicas = {2, 1};
  Plan after = makePipeline(shape);
  for (Procedure &procedure : after.roles[0].procedures)
    for (Kernel &kernel : procedure.kernels)
      if (kernel.layer == 0)
        kernel.layer = 1;
  PlanDiff diff = diffPlans(before, after);
  ASSERT_EQ(diff.layers.size(), 1u);
  EXPECT_EQ(diff.layers[0].name, "linear0");
  EXPECT_EQ(diff.layers[0].before, 0);
  EXPECT_EQ(diff.layers[0].after, -1);
  ASSERT_EQ(diff.stages.size(), 1u);
  EXPECT_EQ(diff.stages[0].replicasBefore, 1);
  EXPECT_EQ(diff.stages[0].replicasAfter, 2);
  EXPECT_LT(diff.stages[0].bytesAfter, diff.stages[0].bytesBefore);
  auto json = nlohmann::json::parse(toJson(diff));
  EXPECT_EQ(json["stages"][0]["replicas_after"], 2);
  EXPECT_EQ(json["after"]["step_time_ns"], diff.after.step);
}
