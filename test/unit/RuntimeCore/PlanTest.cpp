//===- PlanTest.cpp - transfers, times, names, learning rates ---*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// The questions asked of a plan, each against its definition in plan.h.
//
//===----------------------------------------------------------------------===//
#include "PlanBuilder.h"

#include <gtest/gtest.h>

#include <map>

using namespace takt::rt;
using namespace takt::rt::test;

/// Both ends must name the same pieces, and these must cover the buffer of each
/// rank once.
static void expectConserved(const Plan &plan, const Channel &channel) {
  const Role &source = plan.roles[channel.srcRole];
  const Role &destination = plan.roles[channel.dstRole];
  // (source rank, destination rank) -> (byte of the micro-batch, bytes).
  std::map<std::pair<int32_t, int32_t>, std::pair<Bytes, Bytes>> sent, received;
  for (int32_t i = 0; i < source.replicas; ++i) {
    Bytes at = 0, share = channel.bytes / source.replicas;
    for (const Piece &piece : transferPieces(plan, channel, true, i)) {
      EXPECT_EQ(piece.offset, at);
      at += piece.bytes;
      sent[{source.firstRank + i, piece.peer}] = {i * share + piece.offset,
                                                  piece.bytes};
    }
    EXPECT_EQ(at, share);
  }
  for (int32_t j = 0; j < destination.replicas; ++j) {
    Bytes at = 0, share = channel.bytes / destination.replicas;
    for (const Piece &piece : transferPieces(plan, channel, false, j)) {
      EXPECT_EQ(piece.offset, at);
      at += piece.bytes;
      received[{piece.peer, destination.firstRank + j}] = {
          j * share + piece.offset, piece.bytes};
    }
    EXPECT_EQ(at, share);
  }
  EXPECT_EQ(sent, received);
}

TEST(TransferPieces, SplitsConserveBytesForAllReplicaCounts) {
  for (int32_t from = 1; from <= 6; ++from)
    for (int32_t to = 1; to <= 6; ++to) {
      PipelineShape shape;
      shape.samples = 60;
      shape.replicas = {from, to};
      Plan plan = makePipeline(shape);
      ASSERT_TRUE(checkStructure(plan).empty()) << checkStructure(plan)[0];
      SCOPED_TRACE(std::to_string(from) + " to " + std::to_string(to));
      expectConserved(plan, plan.channels[0]);
      expectConserved(plan, plan.channels[1]);
    }
}

TEST(TransferPieces, TieSendsTheWholeBufferToEveryReplica) {
  PipelineShape shape;
  shape.replicas = {2, 3};
  Plan plan = makePipeline(shape);
  plan.channels[0].kind = ChannelKind::Tie;
  const Channel &tie = plan.channels[0];
  std::vector<int32_t> peers;
  for (const Piece &piece : transferPieces(plan, tie, true, 0)) {
    peers.push_back(piece.peer);
    EXPECT_EQ(piece.bytes, tie.bytes);
  }
  EXPECT_EQ(peers, (std::vector<int32_t>{2, 4}));
  EXPECT_EQ(transferPieces(plan, tie, true, 1).size(), 1u);
  EXPECT_EQ(transferPieces(plan, tie, false, 1)[0].peer, 1);
  EXPECT_EQ(transferPieces(plan, tie, false, 2)[0].peer, 0);
}

TEST(TransferTime, LargestRankDecides) {
  PipelineShape shape;
  shape.replicas = {1, 4};
  shape.link = {"", 100, 1e9}; // a byte a nanosecond
  Plan plan = makePipeline(shape);
  // The one sender sends all, whatever a receiver takes.
  EXPECT_EQ(transferTime(plan, plan.channels[0]), 100 + 12 * 16 * 4);
  plan.channels[0].kind = ChannelKind::Tie;
  EXPECT_EQ(transferTime(plan, plan.channels[0]), 100 + 4 * 12 * 16 * 4);
}

