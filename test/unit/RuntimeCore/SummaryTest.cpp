//===- SummaryTest.cpp - the report on a plan -------------------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Figures against the plan they are read off, and the documented JSON keys.
//
//===----------------------------------------------------------------------===//
#include "PlanBuilder.h"

#include "takt-rt/core/clock.h"
#include "takt-rt/core/summary.h"
#include "takt-rt/core/units.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

using namespace takt::rt;
using namespace takt::rt::test;
using nlohmann::json;

static Plan smallPlan() {
  PipelineShape shape;
  shape.stages = 3;
  shape.microBatches = 4;
  shape.replicas = {2, 1, 1};
  shape.splitBackward = true;
  shape.forward = 1000;
  shape.backward = 2000;
  Plan plan = makePipeline(shape);
  plan.predictedStep = simulate(plan).makespan;
  plan.objectiveStep = 18000;
  plan.boundStep = 16000;
  return plan;
}

TEST(Summary, FiguresOfAPlan) {
  Plan plan = smallPlan();
  Summary summary = summarize(plan);
  // W is off the critical path of the last ranks: the step is what the clock
  // says, the idle share what is left of it.
  EXPECT_EQ(summary.step, simulate(plan).makespan);
  EXPECT_NEAR(*summary.bubble, 1 - 4.0 * 3000 / double(summary.step), 1e-12);
  EXPECT_DOUBLE_EQ(*summary.gap, 0.125);
  EXPECT_EQ(summary.parameters, 3 * 256);
  ASSERT_EQ(summary.stages.size(), 3u);
  const StageSummary &last = summary.stages[2];
  EXPECT_EQ(last.layers, (std::vector<std::string>{"linear2", "loss"}));
  EXPECT_EQ(last.forward, 1000);
  EXPECT_EQ(last.backward, 2000);
  EXPECT_EQ(last.devices, (std::vector<int32_t>{3}));
  EXPECT_EQ(last.peakBytes, plan.roles[2].arenaBytes);
  Bytes sum = 0;
  for (auto [kind, bytes] : last.memory)
    sum += bytes;
  EXPECT_EQ(sum, last.peakBytes);
}

TEST(Summary, UnknownFiguresAreLeftOut) {
  Plan plan = smallPlan();
  plan.predictedStep = plan.boundStep = 0;
  Summary summary = summarize(plan);
  EXPECT_FALSE(summary.gap || summary.bubble);
  EXPECT_NE(printText(summary).find("not predicted"), std::string::npos);
  json report = json::parse(toJson(summary));
  EXPECT_TRUE(report["gap"].is_null());
  EXPECT_TRUE(report["bubble"].is_null());
}

/// Two nodes of two kinds; the first has two devices.
static Plan mixedPlan() {
  Plan plan = smallPlan();
  NodeResources fast, slow;
  fast.devices = 2;
  fast.kind = "fast one";
  fast.price = 2'500'000;
  slow.devices = 2;
  slow.kind = "slow";
  slow.price = 250'000;
  plan.resources = {fast, slow};
  return plan;
}

TEST(Summary, KindsAndPrices) {
  const Plan plan = mixedPlan();
  const Summary summary = summarize(plan);
  EXPECT_EQ(summary.stages[0].kind, "fast one");
  EXPECT_EQ(summary.stages[2].kind, "slow");
  EXPECT_EQ(kindAmongSeveral(plan, plan.roles[2]), "slow");
  ASSERT_TRUE(summary.pricePerHour);
  EXPECT_DOUBLE_EQ(*summary.pricePerHour, 2 * 2.5 + 2 * 0.25);
  json report = json::parse(toJson(summary));
  EXPECT_DOUBLE_EQ(report["price_per_step"],
                   5.5 * double(summary.step) / 3600e9);
  EXPECT_EQ(report["stages"][0]["kind"], "fast one");
  EXPECT_DOUBLE_EQ(report["resources"][1]["price_per_hour"], 0.25);
  std::string text = printText(summary);
  EXPECT_NE(text.find("5.5 an hour"), std::string::npos) << text;
  EXPECT_NE(text.find("kind"), std::string::npos) << text;
}

TEST(Summary, PricesThatAreNotKnownAreLeftOut) {
  Plan plan = mixedPlan();
  plan.resources[1].price = 0;
  plan.resources[1].kind = plan.resources[0].kind;
  const Summary summary = summarize(plan);
  EXPECT_FALSE(summary.pricePerHour);
  EXPECT_TRUE(json::parse(toJson(summary))["price_per_step"].is_null());
  // All of one kind: nothing to tell apart.
  EXPECT_EQ(kindAmongSeveral(plan, plan.roles[0]), "");
  EXPECT_EQ(printText(summary).find("kind"), std::string::npos);
}

TEST(Summary, TextHasARowAStage) {
  std::string text = printText(summarize(smallPlan()));
  EXPECT_NE(text.find("model     linear-chain (768 parameters) on test\n"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("1f1b: 4 micro-batches of 12 samples on 4 ranks\n"),
            std::string::npos);
  EXPECT_NE(text.find("bound 16 us, gap 12.5 %\n"), std::string::npos);
  EXPECT_NE(text.find("linear2..loss (2)"), std::string::npos);
  // SGD keeps no optimizer state, so there is no column for it.
  EXPECT_EQ(text.find("optimizer"), std::string::npos);
}

TEST(Summary, JsonKeysStayAsDocumented) {
  json report = json::parse(toJson(summarize(smallPlan())));
  for (const char *key :
       {"model",         "cluster",       "schedule",
        "compiler",      "input_hash",    "source_of_costs",
        "ranks",         "micro_batches", "micro_batch_samples",
        "global_batch",  "parameters",    "step_time_ns",
        "bound_ns",      "objective_ns",  "gap",
        "bubble",        "peak_bytes",    "stages",
        "proof",         "resources",     "price_per_hour",
        "price_per_step"})
    EXPECT_TRUE(report.contains(key)) << key;
  const json &stage = report["stages"][0];
  for (const char *key : {"role", "stages", "layers", "replicas", "first_rank",
                          "devices", "forward_ns", "backward_ns", "update_ns",
                          "peak_bytes", "liveness_bytes", "capacity_bytes",
                          "memory_bytes", "in_flight", "kind"})
    EXPECT_TRUE(stage.contains(key)) << key;
  EXPECT_EQ(stage["peak_bytes"].size(), 2u);
  EXPECT_EQ(stage["peak_bytes"][1], report["peak_bytes"][0]);
  EXPECT_EQ(stage["memory_bytes"]["weights"], 1024);
}

TEST(Units, TimesSizesAndRanges) {
  EXPECT_EQ(formatNanos(0), "0 ns");
  EXPECT_EQ(formatNanos(999), "999 ns");
  EXPECT_EQ(formatNanos(1500), "1.5 us");
  EXPECT_EQ(formatNanos(12'345'678), "12.35 ms");
  EXPECT_EQ(formatNanos(123'456'000'000'000), "123456 s");
  EXPECT_EQ(formatBytes(1023), "1023 B");
  EXPECT_EQ(formatBytes(80ll << 30), "80 GiB");
  EXPECT_EQ(formatShare(0.125), "12.5 %");
  EXPECT_EQ(formatRanges({0, 1, 2, 5, 7, 8}), "0-2, 5, 7-8");
  EXPECT_EQ(formatRanges({}), "");
}
