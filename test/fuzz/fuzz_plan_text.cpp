//===- fuzz_plan_text.cpp - the text form of plans -----------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Text that may be a plan.
//
//===----------------------------------------------------------------------===//
#include "fuzz.h"
#include "plan_checks.h"

#include "takt-rt/core/error.h"
#include "takt-rt/core/text.h"

using namespace takt;

std::vector<std::string> fuzz::dictionary() { return planWords(); }

int fuzz::fuzzOne(const uint8_t *bytes, size_t size) {
  rt::Plan plan;
  try {
    plan = rt::parsePlanText(asText(bytes, size), "mutant");
  } catch (const rt::Error &error) {
    checkRefusal(error.what(), "mutant");
    return 0;
  }
  checkAccepted(plan);
  return 1;
}
