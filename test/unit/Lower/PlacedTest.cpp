//===- PlacedTest.cpp - plans with several stages a role ------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Structure, memory, proof and time of plans whose roles hold several stages.
//
//===----------------------------------------------------------------------===//
#include "TestModels.h"

#include "takt-rt/core/clock.h"
#include "takt-rt/core/proof.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

using namespace takt;
using namespace takt::test;

namespace {

LoweringProblem placed(Graph graph, const Schedule &schedule, int32_t stages,
                       int32_t m, int32_t replicas = 1) {
  int64_t n = int64_t(chainSegments(graph).size());
  std::vector<int64_t> cuts;
  for (int64_t s = 1; s < stages; ++s)
    cuts.push_back(s * n / stages);
  return placeStages(makeProblem(std::move(graph), cuts, m,
                                 std::vector<int32_t>(stages, replicas),
                                 "1f1b"),
                     schedule);
}

Graph gpt(int blocks, int64_t width = 16) {
  GptShape shape;
  shape.blocks = blocks;
  shape.width = width;
  return makeGpt(shape);
}

rt::Plan lowerProven(const LoweringProblem &problem) {
  EXPECT_EQ(problem.check(), std::nullopt);
  rt::Plan plan = lower(problem);
  std::vector<std::string> faults = rt::checkStructure(plan);
  EXPECT_TRUE(faults.empty()) << faults.front();
  rt::Proof proof = rt::prove(plan);
  EXPECT_TRUE(proof.holds()) << rt::proofText(proof);
  return plan;
}

/// Texts of all instructions of a role, lane by lane.
std::multiset<std::string> textsOf(const rt::Plan &plan, const rt::Role &role) {
  std::multiset<std::string> texts;
  for (const rt::Lane &lane : role.lanes)
    for (const rt::Instr &instr : lane.instrs)
      texts.insert(rt::actionText(plan, role, instr));
  return texts;
}

} // namespace

TEST(Placed, EveryPlacementIsProvenAndRunsToItsEnd) {
  for (bool split : {false, true})
    for (int ranks : {1, 2, 3, 4})
      for (int rounds : {1, 2, 3}) {
        int m = ranks * rounds;
        for (int chunks : {2, 3})
          lowerProven(placed(gpt(4), interleaved(ranks, chunks, m, split),
                             ranks * chunks, m));
        lowerProven(placed(gpt(4), vShaped(ranks, m, split), 2 * ranks, m));
      }
}

TEST(Placed, ReplicasReduceEachStageByItself) {
  rt::Plan plan =
      lowerProven(placed(gpt(4), interleaved(2, 2, 4), 4, 4, /*replicas=*/2));
  ASSERT_EQ(plan.roles.size(), 2u);
  std::multiset<std::string> texts = textsOf(plan, plan.roles[0]);
  EXPECT_EQ(texts.count("0REDUCE_GRAD"), 1u);
  EXPECT_EQ(texts.count("2REDUCE_GRAD"), 1u);
  EXPECT_EQ(texts.count("0UPDATE"), 1u);
  EXPECT_EQ(texts.count("2UPDATE"), 1u);
  // The stage whose gradients are complete first is reduced while the other
  // still computes.
  rt::Simulation run = rt::simulate(plan);
  rt::Nanos first = -1, lastCall = 0;
  for (const rt::Record &record : run.records) {
    const rt::Role &role = plan.roles[plan.roleOf(record.rank)];
    const rt::Instr &instr = role.lanes[record.lane].instrs[record.instr];
    if (record.rank != 0)
      continue;
    if (instr.kind == rt::InstrKind::Call && instr.microBatch >= 0)
      lastCall = std::max(lastCall, record.end);
    if (rt::actionText(plan, role, instr) == "2REDUCE_GRAD")
      first = record.begin;
  }
  EXPECT_GE(first, 0);
  EXPECT_LT(first, lastCall);
}

TEST(Placed, WhatStaysOnARankIsNotSent) {
  rt::Plan plan = lowerProven(placed(gpt(4), vShaped(2, 4), 4, 4));
  // Stages 1 and 2 are both on rank 1.
  std::set<std::string> channels;
  for (const rt::Channel &channel : plan.channels)
    channels.insert(channel.name);
  EXPECT_TRUE(channels.count("act0") && channels.count("grad2"));
  EXPECT_FALSE(channels.count("act1") || channels.count("grad1"));
  // All stages on one rank: nothing is sent at all.
  rt::Plan alone = lowerProven(placed(gpt(4), interleaved(1, 3, 4), 3, 4));
  EXPECT_TRUE(alone.channels.empty());
  EXPECT_EQ(alone.roles.at(0).name, "stages0+1+2");
}

TEST(Placed, ATiedWeightLiesOnARankOnce) {
  // The head uses the embedding's weight; in a V both are on rank 0.
  rt::Plan plan = lowerProven(placed(gpt(4), vShaped(2, 4), 4, 4));
  const auto &params = plan.roles[0].params;
  auto isTied = [&](const rt::RoleParam &param) {
    return plan.params[param.param].name == "tok.weight";
  };
  EXPECT_EQ(std::count_if(params.begin(), params.end(), isTied), 1);
  auto tied = std::find_if(params.begin(), params.end(), isTied);
  ASSERT_NE(tied, params.end());
  EXPECT_EQ(tied->grads.size(), 2u);
  EXPECT_EQ(textsOf(plan, plan.roles[0]).count("0TIE_SUM0"), 1u);
  for (const rt::Channel &channel : plan.channels)
    EXPECT_NE(channel.kind, rt::ChannelKind::Tie);
}

