//===- LowerTest.cpp - plans from stages and actions ----------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Structure, memory and predicted times of lowered plans, over cuts, schedules
// and replicas.
//
//===----------------------------------------------------------------------===//
#include "TestModels.h"

#include "takt-rt/core/clock.h"

#include <gtest/gtest.h>

#include <algorithm>

using namespace takt;
using namespace takt::test;

namespace {

/// Cuts of the GPT into `stages` about equal parts.
std::vector<int64_t> evenCuts(const Graph &graph, int64_t stages) {
  int64_t n = int64_t(chainSegments(graph).size());
  std::vector<int64_t> cuts;
  for (int64_t s = 1; s < stages; ++s)
    cuts.push_back(s * n / stages);
  return cuts;
}

rt::Plan lowerChecked(const LoweringProblem &problem) {
  EXPECT_EQ(problem.check(), std::nullopt);
  rt::Plan plan = lower(problem);
  std::vector<std::string> faults = rt::checkStructure(plan);
  EXPECT_TRUE(faults.empty()) << faults.front();
  return plan;
}

} // namespace

TEST(Lower, EveryCutAndScheduleRunsToItsEnd) {
  for (const char *schedule : {"gpipe", "1f1b"})
    for (int stages = 1; stages <= 6; ++stages)
      for (int m : {1, 2, 3, 8}) {
        Graph graph = makeGpt({});
        std::vector<int32_t> replicas(stages, 1);
        rt::Plan plan = lowerChecked(makeProblem(
            graph, evenCuts(graph, stages), m, replicas, schedule));
        rt::Simulation run = rt::simulate(plan);
        size_t instrs = 0;
        for (const rt::Role &role : plan.roles)
          for (const rt::Lane &lane : role.lanes)
            instrs += lane.instrs.size();
        EXPECT_EQ(run.records.size(), instrs);
      }
}

TEST(Lower, MakespanAndInFlightAreTheClosedForms) {
  for (const char *schedule : {"gpipe", "1f1b"})
    for (int p = 2; p <= 16; ++p)
      for (int m : {p, 2 * p + 1, 4 * p}) {
        Graph graph = makeMlp(p, 4);
        std::vector<int64_t> cuts;
        for (int s = 1; s < p; ++s)
          cuts.push_back(2 * s);
        rt::Plan plan = lowerChecked(makeProblem(
            graph, cuts, m, std::vector<int32_t>(p, 1), schedule));
        EXPECT_EQ(rt::simulate(plan).makespan, int64_t(m + p - 1) * 3000)
            << schedule << " p " << p << " m " << m;
        for (int s = 0; s < p; ++s)
          EXPECT_EQ(plan.roles[s].peakInFlight,
                    schedule == std::string("gpipe") ? m : std::min(m, p - s));
      }
}

TEST(Lower, ArenaIsCloseToTheLivenessBound) {
  for (const char *schedule : {"gpipe", "1f1b"})
    for (int stages : {1, 2, 3, 4, 6})
      for (int64_t width : {16, 64}) {
        GptShape shape;
        shape.width = width;
        shape.blocks = 4;
        Graph graph = makeGpt(shape);
        rt::Plan plan = lowerChecked(
            makeProblem(graph, evenCuts(graph, stages), 8,
                        std::vector<int32_t>(stages, 1), schedule));
        for (const rt::Role &role : plan.roles) {
          EXPECT_GE(role.arenaBytes, role.livenessBytes);
          EXPECT_LE(double(role.arenaBytes), 1.1 * double(role.livenessBytes))
              << schedule << " " << role.name << " of " << stages;
        }
      }
}

TEST(Lower, SavedTensorsAreThoseThatBackwardReads) {
  // One linear layer with ReLU: backward reads x (loaded), the ReLU's output
  // and, for the loss, the same again.
  rt::Plan plan = lowerChecked(makeProblem(makeMlp(1, 16), {}, 2, {1}, "gpipe"));
  const rt::Role &role = plan.roles[0];
  auto saved = std::find_if(role.pools.begin(), role.pools.end(), [](auto &p) {
    return p.kind == rt::PoolKind::Saved;
  });
  ASSERT_NE(saved, role.pools.end());
  EXPECT_EQ(saved->slotBytes, 4 * 16 * 4); // one [4, 16] float tensor
  EXPECT_EQ(saved->count, 2);
}

