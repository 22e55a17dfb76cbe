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
       {"model", "cluster", "schedule", "compiler", "input_hash",
        "source_of_costs", "ranks", "micro_batches", "micro_batch_samples",
        "global_batch", "parameters", "step_time_ns", "bound_ns",
        "objective_ns", "gap", "bubble", "peak_bytes", "stages"})
    EXPECT_TRUE(report.contains(key)) << key;
  const json &stage = report["stages"][0];
  for (const char *key :
       {"role", "stages", "layers", "replicas", "first_rank", "devices",
        "forward_ns", "backward_ns", "update_ns", "peak_bytes",
        "liveness_bytes", "capacity_bytes", "memory_bytes", "in_flight"})
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
