//===- TimedPlanTest.cpp - published schedules under the clock ------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Makespans, spans and held activations of schedules that others computed or
// measured, from plans that hold nothing but times.
//
//===----------------------------------------------------------------------===//
#include "takt/Lower/TimedPlan.h"

#include "takt-rt/core/analysis.h"
#include "takt-rt/core/clock.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <cmath>
#include <fstream>

using namespace takt;
using nlohmann::json;
using rt::Nanos;

static json readData(const std::string &name) {
  std::ifstream file(std::string(TAKT_TEST_DATA) + "/" + name);
  return json::parse(file);
}

static Nanos nanos(double milliseconds) {
  return std::llround(milliseconds * 1e6);
}

static rt::Simulation run(const TimedPlanProblem &problem) {
  auto fault = problem.check();
  EXPECT_FALSE(fault) << *fault;
  rt::Plan plan = timedPlan(problem);
  auto faults = rt::checkStructure(plan);
  EXPECT_TRUE(faults.empty()) << faults.front();
  return rt::simulate(plan);
}

/// Longest time from the begin of a rank's first call to the end of its last.
static Nanos longestSpan(const rt::Simulation &run) {
  size_t ranks = run.busy.size();
  std::vector<Nanos> first(ranks, INT64_MAX), last(ranks, 0);
  for (const rt::Record &record : run.records)
    if (record.lane == 0) {
      first[record.rank] = std::min(first[record.rank], record.begin);
      last[record.rank] = std::max(last[record.rank], record.end);
    }
  Nanos longest = 0;
  for (size_t r = 0; r < ranks; ++r)
    longest = std::max(longest, last[r] - first[r]);
  return longest;
}

static TimedPlanProblem problemOf(const json &row, const char *schedule) {
  TimedPlanProblem problem;
  problem.shape.stages = row["stages"];
  problem.shape.microBatches = row["microbatches"];
  problem.schedule = *generateSchedule(schedule, problem.shape);
  return problem;
}

TEST(TimedPlan, UniformSchedules) {
  json data = readData("schedules/expected-uniform.json");
  ASSERT_GE(data["cases"].size(), 30u);
  for (const json &row : data["cases"])
    for (const char *name : {"gpipe", "1f1b"}) {
      SCOPED_TRACE(row.dump().substr(0, 80) + name);
      TimedPlanProblem problem = problemOf(row, name);
      ActionTimes times;
      times.forward = nanos(row["F"]);
      times.inputGrad = nanos(row["I"]);
      times.weightGrad = nanos(row["W"]);
      problem.times = {times};
      problem.transfer = nanos(row["comm"]);
      rt::Simulation simulation = run(problem);
      const json &expected = row[name];
      EXPECT_EQ(simulation.makespan, nanos(expected["makespan"]));
      EXPECT_EQ(longestSpan(simulation), nanos(expected["longest_rank_span"]));
      EXPECT_EQ(simulation.peakInFlight,
                expected["peak_in_flight"].get<std::vector<int32_t>>());
    }
}

static void setStageTimes(TimedPlanProblem &problem, const json &row) {
  for (size_t s = 0; s < row["forward_ms"].size(); ++s) {
    Nanos backward = nanos(row["backward_ms"][s]);
    problem.times.push_back({nanos(row["forward_ms"][s]), 0, 0, backward});
  }
}

TEST(TimedPlan, ProfiledStages) {
  json data = readData("schedules/expected-on-profiles.json");
  ASSERT_GE(data["cases"].size(), 36u);
  for (const json &row : data["cases"])
    for (std::string name : {"gpipe", "1f1b"}) {
      SCOPED_TRACE(row["profile"].get<std::string>() + " " + name);
      TimedPlanProblem problem = problemOf(row, name.c_str());
      setStageTimes(problem, row);
      rt::Simulation simulation = run(problem);
      EXPECT_EQ(simulation.makespan, nanos(row[name + "_ms"]));
      EXPECT_GE(simulation.makespan, nanos(row["lower_bound_ms"]));
      if (name != "1f1b")
        continue;
      EXPECT_EQ(simulation.peakInFlight,
                row["1f1b_peak_in_flight"].get<std::vector<int32_t>>());
    }
}

// What eight A100 took, from the measured times of their stages.
TEST(TimedPlan, MeasuredIterations) {
  json data = readData("vocab-parallel/expected-1f1b.json");
  ASSERT_EQ(data.size(), 8u);
  for (const json &row : data) {
    SCOPED_TRACE(row["case"].get<std::string>());
    TimedPlanProblem problem = problemOf(row, "1f1b");
    setStageTimes(problem, row);
    double milliseconds = run(problem).makespan / 1e6;
    double measured = row["measured_iteration_ms"];
    EXPECT_NEAR(milliseconds / measured, 1, 0.02);
    EXPECT_NEAR(milliseconds, row["simulated_1f1b_ms"].get<double>(), 1e-3);
  }
}

