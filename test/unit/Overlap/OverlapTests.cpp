//===- OverlapTests.cpp - lanes and order of communication ----------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Answers against brute force on small problems, and what the checks refuse.
//
//===----------------------------------------------------------------------===//
#include "BruteForce.h"

#include "takt/Solver/Solver.h"

#include <gtest/gtest.h>

#include <random>

using namespace takt;
using namespace takt::test;

namespace {

OverlapAction action(std::string name, Nanos time, bool isCompute,
                     std::vector<int32_t> after = {}, Nanos tail = 0) {
  OverlapAction a;
  a.name = std::move(name);
  a.time = time;
  a.isCompute = isCompute;
  a.after = std::move(after);
  a.tail = tail;
  return a;
}

/// Up to six buckets after pieces of a backward, some followed by other
/// communication or by compute, with releases and tails; with `sends` up to
/// five and a gradient that leaves for other stages over the same link.
OverlapProblem randomProblem(std::mt19937 &random, int32_t lanes,
                             bool sends = false) {
  auto upTo = [&](int64_t most) { return int64_t(random() % (most + 1)); };
  OverlapProblem problem;
  problem.lanes = lanes;
  int32_t pieces = 1 + int32_t(upTo(5));
  for (int32_t k = 0; k < pieces; ++k)
    problem.actions.push_back(
        action("piece " + std::to_string(k), upTo(20), true));
  int32_t buckets = 1 + int32_t(upTo(sends ? 4 : 5));
  for (int32_t k = 0; k < buckets; ++k) {
    OverlapAction a = action("bucket " + std::to_string(k), upTo(30), false,
                             {int32_t(upTo(pieces - 1))}, upTo(40));
    if (upTo(3) == 0)
      a.release = upTo(60);
    if (k > 0 && upTo(4) == 0)
      a.after.push_back(pieces + int32_t(upTo(k - 1)));
    problem.actions.push_back(std::move(a));
  }
  if (sends) {
    // Of the last piece, or of an action before it.
    OverlapAction send = action("send", 1 + upTo(30), false, {}, upTo(100));
    if (upTo(2) > 0)
      send.after = {pieces - 1};
    else
      send.release = upTo(40);
    problem.actions.push_back(std::move(send));
  }
  OverlapAction update = action("update", upTo(10), true);
  for (int32_t k = 0; k < buckets; ++k)
    if (upTo(1))
      update.after.push_back(pieces + k);
  problem.actions.push_back(std::move(update));
  return problem;
}

void compareWithBruteForce(int32_t lanes, int cases, uint32_t seed,
                           bool sends = false) {
  if (!solver::available())
    GTEST_SKIP() << "this build has no Z3";
  std::mt19937 random(seed);
  int asked = 0, improved = 0;
  for (int n = 0; n < cases; ++n) {
    OverlapProblem problem = randomProblem(random, lanes, sends);
    ASSERT_EQ(problem.check(), std::nullopt);
    OverlapSolution solution = solveOverlap(problem);
    EXPECT_EQ(verify(problem, solution), std::nullopt) << "case " << n;
    EXPECT_EQ(solution.makespan, bruteForceOverlap(problem)) << "case " << n;
    EXPECT_TRUE(solution.proven()) << "case " << n;
    Nanos list =
        std::min(listSchedule(problem, ListRule::ByReady).makespan,
                 listSchedule(problem, ListRule::ByRemaining).makespan);
    asked += solution.method == "Z3";
    improved += solution.makespan < list;
  }
  // The cases must be hard enough that list scheduling alone would not do.
  EXPECT_GT(asked, 0);
  EXPECT_GT(improved, 0);
  std::cout << asked << " of " << cases << " cases asked Z3, " << improved
            << " were improved\n";
}

} // namespace

TEST(Overlap, TwoLanesAreAsGoodAsBruteForce) {
  compareWithBruteForce(2, 200, 1);
}

TEST(Overlap, OneLaneIsAsGoodAsBruteForce) { compareWithBruteForce(1, 200, 2); }

TEST(Overlap, SendsAmongBucketsAreAsGoodAsBruteForce) {
  compareWithBruteForce(1, 150, 5, /*sends=*/true);
  compareWithBruteForce(2, 150, 6, /*sends=*/true);
}

