//===- TrapTests.cpp - known ways to deadlock -------------------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// The traps that users of NCCL fall into, each as a plan. Those that deadlock
// are also run on the host, with the proof bypassed: the watchdog ends them and
// names the same two ends.
//
//===----------------------------------------------------------------------===//
#include "../RuntimeCore/PlanBuilder.h"

#include "takt-rt/core/clock.h"
#include "takt-rt/core/error.h"
#include "takt-rt/core/proof.h"
#include "takt-rt/data/source.h"
#include "takt-rt/host/trainer.h"

#include <gtest/gtest.h>

#include <algorithm>

using namespace takt::rt;
using namespace takt::rt::test;

namespace {

Plan pipeline(int32_t stages = 2, int32_t microBatches = 4,
              std::vector<int32_t> replicas = {}) {
  PipelineShape shape;
  shape.stages = stages;
  shape.microBatches = microBatches;
  shape.replicas = std::move(replicas);
  return makePipeline(shape);
}

Lane &lane(Plan &plan, size_t role, LaneKind kind) {
  return plan.roles[role].lanes[laneOf(plan.roles[role], kind)];
}

/// Puts the instructions of one lane behind those of another, as they are; what
/// waited for the lane waits for its place in the other.
void append(Plan &plan, size_t role, LaneKind from, LaneKind to) {
  Role &own = plan.roles[role];
  auto source = uint16_t(laneOf(own, from)), target = uint16_t(laneOf(own, to));
  auto before = uint32_t(own.lanes[target].instrs.size());
  for (Lane &code : own.lanes)
    for (Wait &wait : code.waits)
      if (wait.lane == source && wait.count > 0)
        wait = {target, wait.count + before};
  Lane moved = own.lanes[source];
  own.lanes[source].instrs.clear();
  own.lanes[source].waits.clear();
  Lane &into = own.lanes[target];
  for (Instr instr : moved.instrs) {
    std::vector<Wait> waits(moved.waits.begin() + instr.waitBegin,
                            moved.waits.begin() + instr.waitEnd);
    instr.waitBegin = uint32_t(into.waits.size());
    into.waits.insert(into.waits.end(), waits.begin(), waits.end());
    instr.waitEnd = uint32_t(into.waits.size());
    into.instrs.push_back(instr);
  }
}

void expectRefused(const Plan &plan, ProofRule rule) {
  Proof proof = prove(plan);
  ASSERT_FALSE(proof.holds());
  EXPECT_EQ(proof.failure->rule, rule) << proofText(proof);
}

/// The host's watchdog must end the plan and name both ends of the failure.
void expectHangs(const Plan &plan) {
  Proof proof = prove(plan);
  ASSERT_FALSE(proof.holds());
  std::unique_ptr<Source> source = syntheticSource(plan);
  TrainerOptions options;
  options.timeoutSeconds = 0.2;
  Trainer trainer(plan, *source, options);
  try {
    trainer.step();
    FAIL() << "the plan did not hang: " << proofText(proof);
  } catch (const Error &error) {
    EXPECT_EQ(error.code(), ExitCode::Timeout) << error.what();
    std::string text = error.what();
    for (const ProofEnd &end : proof.failure->ends) {
      std::string line = "end: rank " + std::to_string(end.rank) + " lane '" +
                         end.lane + "' instruction " +
                         std::to_string(end.instr) + ": " + end.action;
      EXPECT_NE(text.find(line), std::string::npos) << line << "\n" << text;
    }
  }
}

void expectDeadlock(const Plan &plan) {
  expectRefused(plan, ProofRule::Order);
  EXPECT_EQ(prove(plan).failure->ends.size(), 2u);
  EXPECT_FALSE(prove(plan).failure->circle.empty());
  expectHangs(plan);
}

} // namespace