TEST(TimedPlan, ZeroBubbleRates) {
  json data = readData("zero-bubble/published-bubble-rates.json");
  ASSERT_EQ(data["cases"].size(), 2u);
  for (const json &row : data["cases"]) {
    SCOPED_TRACE(row["model"].get<std::string>());
    TimedPlanProblem problem = problemOf(row, "1f1b");
    problem.times = {{nanos(row["T_F_ms"]), nanos(row["T_B_input_ms"]),
                      nanos(row["T_W_ms"]), -1}};
    problem.transfer = nanos(row["T_comm_ms"]);
    rt::Simulation simulation = run(problem);
    double makespan = double(simulation.makespan);
    double rate = (makespan - double(simulation.busy[0])) / makespan;
    double published = row["published_bubble_rate"]["1F1B"];
    EXPECT_EQ(std::llround(rate * 1e4), std::llround(published * 1e4));
    EXPECT_NEAR(makespan / 1e6, row["cost_ms"]["1F1B"].get<double>(), 1e-3);
  }
}

//===----------------------------------------------------------------------===//
// Several stages a rank
//===----------------------------------------------------------------------===//

/// Two ranks, four stages in a V: 0 and 3 on rank 0, 1 and 2 on rank 1.
static TimedPlanProblem vShape() {
  TimedPlanProblem problem;
  problem.shape = {4, 1};
  problem.times = {{1, 2, 3, -1}};
  using K = ActionKind;
  problem.schedule.name = "v";
  problem.schedule.roles = {
      {{0, K::F, 0}, {3, K::F, 0}, {3, K::B, 0}, {0, K::I, 0}, {0, K::W, 0}},
      {{1, K::F, 0}, {2, K::F, 0}, {2, K::I, 0}, {1, K::B, 0}, {2, K::W, 0}}};
  return problem;
}

// Only the messages between ranks take time: 4 forwards, B, I, B, I, W with
// 0 -> 1, 2 -> 3, 3 -> 2 and 1 -> 0 crossing.
TEST(TimedPlan, StagesOfOneRankExchangeNothing) {
  TimedPlanProblem problem = vShape();
  for (Nanos transfer : {0, 10}) {
    problem.transfer = transfer;
    rt::Simulation simulation = run(problem);
    EXPECT_EQ(simulation.makespan, 4 + 5 + 2 + 5 + 2 + 3 + 4 * transfer);
    EXPECT_EQ(simulation.peakInFlight, (std::vector<int32_t>{2, 2}));
  }
  rt::Plan plan = timedPlan(problem);
  EXPECT_EQ(plan.channels.size(), 4u);
  std::vector<std::string> sends;
  for (const rt::Lane &lane : plan.roles[1].lanes)
    for (const rt::Instr &instr : lane.instrs)
      if (instr.kind != rt::InstrKind::Call)
        sends.push_back(rt::actionText(plan, plan.roles[1], instr));
  EXPECT_EQ(sends, (std::vector<std::string>{"1RECV_F0", "1SEND_B0",
                                             "2SEND_F0", "2RECV_B0"}));
  EXPECT_EQ(plan.roles[0].stages, (std::vector<int32_t>{0, 3}));
}

TEST(TimedPlan, RefusesWhatIsNotAProblem) {
  TimedPlanProblem problem = vShape();
  problem.times.resize(3);
  EXPECT_NE(problem.check()->find("times of 3 stages"), std::string::npos);
  problem = vShape();
  problem.transfer = -1;
  EXPECT_NE(problem.check()->find("-1 ns"), std::string::npos);
  problem = vShape();
  problem.schedule.roles[0].pop_back();
  EXPECT_NE(problem.check()->find("0W0"), std::string::npos);
  problem = vShape();
  problem.activationBytes = 0;
  EXPECT_NE(problem.check()->find("0 bytes"), std::string::npos);
}

// What a stage holds shows in the curve of its rank: activations as F and B
// come and go, each message from its move to the call that uses it.
TEST(TimedPlan, MemoryFollowsTheSchedule) {
  TimedPlanProblem problem;
  problem.shape = {3, 6};
  problem.schedule = *generateSchedule("1f1b", problem.shape);
  problem.times = {{10, 10, 10, -1}};
  problem.activationBytes = 1 << 20;
  rt::Plan plan = timedPlan(problem);
  std::vector<rt::MemoryCurve> curves =
      rt::memoryCurves(plan, rt::simulate(plan).records);
  for (int32_t rank = 0; rank < 3; ++rank) {
    EXPECT_EQ(curves[rank].base, 0);
    EXPECT_EQ(curves[rank].peak >> 20, 3 - rank);
    EXPECT_EQ(curves[rank].points.back().bytes, 0);
  }
}
