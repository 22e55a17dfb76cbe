//===- ClockTest.cpp - the virtual clock ------------------------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Makespans against closed forms, transfers against hand-made timings, and
// reports of plans that cannot end.
//
//===----------------------------------------------------------------------===//
#include "PlanBuilder.h"

#include "takt-rt/core/clock.h"
#include "takt-rt/core/error.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

using namespace takt::rt;
using namespace takt::rt::test;

/// Record of an action of a rank, by its text.
static Record find(const Plan &plan, const Simulation &run, int32_t rank,
                   const std::string &action) {
  for (const Record &record : run.records) {
    const Role &role = plan.roles[plan.roleOf(record.rank)];
    if (record.rank == rank &&
        actionText(plan, role, role.lanes[record.lane].instrs[record.instr]) ==
            action)
      return record;
  }
  ADD_FAILURE() << "no record of " << action;
  return {};
}

static std::string failureOf(const Plan &plan) {
  try {
    simulate(plan);
  } catch (const Error &error) {
    EXPECT_EQ(error.code(), ExitCode::BadInput);
    return error.what();
  }
  return "";
}

// With unit costs and free links both schedules take (m + p - 1)(F + B).
TEST(Clock, MakespanOfGPipeAnd1F1B) {
  for (bool oneFOneB : {false, true})
    for (int32_t p = 1; p <= 16; ++p)
      for (int32_t m = p; m <= 4 * p; m += std::max(1, p / 2)) {
        PipelineShape shape;
        shape.stages = p;
        shape.microBatches = m;
        shape.oneFOneB = oneFOneB;
        shape.forward = 7;
        shape.backward = 13;
        Plan plan = makePipeline(shape);
        ASSERT_TRUE(checkStructure(plan).empty()) << checkStructure(plan)[0];
        Simulation run = simulate(plan);
        EXPECT_EQ(run.makespan, (m + p - 1) * (7 + 13)) << p << " " << m;
        for (int32_t s = 0; s < p; ++s) {
          EXPECT_EQ(run.busy[s], m * 20);
          EXPECT_EQ(run.peakInFlight[s], oneFOneB ? std::min(m, p - s) : m);
        }
      }
}

TEST(Clock, SplitBackwardEndsFlightWithW) {
  PipelineShape shape;
  shape.stages = 4;
  shape.microBatches = 8;
  shape.splitBackward = true;
  Simulation run = simulate(makePipeline(shape));
  for (int32_t s = 0; s < 4; ++s)
    EXPECT_EQ(run.peakInFlight[s], 4 - s);
}

TEST(Clock, EveryInstructionIsRecordedOnceInLaneOrder) {
  PipelineShape shape;
  shape.stages = 3;
  shape.replicas = {2, 1, 3};
  Plan plan = makePipeline(shape);
  Simulation run = simulate(plan);
  size_t expected = 0;
  for (const Role &role : plan.roles)
    for (const Lane &lane : role.lanes)
      expected += lane.instrs.size() * role.replicas;
  EXPECT_EQ(run.records.size(), expected);
  std::map<std::pair<int32_t, int>, const Record *> last;
  for (const Record &record : run.records) {
    EXPECT_LE(record.begin, record.end);
    const Record *&before = last[{record.rank, record.lane}];
    if (before) {
      EXPECT_EQ(record.instr, before->instr + 1);
      EXPECT_GE(record.begin, before->end);
    } else {
      EXPECT_EQ(record.instr, 0u);
    }
    before = &record;
  }
}

TEST(Clock, TransferTakesItsTimeAfterBothEndsMeet) {
  PipelineShape shape;
  shape.microBatches = 1;
  shape.forward = 1000;
  shape.link = {"", 50, 1e9};
  Plan plan = makePipeline(shape);
  Nanos time = 50 + 12 * 16 * 4;
  Simulation run = simulate(plan);
  Record sent = find(plan, run, 0, "0SEND_F0");
  Record received = find(plan, run, 1, "1RECV_F0");
  EXPECT_EQ(sent.begin, 1000);
  EXPECT_EQ(sent.end, 1000 + time);
  EXPECT_EQ(received.begin, sent.begin);
  EXPECT_EQ(received.end, sent.end);
  EXPECT_EQ(find(plan, run, 1, "1F0").begin, sent.end);
  EXPECT_EQ(run.makespan, 2 * (1000 + 2) + 2 * time);
}

