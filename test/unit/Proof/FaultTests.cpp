//===- FaultTests.cpp - what is wrong is refused ----------------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// A random plan with one random fault. Whatever the proof accepts must compute
// the same as before under every order of events that the oracle tries; what it
// refuses must name the instruction at fault, or its partner.
//
//===----------------------------------------------------------------------===//
#include "Faults.h"
#include "RandomPlan.h"
#include "SymbolicRun.h"

#include "../Lower/TestModels.h"

#include "takt-rt/core/proof.h"

#include <gtest/gtest.h>

using namespace takt;
using namespace takt::test;

TEST(Proof, AThousandFaultsAreRefused) {
  constexpr uint32_t kOrders = 6;
  int refused = 0, harmless = 0, tried = 0;
  std::vector<int> byFault(kFaults), refusedBy(kFaults);
  RandomPlanLimits limits;
  limits.stages = 4;
  limits.replicas = 2;
  limits.equalReplicas = true;
  for (uint32_t seed = 0; tried < 1000; ++seed) {
    rt::Plan plan = randomPlan(seed, limits);
    auto fault = Fault(seed % kFaults);
    rt::Plan broken = plan;
    std::optional<Culprit> culprit = breakPlan(broken, fault, seed);
    if (!culprit)
      continue;
    ++tried;
    ++byFault[int(fault)];
    rt::Proof proof = rt::prove(broken);
    if (proof.holds()) {
      // Accepted: then nothing can be told from the plan without the fault.
      ++harmless;
      auto expected = runSymbolically(plan, 0);
      ASSERT_TRUE(expected);
      for (uint32_t order = 0; order < kOrders; ++order)
        ASSERT_TRUE(runSymbolically(broken, order) == expected)
            << "seed " << seed << ", order " << order << ": " << culprit->what;
      continue;
    }
    ++refused;
    ++refusedBy[int(fault)];
    EXPECT_TRUE(blames(broken, *proof.failure, *culprit))
        << "seed " << seed << ", " << nameOf(fault) << ": " << culprit->what
        << "\n"
        << rt::proofText(proof);
    if (fault == Fault::NoCredit) {
      EXPECT_EQ(proof.failure->rule, rt::ProofRule::Lifetime)
          << "seed " << seed << ", credit rule: " << culprit->what << "\n"
          << rt::proofText(proof);
    }
  }
  for (int f = 0; f < kFaults; ++f) {
    std::cout << nameOf(Fault(f)) << ": " << refusedBy[f] << " of "
              << byFault[f] << " refused\n";
    EXPECT_GT(refusedBy[f], byFault[f] / 3) << nameOf(Fault(f));
  }
  std::cout << refused << " refused, " << harmless << " harmless\n";
}

// The weights' share reads what the inputs' share leaves where the forward kept
// something else: same place, same size, same micro-batch.
TEST(Proof, WeightGradientsFollowInputGradients) {
  LoweringProblem problem = makeProblem(makeMlp(2, 8), {2}, 2, {1, 1}, "gpipe");
  Schedule schedule{"split", {}};
  for (int s = 0; s < 2; ++s)
    schedule.roles.push_back({{s, ActionKind::F, 0},
                              {s, ActionKind::F, 1},
                              {s, ActionKind::I, 0},
                              {s, ActionKind::W, 0},
                              {s, ActionKind::I, 1},
                              {s, ActionKind::W, 1}});
  insertCommunication(problem, schedule);
  rt::Plan plan = lower(problem);
  ASSERT_TRUE(rt::prove(plan).holds()) << rt::proofText(rt::prove(plan));
  for (rt::Role &role : plan.roles) {
    rt::Plan broken = plan;
    size_t index = &role - plan.roles.data();
    for (rt::Lane &lane : broken.roles[index].lanes)
      if (lane.kind == rt::LaneKind::Compute)
        std::swap(lane.instrs[2].target, lane.instrs[3].target);
    rt::Proof proof = rt::prove(broken);
    ASSERT_FALSE(proof.holds()) << role.name;
    EXPECT_EQ(proof.failure->rule, rt::ProofRule::StaleRead);
    ASSERT_EQ(proof.failure->ends.size(), 2u);
    EXPECT_EQ(proof.failure->ends[0].action, std::to_string(index) + "W0");
    EXPECT_EQ(proof.failure->ends[1].action, std::to_string(index) + "I0");
  }
}

TEST(Proof, TheOracleAgreesWithItself) {
  RandomPlanLimits limits;
  limits.equalReplicas = true;
  for (uint32_t seed = 0; seed < 60; ++seed) {
    rt::Plan plan = randomPlan(seed, limits);
    auto first = runSymbolically(plan, 0);
    ASSERT_TRUE(first) << seed;
    for (uint32_t order = 1; order < 6; ++order)
      EXPECT_EQ(runSymbolically(plan, order), first) << seed;
  }
}
