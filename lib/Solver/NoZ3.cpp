//===- NoZ3.cpp - the door in a build without Z3 --------------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Takes the place of Z3.cpp where TAKT_ENABLE_Z3 is off: every question stays
// open.
//
//===----------------------------------------------------------------------===//
#include "takt/Solver/Solver.h"

using namespace takt::solver;

bool takt::solver::available() { return false; }

std::string takt::solver::description() { return "no constraint solver"; }

Answer takt::solver::decide(const Problem &problem, const Settings &) {
  Answer answer;
  if (auto fault = problem.check())
    answer.failure = {Failure::Kind::Solver, *fault};
  else
    answer.message = "this build has no Z3";
  return answer;
}
