//===- fuzz_flight.cpp - recordings of ranks ------------------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Bytes that may be a recording of a rank of the plan 'mlp-2-stages.txt' of the
// corpus. What is accepted can be explained, alone and beside a whole one.
//
//===----------------------------------------------------------------------===//
#include "fuzz.h"
#include "plan_checks.h"

#include "takt-rt/core/error.h"
#include "takt-rt/core/file.h"
#include "takt-rt/trace/why_hang.h"

using namespace takt;

std::vector<std::string> fuzz::dictionary() {
  return {std::string("TAKTFLT\0", 8),  std::string("\1\0\0\0", 4),
          std::string("\0\40\0\0", 4),  std::string("\377\377\377\377", 4),
          std::string("\0\0\0\200", 4), std::string(8, '\0')};
}

static const rt::Plan &planOfFlights() {
  static const rt::Plan plan =
      rt::readPlan(TAKT_FUZZ_CORPUS "/plan-text/mlp-2-stages.txt");
  return plan;
}

static std::optional<rt::ProcessState> noProcess(const rt::FlightInfo &) {
  return std::nullopt;
}

static void explain(const rt::Plan &plan, rt::FlightFolder folder) {
  try {
    rt::WhyHang report = rt::explainFlights(plan, folder, noProcess);
    rt::printText(plan, report);
    rt::toJson(plan, report);
    for (const rt::Culprit &culprit : report.culprits)
      fuzz::require(culprit.rank >= 0 && culprit.rank < plan.numRanks(),
                    "a culprit is a rank");
  } catch (const rt::Error &error) {
    fuzz::require(*error.what() != '\0', "a refusal says something");
  }
}

int fuzz::fuzzOne(const uint8_t *bytes, size_t size) {
  const rt::Plan &plan = planOfFlights();
  rt::Flight flight;
  try {
    flight = rt::parseFlight(asText(bytes, size), "mutant");
  } catch (const rt::Error &error) {
    checkRefusal(error.what(), "mutant");
    return 0;
  }
  rt::FlightFolder folder;
  folder.flights = {flight};
  explain(plan, folder);
  // As if it were of this plan, whatever it says.
  folder.flights[0].info.planHash = rt::planHash(plan);
  folder.flights[0].info.ranks = plan.numRanks();
  explain(plan, folder);
  rt::Flight whole;
  whole.file = "whole";
  whole.info = folder.flights[0].info;
  whole.info.rank = 1 - (flight.info.rank & 1);
  whole.step = 3;
  whole.inStep = true;
  whole.lanes.resize(plan.roles[plan.roleOf(whole.info.rank)].lanes.size());
  folder.flights.push_back(whole);
  explain(plan, folder);
  return 1;
}
