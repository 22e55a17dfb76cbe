//===- ChooseTests.cpp - buckets over whole plans -------------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Buckets in plans: the step never grows, the waits are those of the pieces,
// and what does not fit together is refused.
//
//===----------------------------------------------------------------------===//
#include "../Lower/TestModels.h"
#include "LowerChecked.h"

#include "takt/Overlap/Choose.h"

#include "takt-rt/core/clock.h"
#include "takt-rt/core/proof.h"
#include "takt-rt/core/text.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

using namespace takt;
using namespace takt::test;

namespace {

/// A GPT over some stages with times and links at random.
LoweringProblem randomProblem(std::mt19937 &random) {
  auto upTo = [&](int64_t most) { return int64_t(random() % (most + 1)); };
  GptShape shape;
  shape.blocks = 1 + int(upTo(3));
  shape.tied = upTo(1);
  shape.frozenPrefix = upTo(3) == 0;
  Graph graph = makeGpt(shape);
  int64_t segments = int64_t(chainSegments(graph).size());
  int64_t stages = 1 + upTo(3);
  std::vector<int64_t> cuts;
  for (int64_t s = 1; s < stages; ++s)
    cuts.push_back(s * segments / stages);
  std::vector<int32_t> replicas;
  for (int64_t s = 0; s < stages; ++s)
    replicas.push_back(1 << upTo(2));
  LoweringProblem problem =
      makeProblem(std::move(graph), cuts, 1 + int32_t(upTo(5)), replicas,
                  upTo(1) ? "gpipe" : "1f1b");
  rt::Link link{"link", upTo(3000), double(1 + upTo(20)) * 1e8};
  for (rt::Link &l : problem.boundaryLinks)
    l = link;
  for (rt::Link &l : problem.tieLinks)
    l = link;
  // Half of them on shared ports: of one class of links, or of two.
  bool isShared = upTo(1), isOneClass = upTo(2) > 0;
  if (isShared) {
    rt::NodeResources nodes;
    nodes.devices = 16;
    nodes.portBytesPerSecond = link.bytesPerSecond;
    nodes.cores = upTo(3) == 0 ? 2 : 0;
    problem.resources = {nodes};
  }
  for (size_t s = 0; s < problem.stages.size(); ++s) {
    rt::Link &groupLink = problem.roles[s].groupLink;
    groupLink = {"group", upTo(5000), double(1 + upTo(20)) * 1e8};
    if (isShared && isOneClass)
      groupLink = link;
    for (StageLayerTimes &t : problem.stages[s].times)
      t = {upTo(9000), upTo(9000), upTo(9000), upTo(500)};
  }
  return problem;
}

} // namespace

TEST(ChooseOverlap, StepsAreNeverLonger) {
  std::mt19937 random(11);
  int shorter = 0, ordered = 0;
  for (int n = 0; n < 200; ++n) {
    LoweringProblem problem = randomProblem(random);
    Nanos without = rt::simulate(lowerChecked(problem)).makespan;
    OverlapOptions options;
    options.lanes = 1 + n % 2;
    options.bucketBytes = n % 3 == 0 ? 1 + random() % 20000 : 0;
    OverlapChoice choice = chooseOverlap(problem, options);
    Nanos with = rt::simulate(lowerChecked(problem)).makespan;
    EXPECT_LE(with, without) << "case " << n;
    bool changed =
        std::any_of(choice.stages.begin(), choice.stages.end(),
                    [](const StageOverlap &s) { return s.taken || s.ordered; });
    EXPECT_EQ(with < without, changed) << "case " << n;
    for (const StageOverlap &s : choice.stages) {
      EXPECT_EQ(verify(s.problem, s.solution), std::nullopt);
      if (s.send) {
        EXPECT_EQ(verify(s.sendProblem, s.sendSolution), std::nullopt);
      }
      ordered += s.ordered;
    }
    if (changed) {
      EXPECT_EQ(choice.with, with);
      EXPECT_EQ(choice.without, without);
      EXPECT_EQ(choice.pays(), true);
      ++shorter;
    }
  }
  EXPECT_GT(shorter, 40);
  EXPECT_GT(ordered, 2);
}

