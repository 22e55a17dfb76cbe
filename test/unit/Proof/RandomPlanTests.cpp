//===- RandomPlanTests.cpp - what is right is proven ------------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// A thousand random plans hold, with their certificates; a certificate that was
// tampered with does not.
//
//===----------------------------------------------------------------------===//
#include "RandomPlan.h"

#include "takt-rt/core/clock.h"
#include "takt-rt/core/proof.h"

#include <gtest/gtest.h>

using namespace takt;
using namespace takt::test;

TEST(Proof, AThousandRandomPlansHold) {
  int bucketed = 0, unequal = 0, split = 0;
  for (uint32_t seed = 0; seed < 1000; ++seed) {
    rt::Plan plan = randomPlan(seed);
    for (const rt::Role &role : plan.roles) {
      bucketed += role.groups.size() > 1;
      unequal += role.replicas != plan.roles[0].replicas;
      for (const rt::Procedure &procedure : role.procedures)
        split += procedure.name == "W";
    }
    rt::Proof proof = rt::certify(plan);
    ASSERT_TRUE(proof.holds()) << "seed " << seed << ": "
                               << rt::proofText(proof);
    ASSERT_TRUE(rt::hasCertificate(plan));
    ASSERT_TRUE(rt::checkCertificate(plan).holds()) << seed;
    EXPECT_EQ(proof.ranks, plan.numRanks());
    EXPECT_TRUE(proof.warnings.empty()) << seed;
  }
  // The draw reaches every kind of plan.
  EXPECT_GT(bucketed, 100);
  EXPECT_GT(unequal, 100);
  EXPECT_GT(split, 100);
}

TEST(Proof, CountsWhatTheClockRuns) {
  for (uint32_t seed = 0; seed < 50; ++seed) {
    rt::Plan plan = randomPlan(seed);
    EXPECT_EQ(rt::prove(plan).actions,
              int64_t(rt::simulate(plan).records.size()));
  }
}

TEST(Proof, ATamperedCertificateIsRefused) {
  for (uint32_t seed = 0; seed < 200; ++seed) {
    rt::Plan plan = randomPlan(seed);
    ASSERT_TRUE(rt::certify(plan).holds());
    rt::Role &role = plan.roles[seed % plan.roles.size()];
    rt::Lane &lane = role.lanes[0];
    if (lane.order.size() < 2)
      continue;
    size_t at = 1 + seed % (lane.order.size() - 1);
    lane.order[at] = lane.order[at - 1];
    rt::Proof proof = rt::checkCertificate(plan);
    ASSERT_FALSE(proof.holds()) << seed;
    EXPECT_EQ(proof.failure->rule, rt::ProofRule::Order);
    EXPECT_EQ(proof.failure->ends.size(), 2u);
  }
}