TEST(Traps, ThePlainPipelineHolds) {
  for (std::vector<int32_t> replicas :
       {std::vector<int32_t>{1, 1, 1}, {2, 2, 2}, {2, 3, 1}}) {
    Proof proof = prove(pipeline(3, 4, replicas));
    EXPECT_TRUE(proof.holds()) << proofText(proof);
    EXPECT_TRUE(proof.warnings.empty());
  }
}

// One role has two channels on a lane in the other order than its peer.
TEST(Traps, SwappedCollectives) {
  Plan plan = pipeline(2, 2);
  Lane &compute = lane(plan, 1, LaneKind::Compute);
  std::swap(compute.instrs[0], compute.instrs[1]); // 1F0 1B0 -> 1B0 1F0
  expectRefused(plan, ProofRule::StaleRead);
  Plan orders = pipeline(2, 2);
  append(orders, 0, LaneKind::RecvGrad, LaneKind::SendAct);
  append(orders, 1, LaneKind::RecvAct, LaneKind::SendGrad);
  expectDeadlock(orders);
}

// Every role receives before it sends, round a ring.
TEST(Traps, ReceiveBeforeSendRing) {
  Plan plan = pipeline(3, 2);
  append(plan, 0, LaneKind::SendAct, LaneKind::RecvGrad);
  expectDeadlock(plan);
}

// Two communicators share two devices and are launched in opposite order.
TEST(Traps, TwoCommunicatorsInOppositeOrder) {
  Plan plan = pipeline(2, 4);
  append(plan, 0, LaneKind::SendAct, LaneKind::RecvGrad);
  append(plan, 1, LaneKind::SendGrad, LaneKind::RecvAct);
  expectDeadlock(plan);
}

// Both ends send first, and a send ends only when it is taken.
TEST(Traps, BothEndsSendFirst) {
  Plan plan = pipeline(2, 2);
  append(plan, 0, LaneKind::RecvGrad, LaneKind::SendAct);
  append(plan, 1, LaneKind::RecvAct, LaneKind::SendGrad);
  expectDeadlock(plan);
}

TEST(Traps, SendToSelf) {
  Plan plan = pipeline();
  plan.channels[0].dstRole = plan.channels[0].srcRole;
  Proof proof = prove(plan);
  ASSERT_FALSE(proof.holds());
  EXPECT_TRUE(proof.failure->rule == ProofRule::Structure ||
              proof.failure->rule == ProofRule::Matching);
}

// The first stage warms up with more micro-batches than there are.
TEST(Traps, WarmUpLongerThanMicroBatches) {
  Plan plan = pipeline(2, 2);
  Lane &compute = lane(plan, 0, LaneKind::Compute);
  Lane &sends = lane(plan, 0, LaneKind::SendAct);
  Instr extra = compute.instrs[1];
  extra.waitBegin = extra.waitEnd = 0;
  extra.microBatch = 2;
  compute.instrs.insert(compute.instrs.begin() + 2, extra);
  expectRefused(plan, ProofRule::Structure); // no such micro-batch
  compute.instrs[2].microBatch = 1;
  sends.instrs.push_back(sends.instrs.back());
  expectRefused(plan, ProofRule::Matching); // never received
  expectHangs(plan);
}

TEST(Traps, EmptyStage) {
  Plan plan = pipeline(2, 2);
  plan.roles[0].stages.push_back(7);
  expectRefused(plan, ProofRule::Completeness);
}

// An event that is recorded anew lets two transfers start at once: the send no
// longer waits for the call that makes its data.
TEST(Traps, ReusedEvent) {
  Plan plan = pipeline(2, 4);
  Lane &sends = lane(plan, 0, LaneKind::SendAct);
  sends.waits[sends.instrs[3].waitBegin] =
      sends.waits[sends.instrs[0].waitBegin];
  expectRefused(plan, ProofRule::StaleRead);
}