TEST(ChooseOverlap, BucketsHideBehindTheLastBackward) {
  // One stage, four linear layers of 64 x 64 and their biases, 16.5 KB each.
  LoweringProblem problem = makeProblem(makeMlp(4, 64), {}, 2, {2}, "1f1b");
  for (StageLayerTimes &t : problem.stages[0].times)
    t = {1000, 1000, 1000, 0};
  problem.roles[0].groupLink = {"link", 0, 16.64e9}; // 1 us a layer
  LoweringProblem bucketed = problem;
  OverlapOptions options;
  options.bucketBytes = 1;
  OverlapChoice choice = chooseOverlap(bucketed, options);
  ASSERT_EQ(choice.stages.size(), 1u);
  EXPECT_EQ(choice.stages[0].bucketBegins, (std::vector<int32_t>{6, 4, 2, 0}));
  // Of 4 us only that of the last bucket is left.
  EXPECT_EQ(choice.without, 2 * 9 * 3000 + 4000);
  EXPECT_EQ(choice.with, 2 * 9 * 3000 + 1000);

  rt::Plan plan = lowerChecked(bucketed);
  const rt::Role &role = plan.roles[0];
  std::string texts;
  for (const rt::Lane &lane : role.lanes)
    for (const rt::Instr &instr : lane.instrs)
      if (lane.kind == rt::LaneKind::Compute ||
          lane.kind == rt::LaneKind::Reduce)
        texts += rt::actionText(plan, role, instr) + " ";
  EXPECT_EQ(texts, "0F0 0B0 0F1 0B1.0 0B1.1 0B1.2 0B1.3 0UPDATE 0REDUCE_GRAD0 "
                   "0REDUCE_GRAD1 0REDUCE_GRAD2 0REDUCE_GRAD3 ");
  // The ranges of the groups divide the pool of gradients.
  Bytes at = 0;
  for (const rt::Endpoint &end : role.groups) {
    EXPECT_EQ(end.buffer.offset, at);
    at += end.buffer.bytes;
  }
  EXPECT_EQ(at, role.pools[role.groups[0].buffer.pool].slotBytes);
  // The pieces are the whole backward, in the same order.
  auto kernelsOf = [&](const std::string &prefix) {
    std::vector<std::pair<rt::KernelKind, int32_t>> kernels;
    for (const rt::Procedure &p : role.procedures)
      if (p.name.compare(0, prefix.size(), prefix) == 0 &&
          (prefix.size() > 1 || p.name == prefix))
        for (const rt::Kernel &k : p.kernels)
          kernels.push_back({k.kind, k.layer});
    return kernels;
  };
  EXPECT_EQ(kernelsOf("B"), kernelsOf("B."));
}

TEST(ChooseOverlap, NothingIsCutWhereItDoesNotPay) {
  LoweringProblem slow = makeProblem(makeMlp(4, 64), {}, 2, {2}, "1f1b");
  slow.roles[0].groupLink = {"link", 1000000, 0}; // latency alone
  for (StageLayerTimes &t : slow.stages[0].times)
    t = {1000, 1000, 1000, 0};
  LoweringProblem before = slow;
  OverlapChoice choice = chooseOverlap(slow);
  EXPECT_FALSE(choice.pays());
  EXPECT_EQ(rt::toText(lower(slow)), rt::toText(lower(before)));

  LoweringProblem alone = makeProblem(makeMlp(4, 64), {}, 2, {1}, "1f1b");
  EXPECT_TRUE(chooseOverlap(alone).stages.empty());
}

TEST(ChooseOverlap, TiedSumsWaitForTheirOwnBuckets) {
  GptShape shape;
  LoweringProblem problem = makeProblem(makeGpt(shape), {4}, 2, {2, 2}, "1f1b");
  for (int32_t s = 0; s < 2; ++s)
    cutIntoBuckets(problem, s,
                   formBuckets(problem.graph, problem.stages[s], 1));
  rt::Plan plan = lowerChecked(problem);
  // On the last stage the head's gradient is in bucket 0: its sum does not wait
  // for the others. The update waits for all.
  const rt::Role &role = plan.roles[1];
  auto reduce =
      std::find_if(role.lanes.begin(), role.lanes.end(), [](const rt::Lane &l) {
        return l.kind == rt::LaneKind::Reduce;
      });
  ASSERT_NE(reduce, role.lanes.end());
  uint16_t index = uint16_t(reduce - role.lanes.begin());
  auto waitOf = [&](const std::string &text) {
    const rt::Lane &compute = role.lanes[0];
    for (const rt::Instr &instr : compute.instrs)
      if (rt::actionText(plan, role, instr) == text)
        for (uint32_t w = instr.waitBegin; w < instr.waitEnd; ++w)
          if (compute.waits[w].lane == index)
            return int64_t(compute.waits[w].count);
    return int64_t(-1);
  };
  EXPECT_EQ(waitOf("1TIE_SUM0"), 1);
  EXPECT_EQ(waitOf("1UPDATE"), int64_t(reduce->instrs.size()));
  EXPECT_GT(reduce->instrs.size(), 3u);
}

