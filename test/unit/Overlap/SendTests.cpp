//===- SendTests.cpp - sends and buckets on one link ----------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Who goes first, what lowering makes of it, and what is refused.
//
//===----------------------------------------------------------------------===//
#include "../Lower/TestModels.h"
#include "LowerChecked.h"

#include "takt/Overlap/Choose.h"

#include "takt-rt/core/clock.h"

#include <gtest/gtest.h>

using namespace takt;
using namespace takt::test;

TEST(ChooseOverlap, WhatOthersWaitForLeavesFirst) {
  // Both replicas of the second stage send half of a message of 1024 bytes each
  // to their partner of the first, while they reduce 16640 bytes over the same
  // port of 1 GB/s.
  LoweringProblem problem = makeProblem(makeMlp(2, 64), {1}, 1, {2, 2}, "1f1b");
  for (StageInput &stage : problem.stages)
    for (StageLayerTimes &times : stage.times)
      times = {};
  problem.stages[0].times[0] = {1000, 0, 5000, 300};
  problem.stages[1].times[0] = {2000, 4000, 0, 700};
  rt::Link link{"link", 0, 1e9};
  problem.boundaryLinks[0] = link;
  for (RoleInput &role : problem.roles)
    role.groupLink = link;
  rt::NodeResources node;
  node.devices = 4;
  node.portBytesPerSecond = 1e9;
  problem.resources = {node};

  const Nanos half = 512;
  const Nanos reduce = bucketBytes(problem.graph, problem.stages[0])[0];
  OverlapOptions options;
  options.bucketBytes = 1 << 20; // one bucket a stage
  LoweringProblem ordered = problem;
  OverlapChoice choice = chooseOverlap(ordered, options);
  // At once, both have half of the port, and the first stage waits twice as
  // long. The sum has time: its stage ends first either way.
  const Nanos first = 1000 + half + 2000 + 4000, last = 5000 + reduce + 300;
  EXPECT_EQ(choice.without, first + 2 * half + last);
  EXPECT_EQ(choice.with, first + half + last);
  EXPECT_TRUE(choice.pays());
  std::string texts;
  for (const LaneInput &lane : ordered.roles[1].lanes)
    if (lane.kind == rt::LaneKind::Reduce)
      for (const CommAction &action : lane.actions)
        texts += toText(action) + " ";
  EXPECT_EQ(texts, "1WAIT_SEND_B0 1REDUCE_GRAD ");
  EXPECT_EQ(rt::simulate(lowerChecked(ordered)).makespan, choice.with);

  // Nothing competes where nothing is shared, or over links of other classes.
  LoweringProblem free = problem;
  free.resources.clear();
  EXPECT_FALSE(chooseOverlap(free, options).stages[1].send);
  LoweringProblem apart = problem;
  apart.boundaryLinks[0].name = "network";
  EXPECT_FALSE(chooseOverlap(apart, options).stages[1].send);
}

TEST(ChooseOverlap, ASendGoesWhereTheEndComesSoonest) {
  // Pieces of 10, buckets of 20, a send of 5 that is ready at 20.
  LoweringProblem problem = makeProblem(makeMlp(3, 64), {1}, 1, {1, 2}, "1f1b");
  for (StageLayerTimes &times : problem.stages[1].times)
    times = {};
  problem.stages[1].times[1].weightGrad = 10;       // fc1
  problem.stages[1].times[3].weightGrad = 10;       // fc2
  problem.roles[1].groupLink = {"link", 0, 832e9}; // 16640 bytes in 20 ns
  TailSend send;
  send.time = 5;
  auto place = [&](Nanos tail) {
    send.tail = tail;
    OverlapProblem posed = stageTail(problem, 1, {4, 1}, 1, &send);
    OverlapSolution solution = placeSend(posed, {{2, 3}}, {});
    EXPECT_EQ(verify(posed, solution), std::nullopt);
    EXPECT_TRUE(solution.proven());
    std::string order;
    const std::vector<int32_t> lane = laneOrder(posed, solution)[0];
    for (int32_t action : lane)
      order += posed.actions[action].name + ", ";
    return order + std::to_string(solution.makespan);
  };
  // Nothing follows it: the update, after both buckets, ends soonest.
  EXPECT_EQ(place(0), "bucket 0, bucket 1, send, 55");
  EXPECT_EQ(place(15), "bucket 0, send, bucket 1, 55");
  EXPECT_EQ(place(100), "send, bucket 0, bucket 1, 125");
}

