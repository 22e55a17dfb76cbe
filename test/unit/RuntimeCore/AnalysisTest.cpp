//===- AnalysisTest.cpp - where a step's time and memory go -----*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Laws that hold for every plan, and small steps worked out by hand.
//
//===----------------------------------------------------------------------===//
#include "PlanBuilder.h"

#include "takt-rt/core/analysis.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <numeric>

using namespace takt::rt;
using namespace takt::rt::test;

/// Shapes with free and slow links, replicas, both schedules, split backwards.
static std::vector<PipelineShape> shapes() {
  std::vector<PipelineShape> all;
  for (bool oneFOneB : {false, true})
    for (bool split : {false, true})
      for (Nanos latency : {0, 3, 40})
        for (const std::vector<int32_t> &replicas :
             {std::vector<int32_t>{1, 1, 1}, {2, 1, 3}, {1}}) {
          PipelineShape shape;
          shape.stages = static_cast<int32_t>(replicas.size());
          shape.microBatches = 5;
          shape.replicas = replicas;
          shape.oneFOneB = oneFOneB;
          shape.splitBackward = split;
          shape.forward = 10;
          shape.backward = 22;
          shape.update = 4;
          shape.link = {"l", latency, latency == 0 ? 0 : 1e9};
          all.push_back(shape);
        }
  return all;
}

TEST(Analysis, TimesOfARankAddUpToTheStep) {
  for (const PipelineShape &shape : shapes()) {
    Plan plan = makePipeline(shape);
    Simulation run = simulate(plan);
    Analysis analysis = analyze(plan, run);
    ASSERT_EQ(analysis.ranks.size(), size_t(plan.numRanks()));
    for (int32_t rank = 0; rank < plan.numRanks(); ++rank) {
      const RankTimes &times = analysis.ranks[rank];
      EXPECT_EQ(times.busy, run.busy[rank]);
      EXPECT_EQ(times.busy + times.bubble + times.exposed, run.makespan);
      Nanos waiting = 0, moving = 0;
      for (const IdlePart &part : times.parts) {
        EXPECT_GE(part.waiting, 0);
        EXPECT_GE(part.moving, 0);
        waiting += part.waiting;
        moving += part.moving;
      }
      EXPECT_EQ(waiting, times.bubble);
      EXPECT_EQ(moving, times.exposed);
      if (shape.link.latency == 0) {
        EXPECT_EQ(times.exposed, 0);
      }
    }
  }
}

TEST(Analysis, CriticalPathHasNoGap) {
  for (const PipelineShape &shape : shapes()) {
    Plan plan = makePipeline(shape);
    Simulation run = simulate(plan);
    Analysis analysis = analyze(plan, run);
    Nanos at = 0;
    for (const PathStep &step : analysis.criticalPath) {
      EXPECT_EQ(step.begin, at);
      at = run.records[step.record].end;
      EXPECT_EQ(analysis.slack[step.record], 0);
    }
    EXPECT_EQ(at, run.makespan);
  }
}

// A call may take its slack longer and no nanosecond more.
TEST(Analysis, SlackIsExact) {
  for (PipelineShape shape : shapes()) {
    if (shape.replicas != std::vector<int32_t>{1, 1, 1})
      continue;
    Plan plan = makePipeline(shape);
    Simulation run = simulate(plan);
    Analysis analysis = analyze(plan, run);
    for (size_t i = 0; i < run.records.size(); i += 3) {
      const Record &record = run.records[i];
      Role &role = plan.roles[record.rank];
      Instr &instr = role.lanes[record.lane].instrs[record.instr];
      if (instr.kind != InstrKind::Call)
        continue;
      Instr before = instr;
      Procedure longer = role.procedures[instr.target];
      longer.cost += analysis.slack[i];
      instr.target = static_cast<uint16_t>(role.procedures.size());
      role.procedures.push_back(longer);
      EXPECT_EQ(simulate(plan).makespan, run.makespan);
      role.procedures.back().cost += 1;
      EXPECT_EQ(simulate(plan).makespan, run.makespan + 1);
      role.procedures.pop_back();
      instr = before;
    }
  }
}

static const IdlePart *partOf(const RankTimes &times, IdleCause cause,
                              int32_t stage = -1) {
  for (const IdlePart &part : times.parts)
    if (part.cause == cause && part.stage == stage)
      return &part;
  return nullptr;
}

// F 10, B 22, a message takes 3:
//   stage 0  F0 0-10, F1 10-20,            B0 48-70 (grad 45-48),
//            B1 80-102 (grad 77-80)
//   stage 1  F0 13-23, B0 23-45, F1 45-55, B1 55-77, then nothing to 102
TEST(Analysis, CausesOfIdleTime) {
  PipelineShape shape;
  shape.microBatches = 2;
  shape.forward = 10;
  shape.backward = 22;
  shape.link = {"l", 3, 0};
  Plan plan = makePipeline(shape);
  Simulation run = simulate(plan);
  ASSERT_EQ(run.makespan, 102);
  Analysis analysis = analyze(plan, run);
  const RankTimes &first = analysis.ranks[0], &second = analysis.ranks[1];
  const IdlePart *part = partOf(second, IdleCause::StartUp);
  ASSERT_TRUE(part);
  EXPECT_EQ(part->waiting, 10);
  EXPECT_EQ(part->moving, 3);
  part = partOf(second, IdleCause::Drain);
  ASSERT_TRUE(part);
  EXPECT_EQ(part->waiting, 25);
  EXPECT_EQ(second.parts.size(), 2u);
  part = partOf(first, IdleCause::Gradient, 1);
  ASSERT_TRUE(part);
  EXPECT_EQ(part->waiting, 25 + 7);
  EXPECT_EQ(part->moving, 3 + 3);
  EXPECT_EQ(first.parts.size(), 1u);
  EXPECT_EQ(first.exposed, 6);
}