TEST(Overlap, WorkAndAnswerAreTheSameTwice) {
  std::mt19937 random(7);
  for (int n = 0; n < 40; ++n) {
    OverlapProblem problem = randomProblem(random, 2);
    OverlapSolution a = solveOverlap(problem), b = solveOverlap(problem);
    EXPECT_EQ(a.start, b.start);
    EXPECT_EQ(a.lane, b.lane);
    EXPECT_EQ(a.work, b.work);
    EXPECT_EQ(a.bound, b.bound);
  }
}

TEST(Overlap, ListSchedulesAndBoundsHoldWithoutTheSolver) {
  std::mt19937 random(3);
  for (int n = 0; n < 300; ++n) {
    OverlapProblem problem = randomProblem(random, 1 + n % 2);
    for (ListRule rule : {ListRule::ByReady, ListRule::ByRemaining}) {
      OverlapSolution solution = listSchedule(problem, rule);
      solution.bound = overlapBound(problem);
      EXPECT_EQ(verify(problem, solution), std::nullopt) << "case " << n;
    }
    EXPECT_LE(overlapBound(problem), bruteForceOverlap(problem));
  }
}

TEST(Overlap, BeyondTheLimitOfActionsTheGapIsStated) {
  OverlapProblem problem;
  // A long communication is ready first, a short one with a long tail just
  // after: waiting would be better, list scheduling does not wait.
  problem.actions = {action("p0", 1, true), action("p1", 1, true),
                     action("long", 50, false, {0}),
                     action("urgent", 5, false, {1}, 100)};
  OverlapLimits limits;
  limits.actions = 3;
  OverlapSolution listed = solveOverlap(problem, limits);
  EXPECT_EQ(listed.method, "list scheduling");
  EXPECT_EQ(listed.makespan, 1 + 50 + 5 + 100);
  EXPECT_EQ(listed.bound, 2 + 5 + 100);
  EXPECT_GT(listed.gap(), 0.4);
  if (!solver::available())
    GTEST_SKIP() << "this build has no Z3";
  OverlapSolution solved = solveOverlap(problem);
  EXPECT_EQ(solved.makespan, 2 + 5 + 100);
  EXPECT_TRUE(solved.proven());
}

TEST(Overlap, BadProblemsAreRefused) {
  OverlapProblem problem;
  problem.actions = {action("a", 1, true), action("b", 2, false, {0})};
  EXPECT_EQ(problem.check(), std::nullopt);
  OverlapProblem lanes = problem;
  lanes.lanes = 3;
  EXPECT_EQ(lanes.check(), "3 lanes of communication, expected 1 or 2");
  OverlapProblem later = problem;
  later.actions[0].after = {1};
  EXPECT_EQ(later.check(),
            "action 'a' comes after action 1, expected one of the 0 before it");
  OverlapProblem negative = problem;
  negative.actions[1].time = -2;
  EXPECT_EQ(negative.check(),
            "action 'b' has a negative time: -2 ns, from 0 ns, tail 0 ns");
}

TEST(Overlap, WrongAnswersAreRefused) {
  OverlapProblem problem;
  problem.actions = {action("a", 10, true), action("b", 10, true),
                     action("x", 5, false, {0}), action("y", 5, false, {0})};
  OverlapSolution good = solveOverlap(problem);
  ASSERT_EQ(verify(problem, good), std::nullopt);
  EXPECT_EQ(good.makespan, 20);

  OverlapSolution early = good;
  early.start[2] = 3;
  EXPECT_EQ(verify(problem, early), "'x' starts at 3 ns, 'a' ends at 10 ns");
  OverlapSolution swapped = good;
  swapped.start[1] = 5;
  EXPECT_EQ(verify(problem, swapped), "'b' starts at 5 ns, 'a' ends at 10 ns");
  OverlapSolution crowded = good;
  crowded.start[2] = 10;
  crowded.start[3] = 12;
  EXPECT_EQ(verify(problem, crowded),
            "'y' starts at 12 ns while 'x' has its lane until 15 ns");
  OverlapSolution lane = good;
  lane.lane[3] = 1;
  EXPECT_EQ(verify(problem, lane), "'y' is on lane 1 of 1");
  OverlapSolution shorter = good;
  shorter.makespan = 19;
  EXPECT_EQ(verify(problem, shorter), "the makespan is 20 ns, not 19 ns");
  OverlapSolution bound = good;
  bound.bound = 21;
  EXPECT_EQ(verify(problem, bound),
            "the bound of 21 ns lies above the makespan of 20 ns");
}
