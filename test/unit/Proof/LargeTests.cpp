//===- LargeTests.cpp - the proof of large plans ----------------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Large plans are proven, survive their file and are refused with one message
// missing. No time decides here: the CPU times that are printed are for the
// acceptance script, which compares them.
//
//===----------------------------------------------------------------------===//
#include "../Lower/TestModels.h"
#include "../RuntimeCore/PlanBuilder.h"

#include "takt/Lower/TimedPlan.h"

#include "takt-rt/core/clock.h"
#include "takt-rt/core/file.h"
#include "takt-rt/core/proof.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <ctime>

using namespace takt::rt;
using namespace takt::rt::test;

namespace {

/// Least CPU seconds of three.
template <typename Work>
double cpuSeconds(Work work) {
  double best = 1e9;
  for (int i = 0; i < 3; ++i) {
    std::clock_t begin = std::clock();
    work();
    best = std::min(best, double(std::clock() - begin) / CLOCKS_PER_SEC);
  }
  return best;
}

void proveLarge(const char *what, Plan plan) {
  for (Role &role : plan.roles)
    role.capacity = 0; // the builder's slots are one a micro-batch
  Proof proof = certify(plan);
  ASSERT_TRUE(proof.holds()) << proofText(proof);
  double full = cpuSeconds([&] { prove(plan); });
  double certificate = cpuSeconds([&] { checkCertificate(plan); });
  double simulated = cpuSeconds([&] {
    SimulateOptions options;
    options.keepRecords = false;
    simulate(plan, options);
  });
  std::vector<uint8_t> bytes = serialize(plan);
  double read = cpuSeconds([&] { deserialize(bytes, "plan"); });
  EXPECT_EQ(serialize(deserialize(bytes, "plan")), bytes);
  EXPECT_TRUE(checkCertificate(plan).byCertificate);
  std::printf("%s: %lld actions, %d ranks: proved %.3f s, certificate %.3f s "
              "(%.2f of it), simulated %.3f s, read %.3f s, %zu bytes\n",
              what, static_cast<long long>(proof.actions), proof.ranks, full,
              certificate, certificate / full, simulated, read, bytes.size());

  // The last activation of the first role is never sent.
  for (Lane &lane : plan.roles.front().lanes)
    if (lane.kind == LaneKind::SendAct)
      lane.instrs.pop_back();
  EXPECT_FALSE(prove(plan).holds());
}

} // namespace

// Two stages on each of 64 ranks, forward and backward.
TEST(ProofFigures, ManyActions) {
  takt::TimedPlanProblem problem;
  problem.shape = {128, 1024};
  problem.schedule = takt::test::interleaved(64, 2, 1024);
  problem.times = {{10, 10, 10, -1}};
  ASSERT_FALSE(problem.check());
  proveLarge("many-actions", takt::timedPlan(problem));
}

TEST(ProofFigures, SymmetricRanks) {
  PipelineShape shape;
  shape.stages = 16;
  shape.microBatches = 128;
  shape.samples = 64;
  shape.replicas.assign(16, 64);
  proveLarge("symmetric", makePipeline(shape));
}