TEST(AllReduceTime, Ring) {
  Link link{"", 10, 1e9};
  EXPECT_EQ(allReduceTime(link, 1, 4000), 0);
  EXPECT_EQ(allReduceTime(link, 2, 4000), 2 * (10 + 2000));
  EXPECT_EQ(allReduceTime(link, 4, 4000), 6 * (10 + 1000));
  EXPECT_EQ(allReduceTime(Link(), 4, 4000), 0);
}

TEST(Plan, RoleOfEveryRank) {
  PipelineShape shape;
  shape.stages = 3;
  shape.replicas = {2, 1, 3};
  Plan plan = makePipeline(shape);
  std::vector<int32_t> roles;
  for (int32_t rank = 0; rank < plan.numRanks(); ++rank)
    roles.push_back(plan.roleOf(rank));
  EXPECT_EQ(roles, (std::vector<int32_t>{0, 0, 1, 2, 2, 2}));
}

TEST(ActionText, NamesEveryKind) {
  PipelineShape shape;
  shape.replicas = {1, 2};
  Plan plan = makePipeline(shape);
  const Role &role = plan.roles[1];
  auto text = [&](InstrKind kind, uint16_t target, int32_t microBatch) {
    return actionText(plan, role, {kind, target, microBatch, 0, 0});
  };
  EXPECT_EQ(text(InstrKind::Call, 0, 3), "1F3");
  EXPECT_EQ(text(InstrKind::Call, 1, 0), "1B0");
  EXPECT_EQ(text(InstrKind::Call, 2, -1), "1UPDATE");
  EXPECT_EQ(text(InstrKind::Load, 0, 2), "1LOAD2");
  EXPECT_EQ(text(InstrKind::Recv, 0, 1), "1RECV_F1");
  EXPECT_EQ(text(InstrKind::Send, 1, 2), "1SEND_B2");
  EXPECT_EQ(text(InstrKind::AllReduce, 0, -1), "1REDUCE_GRAD");
  plan.channels[0].kind = ChannelKind::Tie;
  plan.channels[0].name = "tie7.0-1";
  EXPECT_EQ(text(InstrKind::Recv, 0, -1), "1TIE_RECV7_0");
  plan.roles[1].procedures[2].name = "T7";
  EXPECT_EQ(text(InstrKind::Call, 2, -1), "1TIE_SUM7");
}

TEST(LearningRate, WarmUpIsLinear) {
  Training training;
  training.learningRate = 0.8;
  training.warmupSteps = 4;
  EXPECT_DOUBLE_EQ(learningRateAt(training, 0), 0.2);
  EXPECT_DOUBLE_EQ(learningRateAt(training, 1), 0.4);
  EXPECT_DOUBLE_EQ(learningRateAt(training, 3), 0.8);
  EXPECT_DOUBLE_EQ(learningRateAt(training, 1000), 0.8);
}

TEST(LearningRate, DecaysToTheMinimum) {
  Training training;
  training.learningRate = 1.0;
  training.minLearningRate = 0.2;
  training.warmupSteps = 10;
  training.totalSteps = 110;
  training.schedule = LrSchedule::Linear;
  EXPECT_DOUBLE_EQ(learningRateAt(training, 10), 1.0);
  EXPECT_DOUBLE_EQ(learningRateAt(training, 60), 0.6);
  EXPECT_DOUBLE_EQ(learningRateAt(training, 110), 0.2);
  EXPECT_DOUBLE_EQ(learningRateAt(training, 5000), 0.2);
  training.schedule = LrSchedule::Cosine;
  EXPECT_DOUBLE_EQ(learningRateAt(training, 10), 1.0);
  EXPECT_NEAR(learningRateAt(training, 35), 0.2 + 0.8 * 0.853553391, 1e-9);
  EXPECT_NEAR(learningRateAt(training, 60), 0.6, 1e-12);
  EXPECT_DOUBLE_EQ(learningRateAt(training, 110), 0.2);
}

TEST(LearningRate, DecayOfNoLengthIsTheMinimum) {
  Training training;
  training.schedule = LrSchedule::Cosine;
  training.minLearningRate = 0.25;
  EXPECT_DOUBLE_EQ(learningRateAt(training, 0), 0.25);
}