TEST(Clock, SplitTransferEndsWithItsLastPiece) {
  PipelineShape shape;
  shape.microBatches = 1;
  shape.replicas = {2, 1};
  shape.forward = 1000;
  shape.link = {"", 50, 0};
  Plan plan = makePipeline(shape);
  Simulation run = simulate(plan);
  // Both replicas of stage 0 end at 1000, so both pieces move at once.
  EXPECT_EQ(find(plan, run, 2, "1RECV_F0").end, 1050);
  EXPECT_EQ(find(plan, run, 1, "0SEND_F0").end, 1050);
  // The reduction costs 2 (n - 1) latencies and holds back the update.
  Record reduce = find(plan, run, 0, "0REDUCE_GRAD");
  EXPECT_EQ(reduce.end - reduce.begin, 100);
  EXPECT_EQ(find(plan, run, 1, "0UPDATE").begin, reduce.end);
}

TEST(Clock, SameRunTwiceGivesTheSameRecords) {
  PipelineShape shape;
  shape.stages = 4;
  shape.replicas = {2, 1, 3, 2};
  shape.link = {"", 5, 1e9};
  Plan plan = makePipeline(shape);
  Simulation a = simulate(plan), b = simulate(plan);
  ASSERT_EQ(a.records.size(), b.records.size());
  for (size_t i = 0; i < a.records.size(); ++i) {
    EXPECT_EQ(a.records[i].rank, b.records[i].rank);
    EXPECT_EQ(a.records[i].end, b.records[i].end);
  }
  SimulateOptions options;
  options.keepRecords = false;
  EXPECT_EQ(simulate(plan, options).makespan, a.makespan);
  EXPECT_TRUE(simulate(plan, options).records.empty());
}

TEST(Clock, TieFromMoreSourcesThanDestinationsRuns) {
  PipelineShape shape;
  shape.replicas = {3, 1};
  Plan plan = makePipeline(shape);
  for (Role &role : plan.roles) { // whole buffers at both ends
    Endpoint &end = role.channels[0];
    end.buffer.bytes = plan.channels[0].bytes;
    Pool &pool = role.pools[end.buffer.pool];
    pool.slotBytes = end.buffer.bytes;
    pool.base = role.arenaBytes;
    role.arenaBytes += pool.bytes();
  }
  plan.channels[0].kind = ChannelKind::Tie;
  ASSERT_TRUE(checkStructure(plan).empty()) << checkStructure(plan)[0];
  EXPECT_EQ(failureOf(plan), "");
}

TEST(Clock, DeadlockNamesTheCircle) {
  PipelineShape shape;
  Plan plan = makePipeline(shape);
  // Stage 0 wants the gradient of micro-batch 0 before it sends its activation.
  Role &role = plan.roles[0];
  Lane &send = role.lanes[laneOf(role, LaneKind::SendAct)];
  send.waits.insert(
      send.waits.begin(),
      {static_cast<uint16_t>(laneOf(role, LaneKind::RecvGrad)), 1});
  for (Instr &instr : send.instrs) {
    instr.waitBegin += &instr == &send.instrs[0] ? 0 : 1;
    ++instr.waitEnd;
  }
  ASSERT_TRUE(checkStructure(plan).empty()) << checkStructure(plan)[0];
  EXPECT_EQ(
      failureOf(plan),
      "the plan cannot run to its end: "
      "rank 0, lane 'recv_grad' at '0RECV_B0' waits for rank 1 to send; "
      "rank 1, lane 'send_grad' at '1SEND_B0' waits for '1B0' of lane "
      "'compute'; "
      "rank 1, lane 'compute' at '1F0' waits for '1RECV_F0' of lane "
      "'recv_act'; "
      "rank 1, lane 'recv_act' at '1RECV_F0' waits for rank 0 to send; "
      "rank 0, lane 'send_act' at '0SEND_F0' waits for '0RECV_B0' of lane "
      "'recv_grad', which closes the circle");
}

TEST(Clock, MissingReceiveIsReported) {
  Plan plan = makePipeline(PipelineShape());
  Role &role = plan.roles[1];
  role.lanes[laneOf(role, LaneKind::RecvAct)].instrs.clear();
  for (Instr &instr : role.lanes[laneOf(role, LaneKind::Compute)].instrs)
    instr.waitEnd = instr.waitBegin;
  std::string failure = failureOf(plan);
  EXPECT_NE(failure.find("rank 0, lane 'send_act' at '0SEND_F0' waits for rank "
                         "1 to receive, which it never does"),
            std::string::npos)
      << failure;
}

TEST(Clock, EndsThatDisagreeAboutAMessage) {
  Plan plan = makePipeline(PipelineShape());
  Role &role = plan.roles[1];
  Lane &recv = role.lanes[laneOf(role, LaneKind::RecvAct)];
  std::swap(recv.instrs[0].microBatch, recv.instrs[1].microBatch);
  EXPECT_EQ(failureOf(plan), "channel 'act0': rank 0 sends micro-batch 0 where "
                             "rank 1 receives 1");
}