TEST(ChooseOverlap, TheProofRefusesPiecesOutOfOrderAndBucketsTooEarly) {
  LoweringProblem problem = makeProblem(makeMlp(3, 8), {}, 2, {2}, "1f1b");
  cutIntoBuckets(problem, 0, {4, 2, 0});
  rt::Plan plan = lowerChecked(problem);
  auto laneOf = [](rt::Plan &p, rt::LaneKind kind) -> rt::Lane & {
    for (rt::Lane &lane : p.roles[0].lanes)
      if (lane.kind == kind)
        return lane;
    return p.roles[0].lanes[0];
  };
  // Which rule speaks first is the proof's choice; that one does is not.
  auto expectRefused = [](const rt::Plan &p) {
    rt::Proof proof = rt::prove(p);
    ASSERT_FALSE(proof.holds());
    EXPECT_FALSE(proof.failure->ends.empty());
  };
  // Compute: 0F0 0B0 0F1 0B1.0 0B1.1 0B1.2 0UPDATE.
  rt::Plan swapped = plan;
  auto &actions = laneOf(swapped, rt::LaneKind::Compute).instrs;
  std::swap(actions[3].target, actions[4].target);
  expectRefused(swapped);

  rt::Plan doubled = plan;
  auto &twice = laneOf(doubled, rt::LaneKind::Compute).instrs;
  twice[5].target = twice[4].target;
  expectRefused(doubled);

  // The last bucket after the first piece: its gradients lack the last
  // micro-batch.
  rt::Plan early = plan;
  rt::Lane &reduce = laneOf(early, rt::LaneKind::Reduce);
  reduce.waits[reduce.instrs[2].waitBegin].count -= 2;
  EXPECT_FALSE(rt::prove(early).holds());
}

TEST(ChooseOverlap, WrongBucketsAndPiecesAreRefused) {
  LoweringProblem problem = makeProblem(makeMlp(2, 8), {}, 2, {2}, "1f1b");
  cutIntoBuckets(problem, 0, {2, 0});
  ASSERT_EQ(problem.check(), std::nullopt);

  LoweringProblem outside = problem;
  outside.stages[0].bucketBegins = {7, 0};
  EXPECT_EQ(outside.check(), "stage 0: a gradient bucket begins at layer 7, "
                             "expected one of [0, 5)");
  LoweringProblem open = problem;
  open.stages[0].bucketBegins = {3, 2};
  EXPECT_EQ(open.check(), "stage 0: the last gradient bucket begins at layer "
                          "2, the stage at layer 0");
  LoweringProblem empty = problem;
  empty.stages[0].bucketBegins = {3, 0}; // ReLU and loss
  EXPECT_EQ(empty.check(), "stage 0: gradient bucket 0 is empty");

  auto &compute = problem.roles[0].lanes[0].actions;
  LoweringProblem swapped = problem;
  auto &swappedActions = swapped.roles[0].lanes[0].actions;
  std::swap(swappedActions[3], swappedActions[4]);
  EXPECT_EQ(swapped.check(), "role 0: '0B1.1' stands where piece 0 of an "
                             "action is expected");
  LoweringProblem lacking = problem;
  lacking.roles[0].lanes[0].actions.erase(
      compute.begin() - compute.begin() +
      lacking.roles[0].lanes[0].actions.begin() + 4);
  EXPECT_EQ(lacking.check(), "role 0 lacks the action '0B1.1'");
  LoweringProblem one = problem;
  one.roles[0].replicas = 1;
  one.roles[0].devices = {0};
  EXPECT_EQ(one.check(), "stage 0 has 2 gradient buckets and one replica, "
                         "which reduces nothing");
}

TEST(ChooseOverlap, TextOfPiecesAndBucketsRoundTrips) {
  for (const char *text :
       {"0B7.1", "3W0.12", "0REDUCE_GRAD", "2REDUCE_GRAD3", "1WAIT_SEND_B7",
        "1WAIT_REDUCE_GRAD", "12WAIT_REDUCE_GRAD3"}) {
    std::optional<CommAction> action = parseCommAction(text);
    ASSERT_TRUE(action) << text;
    EXPECT_EQ(toText(*action), text);
  }
  for (const char *bad :
       {"0F7.1", "0I7.1", "0B7.", "0B7.x", "0B7.-1", "0B.1", "1WAIT_F0",
        "1WAIT_LOAD0", "1WAIT_", "WAIT_SEND_B0", "1WAIT_WAIT_SEND_B0",
        "1WAIT_SEND_F0", "0REDUCE_GRAD-1", "0REDUCE_GRADx", "0LOAD1.2"})
    EXPECT_EQ(parseCommAction(bad), std::nullopt) << bad;
}
