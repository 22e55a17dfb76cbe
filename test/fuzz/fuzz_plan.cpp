//===- fuzz_plan.cpp - the binary form of plans --------------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Bytes that claim to be a plan file.
//
//===----------------------------------------------------------------------===//
#include "fuzz.h"
#include "plan_checks.h"

#include "takt-rt/core/error.h"
#include "takt-rt/core/file.h"

using namespace takt;

std::vector<std::string> fuzz::dictionary() { return {"TAKT"}; }

int fuzz::fuzzOne(const uint8_t *bytes, size_t size) {
  rt::Plan plan;
  try {
    plan = rt::deserialize(bytes, size, "mutant");
  } catch (const rt::Error &error) {
    checkRefusal(error.what(), "mutant");
    return 0;
  }
  checkAccepted(plan);
  return 1;
}