// A skip connection whose message is sent before the batch that its receiver
// must pass on first.
TEST(Traps, SkipConnection) {
  Plan plan = pipeline(3, 2);
  const BufferRef sent = findEndpoint(plan.roles[0].channels, 0)->buffer;
  plan.channels.push_back({"skip", ChannelKind::Activation, 0, 2,
                           plan.channels[0].bytes, plan.channels[0].link});
  auto skip = uint16_t(plan.channels.size() - 1);
  plan.roles[0].channels.push_back({skip, sent});
  // The last stage keeps what it gets in a pool of its own.
  Role &last = plan.roles[2];
  Pool pool = last.pools[findEndpoint(last.channels, 2)->buffer.pool];
  pool.name = "skip";
  pool.base = last.arenaBytes;
  last.arenaBytes += pool.bytes();
  last.pools.push_back(pool);
  last.channels.push_back(
      {skip, {uint16_t(last.pools.size() - 1), 0, sent.bytes}});
  for (size_t role : {0, 2}) {
    bool sends = role == 0;
    Lane &code =
        lane(plan, role, sends ? LaneKind::SendAct : LaneKind::RecvAct);
    std::vector<Instr> both;
    for (Instr instr : code.instrs) {
      Instr other = instr;
      other.target = skip;
      if (sends)
        both.insert(both.end(), {other, instr}); // the skip goes first
      else
        both.insert(both.end(), {instr, other}); // and is taken last
    }
    code.instrs = both;
    for (Lane &any : plan.roles[role].lanes)
      for (Wait &wait : any.waits)
        if (&plan.roles[role].lanes[wait.lane] == &code)
          wait.count *= 2;
  }
  expectDeadlock(plan);
}

// One of two replicas never joins: the group has no reduction on this role.
TEST(Traps, MissingRankInSplit) {
  Plan plan = pipeline(2, 2, {2, 1});
  Lane &reduce = lane(plan, 0, LaneKind::Reduce);
  reduce.instrs.clear();
  for (Lane &any : plan.roles[0].lanes)
    for (Wait &wait : any.waits)
      if (&plan.roles[0].lanes[wait.lane] == &reduce)
        wait.count = 0;
  expectRefused(plan, ProofRule::Completeness);
  Plan devices = pipeline(2, 2, {2, 1});
  devices.roles[0].devices.pop_back();
  expectRefused(devices, ProofRule::Structure);
}

// Correct, but what shares a stream waits for the slower of the two.
TEST(Traps, MixedStreamsAreWarned) {
  Plan plan = pipeline(2, 1);
  append(plan, 1, LaneKind::SendGrad, LaneKind::Compute);
  Proof proof = prove(plan);
  EXPECT_TRUE(proof.holds()) << proofText(proof);
  ASSERT_EQ(proof.warnings.size(), 1u);
  EXPECT_EQ(proof.warnings[0].rule, ProofRule::MixedStreams);
  EXPECT_EQ(proof.warnings[0].ends.size(), 2u);
}

// One side sends a batch of messages at once that the other takes as one.
TEST(Traps, OneSideGrouped) {
  Plan plan = pipeline(2, 3);
  lane(plan, 1, LaneKind::RecvAct).instrs.pop_back();
  for (Lane &any : plan.roles[1].lanes)
    for (Wait &wait : any.waits)
      wait.count = std::min<uint32_t>(
          wait.count, uint32_t(plan.roles[1].lanes[wait.lane].instrs.size()));
  expectRefused(plan, ProofRule::Matching);
  expectHangs(plan);
}

TEST(Traps, SizesThatDiffer) {
  Plan plan = pipeline();
  plan.roles[1].channels[0].buffer.bytes /= 2;
  expectRefused(plan, ProofRule::Matching);
  EXPECT_EQ(prove(plan).failure->ends.size(), 2u);
}

// The host waits for one communicator before it launches the other, and the
// peer does so the other way round.
TEST(Traps, HostWaitBetweenCommunicators) {
  Plan plan = pipeline(2, 2);
  Role &first = plan.roles[0];
  Lane &sends = lane(plan, 0, LaneKind::SendAct);
  sends.waits[sends.instrs[1].waitBegin] = {
      uint16_t(laneOf(first, LaneKind::RecvGrad)), 2};
  expectDeadlock(plan);
}