TEST(Lower, FrozenPrefixHasNoBackward) {
  GptShape shape;
  shape.frozenPrefix = true;
  Graph graph = makeGpt(shape);
  rt::Plan plan =
      lowerChecked(makeProblem(graph, {2}, 4, {1, 1}, "1f1b"));
  EXPECT_EQ(plan.channels.size(), 1u); // activations only
  for (const rt::Procedure &procedure : plan.roles[0].procedures) {
    EXPECT_NE(procedure.name, "U");
    if (procedure.name == "B") {
      EXPECT_TRUE(procedure.kernels.empty());
    }
  }
}

TEST(Lower, ReplicasOfAnyCountsMeet) {
  for (std::vector<int32_t> replicas :
       {std::vector<int32_t>{2, 2}, {1, 4}, {4, 1}, {2, 3}, {3, 2}, {6, 4}}) {
    Graph graph = makeGpt({});
    rt::Plan plan = lowerChecked(
        makeProblem(graph, {4}, 4, replicas, "1f1b", /*microBatchSize=*/12));
    EXPECT_GT(rt::simulate(plan).makespan, 0);
    EXPECT_EQ(plan.numRanks(), replicas[0] + replicas[1]);
  }
}

TEST(Lower, TiedSumTravelsUpAndBack) {
  Graph graph = makeGpt({});
  LoweringProblem problem = makeProblem(graph, {4}, 2, {1, 1}, "1f1b");
  ASSERT_EQ(problem.ties.size(), 1u);
  auto textOf = [&](size_t stage) {
    std::string text;
    for (const LaneInput &lane : problem.roles[stage].lanes)
      if (lane.kind == rt::LaneKind::Tie)
        for (const CommAction &action : lane.actions)
          text += toText(action) + " ";
    return text;
  };
  EXPECT_EQ(textOf(0), "0TIE_SEND0_1 0TIE_RECV0_1 ");
  EXPECT_EQ(textOf(1), "1TIE_RECV0_0 1TIE_SEND0_0 ");
  rt::Plan plan = lowerChecked(problem);
  // The second stage adds its own use to what it receives.
  const rt::RoleParam *tied = nullptr;
  for (const rt::RoleParam &param : plan.roles[1].params)
    if (plan.params[param.param].name == "tok.weight")
      tied = &param;
  ASSERT_NE(tied, nullptr);
  EXPECT_EQ(tied->grads.size(), 2u);
}

TEST(Lower, LackingOrStrayActionsAreRefused) {
  LoweringProblem problem =
      makeProblem(makeGpt({}), {4}, 2, {1, 1}, "1f1b");
  LoweringProblem lacking = problem;
  for (LaneInput &lane : lacking.roles[1].lanes)
    if (lane.kind == rt::LaneKind::RecvAct)
      lane.actions.pop_back();
  EXPECT_EQ(lacking.check(), "role 1 lacks the action '1RECV_F1'");

  LoweringProblem doubled = problem;
  for (LaneInput &lane : doubled.roles[0].lanes)
    if (lane.kind == rt::LaneKind::SendAct)
      lane.actions.push_back(lane.actions.back());
  EXPECT_EQ(doubled.check(),
            "role 0 has actions that its schedule does not call for");

  LoweringProblem uneven = problem;
  uneven.roles[0].replicas = 3;
  EXPECT_EQ(uneven.check(), "role 0: 3 replicas do not divide a micro-batch "
                            "of 4 samples");
}

TEST(CommText, RoundTrips) {
  LoweringProblem problem =
      makeProblem(makeGpt({}), {3, 6}, 3, {1, 2, 1}, "1f1b");
  for (const RoleInput &role : problem.roles)
    for (const LaneInput &lane : role.lanes)
      for (const CommAction &action : lane.actions)
        EXPECT_EQ(parseCommAction(toText(action)), action) << toText(action);
  for (const char *bad : {"", "F0", "0X1", "0SEND_F", "0SEND_F1x", "0LOAD-1",
                          "0TIE_SEND0", "0UPDATE1", "99999999999UPDATE"})
    EXPECT_EQ(parseCommAction(bad), std::nullopt) << bad;
}