// Four uses on two ranks in turn: the partial sum passes each rank twice.
TEST(Placed, ASumMayPassARankTwice) {
  for (int replicas : {1, 2}) {
    rt::Plan plan = lowerProven(placed(makeMlp(4, 8, /*shared=*/true),
                                       interleaved(2, 2, 4), 4, 4, replicas));
    std::multiset<std::string> first = textsOf(plan, plan.roles[0]);
    EXPECT_EQ(first.count("0TIE_SUM0"), 1u);
    EXPECT_EQ(first.count("0TIE_SEND0_1"), 1u);
    EXPECT_EQ(first.count("2TIE_RECV0_1"), 1u);
    EXPECT_EQ(first.count("2TIE_SUM0"), 1u);
    EXPECT_EQ(first.count("2TIE_SEND0_3"), 1u);
    EXPECT_EQ(first.count("0TIE_RECV0_3"), 1u);
    std::multiset<std::string> second = textsOf(plan, plan.roles[1]);
    EXPECT_EQ(second.count("3TIE_SEND0_0"), 1u);
    EXPECT_EQ(second.count("1TIE_RECV0_3"), 0u); // it has the sum already
  }
}

TEST(Placed, TimesAreThoseOfTheUnitCostSchedule) {
  // F = 1, B = 2 a stage: v m (F + B) + (p - 1) (F + B) for interleaved 1F1B.
  for (int p : {2, 4})
    for (int m : {p, 2 * p, 4 * p}) {
      Graph graph = makeMlp(2 * p, 4);
      std::vector<int64_t> cuts;
      for (int s = 1; s < 2 * p; ++s)
        cuts.push_back(2 * s);
      LoweringProblem problem = placeStages(
          makeProblem(graph, cuts, m, std::vector<int32_t>(2 * p, 1), "1f1b"),
          interleaved(p, 2, m));
      rt::Plan plan = lowerProven(problem);
      EXPECT_EQ(rt::simulate(plan).makespan, (2 * m + p - 1) * 3000)
          << p << " ranks, " << m << " micro-batches";
    }
}

// Slots of one size are shared; where stages of a rank differ, each peaks in
// its own slots.
TEST(Placed, ArenaIsCloseToTheLivenessBound) {
  for (int ranks : {2, 4})
    for (bool split : {false, true})
      for (const Schedule &schedule :
           {interleaved(ranks, 2, 8, split), vShaped(ranks, 8, split)}) {
        rt::Plan plan = lower(placed(gpt(4, 64), schedule, 2 * ranks, 8));
        for (const rt::Role &role : plan.roles) {
          EXPECT_GE(role.arenaBytes, role.livenessBytes);
          EXPECT_LE(double(role.arenaBytes), 1.35 * double(role.livenessBytes))
              << schedule.name << ", " << role.name << " of " << ranks;
        }
      }
}

// Rank 1 needs of rank 0 what rank 0 only makes after sending much else: with
// as few buffers as rank 1's own calls need, the messages would block the run.
TEST(Placed, MessagesThatRunAheadGetTheirBuffers) {
  const int32_t m = 8;
  Schedule schedule{"ahead", {}};
  schedule.roles.resize(2);
  for (int32_t i = 0; i < m; ++i)
    schedule.roles[0].push_back({0, ActionKind::F, i});
  for (int32_t i = 0; i < m; ++i) {
    schedule.roles[0].push_back({2, ActionKind::F, i});
    schedule.roles[0].push_back({2, ActionKind::B, i});
    schedule.roles[0].push_back({0, ActionKind::B, i});
    for (ActionKind kind : {ActionKind::F, ActionKind::B}) {
      const bool forward = kind == ActionKind::F;
      schedule.roles[1].push_back({forward ? 1 : 3, kind, i});
      schedule.roles[1].push_back({forward ? 3 : 1, kind, i});
    }
  }
  lowerProven(placed(gpt(4), schedule, 4, m));
}

TEST(Placed, WhatDoesNotFitTogetherIsRefused) {
  LoweringProblem problem = placed(gpt(4), interleaved(2, 2, 4), 4, 4);
  LoweringProblem both = problem;
  both.roles[1].stages = {1, 2};
  EXPECT_EQ(both.check(), "roles 0 and 1 both have stage 2");
  LoweringProblem lacking = problem;
  lacking.roles[1].stages = {1};
  EXPECT_EQ(lacking.check(), "stage 3 belongs to no role");
  LoweringProblem downwards = problem;
  downwards.roles[0].stages = {2, 0};
  EXPECT_EQ(downwards.check(), "role 0 names stage 0 of 4 after stage 2");
  LoweringProblem joined = problem;
  for (size_t l = 0; l < joined.roles[0].lanes.size(); ++l) {
    LaneInput &lane = joined.roles[0].lanes[l];
    if (lane.kind != rt::LaneKind::SendAct || lane.actions.front().stage != 0)
      continue;
    for (size_t k = l + 1; k < joined.roles[0].lanes.size(); ++k)
      if (joined.roles[0].lanes[k].kind == rt::LaneKind::SendAct) {
        auto &more = joined.roles[0].lanes[k].actions;
        lane.actions.insert(lane.actions.end(), more.begin(), more.end());
        joined.roles[0].lanes.erase(joined.roles[0].lanes.begin() + k);
      }
    break;
  }
  EXPECT_EQ(joined.check(), "role 0: '0SEND_F0' and '2SEND_F0' share a lane, "
                            "they are of different boundaries");
}
