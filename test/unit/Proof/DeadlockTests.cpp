//===- DeadlockTests.cpp - what deadlocks, on the host ----------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// The random faults that the proof says will never end are run, with the proof
// bypassed: ranks as threads on the host. Each must hang, be ended by the
// watchdog and be explained by the very instructions that the proof names. What
// the proof accepts must end.
//
// A hang is a state in which nothing moves any more, so that the answer does not
// depend on the timeout; on a busy machine a short one can strike before that
// state is reached. A report that differs is therefore asked for again with a
// longer timeout before it counts.
//
//===----------------------------------------------------------------------===//
#include "Faults.h"
#include "RandomPlan.h"

#include "takt-rt/core/error.h"
#include "takt-rt/core/proof.h"
#include "takt-rt/data/source.h"
#include "takt-rt/host/trainer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <sstream>
#include <thread>

using namespace takt;
using namespace takt::test;

namespace {

/// Of a hang report: its lines "  end: rank ...".
std::vector<std::string> endsOf(const std::string &report) {
  std::vector<std::string> ends;
  std::istringstream lines(report);
  for (std::string line; std::getline(lines, line);)
    if (line.rfind("  end: ", 0) == 0)
      ends.push_back(line);
  std::sort(ends.begin(), ends.end());
  return ends;
}

std::vector<std::string> endsOf(const rt::ProofFailure &failure) {
  std::vector<std::string> ends;
  for (const rt::ProofEnd &end : failure.ends)
    ends.push_back("  end: rank " + std::to_string(end.rank) + " lane '" +
                   end.lane + "' instruction " + std::to_string(end.instr) +
                   ": " + end.action);
  std::sort(ends.begin(), ends.end());
  return ends;
}

/// Empty if a step ends, else the report of the watchdog.
std::string runStep(const rt::Plan &plan, double timeout) {
  std::unique_ptr<rt::Source> source = rt::syntheticSource(plan);
  rt::TrainerOptions options;
  options.timeoutSeconds = timeout;
  rt::Trainer trainer(plan, *source, options);
  try {
    trainer.step();
  } catch (const rt::Error &error) {
    if (error.code() != rt::ExitCode::Timeout)
      throw;
    return error.what();
  }
  return "";
}

/// What is wrong with the host's answer to a plan that deadlocks, or nothing.
std::string disagreement(const rt::Plan &plan) {
  rt::Proof proof = rt::prove(plan);
  std::string text;
  for (double timeout : {0.1, 1.0, 10.0}) {
    std::string report = runStep(plan, timeout);
    if (report.empty())
      return "ran to its end";
    if (endsOf(report) == endsOf(*proof.failure))
      return "";
    text = report;
  }
  return rt::proofText(proof) + "\nbut the host said\n" + text;
}

/// The failure is about instructions that never complete.
bool deadlocks(const rt::ProofFailure &failure) {
  if (failure.rule == rt::ProofRule::Order)
    return true;
  return failure.rule == rt::ProofRule::Matching && failure.ends.size() == 2 &&
         failure.ends[1].action[0] == '(';
}

/// Applies a check to all plans, several at a time: they mostly sleep.
void forAll(size_t count, const std::function<void(size_t)> &check) {
  std::atomic<size_t> next{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 16; ++t)
    threads.emplace_back([&] {
      for (size_t i = next++; i < count; i = next++)
        check(i);
    });
  for (std::thread &thread : threads)
    thread.join();
}

RandomPlanLimits small() {
  RandomPlanLimits limits;
  limits.stages = 4;
  limits.replicas = 2;
  return limits;
}

/// A random plan with which the host can make samples.
rt::Plan runnablePlan(uint32_t seed) {
  rt::Plan plan = randomPlan(seed, small());
  for (rt::InputInfo &input : plan.inputs)
    if (input.dtype == rt::DType::Int32)
      input.classes = 8;
  return plan;
}

} // namespace

TEST(Deadlocks, OfAThousandFaultsHangOnTheHostWithTheSameEnds) {
  std::vector<rt::Plan> plans;
  std::vector<std::string> what, said;
  // All of a thousand faults, and more until there are enough that deadlock.
  for (uint32_t seed = 0, tried = 0; tried < 1000 || plans.size() < 240;
       ++seed) {
    rt::Plan plan = runnablePlan(seed);
    std::optional<Culprit> culprit =
        breakPlan(plan, Fault(seed % kFaults), seed);
    if (!culprit)
      continue;
    ++tried;
    rt::Proof proof = rt::prove(plan);
    if (proof.holds() || !deadlocks(*proof.failure))
      continue;
    plans.push_back(std::move(plan));
    what.push_back("seed " + std::to_string(seed) + ", " + culprit->what);
  }
  said.resize(plans.size());
  forAll(plans.size(), [&](size_t i) { said[i] = disagreement(plans[i]); });
  for (size_t i = 0; i < plans.size(); ++i)
    EXPECT_EQ(said[i], "") << what[i];
  std::cout << plans.size() << " deadlocks, the same ends on the host\n";
}

TEST(Deadlocks, WhatIsProvenEnds) {
  std::vector<rt::Plan> plans;
  for (uint32_t seed = 0; seed < 240; ++seed) {
    rt::Plan plan = runnablePlan(seed);
    if (seed % 2 == 0 && !breakPlan(plan, Fault(seed / 2 % kFaults), seed))
      continue;
    if (rt::prove(plan).holds())
      plans.push_back(std::move(plan));
  }
  ASSERT_GE(plans.size(), 120u);
  std::vector<std::string> said(plans.size());
  forAll(plans.size(), [&](size_t i) { said[i] = runStep(plans[i], 60); });
  for (const std::string &report : said)
    EXPECT_EQ(report, "");
}