TEST(Traps, ArenaBeyondTheDevice) {
  Plan plan = pipeline();
  plan.roles[1].capacity = plan.roles[1].arenaBytes - 1;
  expectRefused(plan, ProofRule::Capacity);
}

// A device that is twice in a communicator hangs it.
TEST(Traps, TwoRanksOnOneDevice) {
  Plan apart = pipeline(2, 2, {2, 1});
  for (std::vector<int32_t> devices :
       {std::vector<int32_t>{0, 1, 0}, {0, 0, 1}, {-1, 1, 2}}) {
    Plan plan = apart;
    plan.roles[0].devices = {devices[0], devices[1]};
    plan.roles[1].devices = {devices[2]};
    expectRefused(plan, ProofRule::Structure);
    EXPECT_NE(prove(plan).failure->text.find("device"), std::string::npos);
  }
  apart.roles[0].devices = {7, 3};
  apart.roles[1].devices = {5};
  EXPECT_TRUE(prove(apart).holds()) << proofText(prove(apart));
}

// The plan says of itself what is not so.
TEST(Traps, WrongFiguresAreWarned) {
  Plan plan = pipeline(2, 4);
  EXPECT_TRUE(checkFigures(plan).empty());
  SimulateOptions options;
  plan.predictedStep = simulate(plan, options).makespan;
  plan.boundStep = plan.objectiveStep = 100;
  plan.roles[0].peakInFlight = 2;
  plan.roles[0].livenessBytes = plan.roles[0].arenaBytes;
  EXPECT_TRUE(checkFigures(plan).empty()) << checkFigures(plan)[0].text;
  plan.predictedStep = 1;
  plan.boundStep = 101;
  plan.roles[0].peakInFlight = 1;
  plan.roles[0].livenessBytes = 1;
  plan.roles[1].livenessBytes = plan.roles[1].arenaBytes + 1;
  EXPECT_TRUE(prove(plan).holds());
  std::vector<ProofFailure> wrong = checkFigures(plan);
  ASSERT_EQ(wrong.size(), 5u);
  for (const ProofFailure &figure : wrong)
    EXPECT_EQ(figure.rule, ProofRule::Figures);
}

TEST(Traps, ReportsAreTextAndJson) {
  Plan plan = pipeline(2, 4);
  append(plan, 0, LaneKind::SendAct, LaneKind::RecvGrad);
  const Proof failed = prove(plan);
  std::string text = proofText(failed);
  EXPECT_EQ(text.rfind("order: '", 0), 0u) << text;
  EXPECT_NE(text.find("\n  rank 0 (stage0), lane '"), std::string::npos);
  EXPECT_NE(text.find("\n  in a circle,"), std::string::npos) << text;
  ASSERT_TRUE(failed.failure);
  for (const ProofEnd &end : failed.failure->circle)
    EXPECT_NE(text.find("\n    rank " + std::to_string(end.rank) + " (" +
                        end.role + "), lane '" + end.lane + "'"),
              std::string::npos)
        << text;
  std::string json = proofJson(prove(plan));
  for (const char *key : {"\"holds\": false", "\"rule\": \"order\"", "\"ends\"",
                          "\"circle\"", "\"begin_ns\": null"})
    EXPECT_NE(json.find(key), std::string::npos) << json;
  EXPECT_EQ(proofText(prove(pipeline(1, 1))),
            "proved: 4 actions, 0 messages, 1 ranks");
  // A failure of memory is dated: the plan itself runs.
  Plan stale = pipeline(2, 4);
  Lane &late = lane(stale, 0, LaneKind::SendAct);
  late.waits[late.instrs[3].waitBegin].count = 1;
  EXPECT_NE(proofText(prove(stale)).find("predicted"), std::string::npos)
      << proofText(prove(stale));
}