// The update waits for the all-reduce: 2 (n - 1) (latency + bytes / n / rate).
TEST(Analysis, AllReduceIsExposed) {
  PipelineShape shape;
  shape.stages = 1;
  shape.replicas = {2};
  shape.link = {"l", 50, 0};
  Plan plan = makePipeline(shape);
  Analysis analysis = analyze(plan, simulate(plan));
  for (const RankTimes &times : analysis.ranks) {
    const IdlePart *part = partOf(times, IdleCause::AllReduce);
    ASSERT_TRUE(part);
    EXPECT_EQ(part->waiting, 0);
    EXPECT_EQ(part->moving, 100);
  }
}

// With one output buffer the second forward waits for the first message to be
// taken.
TEST(Analysis, SlotCredit) {
  PipelineShape shape;
  shape.microBatches = 2;
  shape.forward = 10;
  shape.backward = 22;
  shape.oneFOneB = false;
  shape.link = {"l", 3, 0};
  Plan plan = makePipeline(shape);
  Role &role = plan.roles[0];
  Lane &compute = role.lanes[laneOf(role, LaneKind::Compute)];
  compute.instrs[1].waitBegin = static_cast<uint32_t>(compute.waits.size());
  compute.waits.push_back(
      {static_cast<uint16_t>(laneOf(role, LaneKind::SendAct)), 1});
  compute.instrs[1].waitEnd = static_cast<uint32_t>(compute.waits.size());
  Analysis analysis = analyze(plan, simulate(plan));
  const IdlePart *part = partOf(analysis.ranks[0], IdleCause::SlotCredit, 1);
  ASSERT_TRUE(part);
  EXPECT_EQ(part->moving, 3);
  EXPECT_EQ(part->waiting, 0);
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

TEST(Analysis, MemoryRisesAndReturnsToItsBase) {
  for (const PipelineShape &shape : shapes()) {
    Plan plan = makePipeline(shape);
    Simulation run = simulate(plan);
    std::vector<MemoryCurve> curves = memoryCurves(plan, run.records);
    for (int32_t rank = 0; rank < plan.numRanks(); ++rank) {
      const MemoryCurve &curve = curves[rank];
      const Role &role = plan.roles[plan.roleOf(rank)];
      Bytes base = 0;
      for (const Pool &pool : role.pools)
        if (pool.kind == PoolKind::Weights ||
            pool.kind == PoolKind::Gradients || pool.kind == PoolKind::Loss)
          base += pool.bytes();
      EXPECT_EQ(curve.base, base);
      ASSERT_FALSE(curve.points.empty());
      EXPECT_EQ(curve.points.front().time, 0);
      EXPECT_EQ(curve.points.back().bytes, base);
      EXPECT_LE(curve.points.back().time, run.makespan);
      EXPECT_GT(curve.peak, base);
      EXPECT_LE(curve.peak, role.arenaBytes);
      for (size_t i = 1; i < curve.points.size(); ++i) {
        EXPECT_LT(curve.points[i - 1].time, curve.points[i].time);
        EXPECT_NE(curve.points[i - 1].bytes, curve.points[i].bytes);
      }
    }
  }
}

// The middle one of three stages when its first backward runs: under GPipe it
// holds all 8 inputs, under 1F1B two in flight and one that came early; beside
// them one gradient read and one written.
TEST(Analysis, MemoryOfTheMiddleStage) {
  for (bool oneFOneB : {false, true}) {
    PipelineShape shape;
    shape.stages = 3;
    shape.oneFOneB = oneFOneB;
    shape.microBatches = 8;
    Plan plan = makePipeline(shape);
    Simulation run = simulate(plan);
    Bytes slot = alignUp(plan.channels[0].bytes);
    MemoryCurve curve = memoryCurves(plan, run.records)[1];
    EXPECT_EQ(curve.peak - curve.base, slot * (oneFOneB ? 5 : 10));
  }
}

TEST(Analysis, JsonHoldsWhatTheStructsHold) {
  PipelineShape shape = shapes().back();
  shape.stages = 2;
  shape.replicas = {1, 1};
  Plan plan = makePipeline(shape);
  Simulation run = simulate(plan);
  Analysis analysis = analyze(plan, run);
  auto json = nlohmann::json::parse(toJson(plan, run, analysis));
  EXPECT_EQ(json["step_time_ns"], run.makespan);
  ASSERT_EQ(json["ranks"].size(), 2u);
  EXPECT_EQ(json["ranks"][1]["busy_ns"], analysis.ranks[1].busy);
  EXPECT_EQ(json["ranks"][1]["bubble_ns"], analysis.ranks[1].bubble);
  EXPECT_EQ(json["ranks"][0]["memory"]["peak_bytes"], analysis.memory[0].peak);
  EXPECT_EQ(json["ranks"][0]["memory"]["curve"].size(),
            analysis.memory[0].points.size());
  EXPECT_EQ(json["critical_path"].back()["end_ns"], run.makespan);
  EXPECT_EQ(json["critical_path"].size(), analysis.criticalPath.size());
}