TEST(ChooseOverlap, SendsAndBucketsTakeTurns) {
  LoweringProblem problem = makeProblem(makeMlp(4, 8), {1}, 2, {1, 2}, "1f1b");
  cutIntoBuckets(problem, 1, {6, 4, 1});
  LoweringProblem plain = problem;
  orderSend(problem.roles[1], 1, 0, 1);
  rt::Plan plan = lowerChecked(problem);
  const rt::Role &role = plan.roles[1];
  auto waitsOf = [&](rt::LaneKind kind, const std::string &text) {
    std::string waits;
    for (const rt::Lane &lane : role.lanes)
      for (const rt::Instr &instr : lane.instrs)
        if (lane.kind == kind && rt::actionText(plan, role, instr) == text)
          for (uint32_t w = instr.waitBegin; w < instr.waitEnd; ++w)
            waits += role.lanes[lane.waits[w].lane].name + " " +
                     std::to_string(lane.waits[w].count) + " ";
    return waits;
  };
  // Calls: F0, B0, F1, B1.0 to B1.2.
  EXPECT_EQ(waitsOf(rt::LaneKind::SendGrad, "1SEND_B0"), "compute 2 ");
  EXPECT_EQ(waitsOf(rt::LaneKind::SendGrad, "1SEND_B1"), "compute 6 reduce 1 ");
  EXPECT_EQ(waitsOf(rt::LaneKind::Reduce, "1REDUCE_GRAD0"), "compute 4 ");
  EXPECT_EQ(waitsOf(rt::LaneKind::Reduce, "1REDUCE_GRAD1"),
            "compute 5 send_grad 2 ");
  EXPECT_EQ(waitsOf(rt::LaneKind::Compute, "1UPDATE"), "reduce 3 ");

  auto faultOf = [&](auto change) {
    LoweringProblem wrong = plain;
    change(wrong.roles[1]);
    return wrong.check().value_or("");
  };
  EXPECT_EQ(faultOf([](RoleInput &s) { orderSend(s, 1, 2, 1); }),
            "stage 1: the last send waits for bucket 2, which comes after it");
  EXPECT_EQ(faultOf([](RoleInput &s) { orderSend(s, 0, 0, -1); }),
            "stage 1: '1WAIT_REDUCE_GRAD0' stands before '1SEND_B0', only the "
            "last send may wait for an all-reduce");
  auto add = [](RoleInput &s, rt::LaneKind kind, const char *text) {
    for (LaneInput &lane : s.lanes)
      if (lane.kind == kind)
        lane.actions.insert(lane.actions.begin(), *parseCommAction(text));
  };
  EXPECT_EQ(faultOf([&](RoleInput &s) {
              add(s, rt::LaneKind::Reduce, "1WAIT_SEND_B7");
            }),
            "stage 1: '1WAIT_SEND_B7' names an action that the stage does not "
            "have");
  EXPECT_EQ(faultOf([&](RoleInput &s) {
              add(s, rt::LaneKind::RecvAct, "1WAIT_SEND_B0");
            }),
            "stage 1: '1WAIT_SEND_B0' stands on a lane where nothing waits for "
            "that");
  EXPECT_EQ(faultOf([&](RoleInput &s) {
              for (LaneInput &lane : s.lanes)
                if (lane.kind == rt::LaneKind::Reduce)
                  lane.actions.push_back(*parseCommAction("1WAIT_SEND_B0"));
            }),
            "stage 1: nothing follows '1WAIT_SEND_B0'");
}
