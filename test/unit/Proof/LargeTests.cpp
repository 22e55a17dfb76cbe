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
#include "../RuntimeCore/PlanBuilder.h"

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
  std::vector<uint8_t> bytes = serialize(plan);
  double read = cpuSeconds([&] { deserialize(bytes, "plan"); });
  EXPECT_EQ(serialize(deserialize(bytes, "plan")), bytes);
  EXPECT_TRUE(checkCertificate(plan).byCertificate);
  std::printf("%s: %lld actions, %d ranks: proved %.3f s, certificate %.3f s "
              "(%.2f of it), read %.3f s, %zu bytes\n",
              what, static_cast<long long>(proof.actions), proof.ranks, full,
              certificate, certificate / full, read, bytes.size());

  // The last activation of the first role is never sent.
  for (Lane &lane : plan.roles.front().lanes)
    if (lane.kind == LaneKind::SendAct)
      lane.instrs.pop_back();
  EXPECT_FALSE(prove(plan).holds());
}

} // namespace

TEST(ProofFigures, ManyActions) {
  PipelineShape shape;
  shape.stages = 64;
  shape.microBatches = 1024;
  shape.splitBackward = true;
  proveLarge("many-actions", makePipeline(shape));
}

TEST(ProofFigures, SymmetricRanks) {
  PipelineShape shape;
  shape.stages = 16;
  shape.microBatches = 128;
  shape.samples = 64;
  shape.replicas.assign(16, 64);
  proveLarge("symmetric", makePipeline(shape));
}
