//===- LowerChecked.cpp - plans that must be proven -----------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Structure, proof and text form of a lowered problem.
//
//===----------------------------------------------------------------------===//
#include "LowerChecked.h"

#include "takt-rt/core/proof.h"
#include "takt-rt/core/text.h"

#include <gtest/gtest.h>

using namespace takt;

rt::Plan takt::test::lowerChecked(const LoweringProblem &problem) {
  EXPECT_EQ(problem.check(), std::nullopt);
  rt::Plan plan = lower(problem);
  std::vector<std::string> faults = rt::checkStructure(plan);
  EXPECT_TRUE(faults.empty()) << faults.front();
  rt::Proof proof = rt::prove(plan);
  EXPECT_TRUE(proof.holds()) << rt::proofText(proof);
  // Both forms keep everything.
  EXPECT_EQ(rt::toText(rt::parsePlanText(rt::toText(plan), "test")),
            rt::toText(plan));
  return plan;
}
