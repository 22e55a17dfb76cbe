//===- SolverTests.cpp - the solver's door --------------------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Questions with known answers, cores, work limits, dumps, and random clause
// sets against enumeration.
//
//===----------------------------------------------------------------------===//
#include "takt/Solver/Solver.h"
#include "takt/Support/Search.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>
#include <thread>

using namespace takt::solver;

namespace {

class SolverTest : public testing::Test {
protected:
  void SetUp() override {
    if (!available())
      GTEST_SKIP() << "this build has no Z3";
  }
};

/// Jobs of the given lengths on one machine, each at least `heads` later than
/// the origin; `end` is the end of the last.
Problem oneMachine(const std::vector<int64_t> &lengths,
                   const std::vector<int64_t> &heads, Integer &end) {
  Problem problem;
  end = problem.addInteger("end");
  std::vector<Integer> starts;
  for (size_t j = 0; j < lengths.size(); ++j) {
    starts.push_back(problem.addInteger("start" + std::to_string(j)));
    problem.require({atLeast(starts[j], kOrigin, heads[j])});
    problem.require({atLeast(end, starts[j], lengths[j])});
    for (size_t i = 0; i < j; ++i)
      problem.require({atLeast(starts[j], starts[i], lengths[i]),
                       atLeast(starts[i], starts[j], lengths[j])});
  }
  return problem;
}

TEST_F(SolverTest, ProvesTheLeastEnd) {
  Integer end;
  const Problem problem = oneMachine({3, 4, 2}, {5, 0, 0}, end);
  const Optimum optimum = minimise(problem, end, 0, std::nullopt, {});
  ASSERT_TRUE(optimum.proven());
  EXPECT_EQ(optimum.value, 9);
  EXPECT_FALSE(verify(problem, *optimum.values));
}

TEST_F(SolverTest, SameAnswerAndWorkTwice) {
  Integer end;
  const Problem problem =
      oneMachine({3, 4, 2, 7, 5, 1}, {5, 0, 8, 2, 2, 20}, end);
  const Optimum a = minimise(problem, end, 0, std::nullopt, {});
  const Optimum b = minimise(problem, end, 0, std::nullopt, {});
  ASSERT_TRUE(a.proven());
  EXPECT_GT(a.work, 0);
  EXPECT_EQ(a.work, b.work);
  EXPECT_EQ(a.probes, b.probes);
  EXPECT_EQ(a.values->integers, b.values->integers);
}

TEST_F(SolverTest, CoreNamesTheRulesThatClash) {
  Problem problem;
  const Integer x = problem.addInteger("x"), y = problem.addInteger("y");
  const int32_t harmless = problem.addRule("y at most 90");
  const int32_t low = problem.addRule("x at least 5");
  const int32_t order = problem.addRule("y after x");
  const int32_t high = problem.addRule("y at most 7");
  problem.require({atMost(y, kOrigin, 90)}, harmless);
  problem.require({atLeast(x, kOrigin, 5)}, low);
  problem.require({atLeast(y, x, 3)}, order);
  problem.require({atMost(y, kOrigin, 7)}, high);
  const Answer answer = decide(problem, {});
  ASSERT_EQ(answer.verdict, Verdict::Unsatisfiable);
  EXPECT_EQ(answer.core, (std::vector<int32_t>{low, order, high}));
}

TEST_F(SolverTest, FactsAloneGiveAnEmptyCore) {
  Problem problem;
  const Integer x = problem.addInteger("x");
  problem.require({atLeast(x, kOrigin, 5)});
  problem.require({atMost(x, kOrigin, 4)});
  const Answer answer = decide(problem, {});
  ASSERT_EQ(answer.verdict, Verdict::Unsatisfiable);
  EXPECT_TRUE(answer.core.empty());
}

TEST_F(SolverTest, InfeasibleIsProvenBeforeAnyBound) {
  Problem problem;
  const Integer x = problem.addInteger("x");
  problem.require({atLeast(x, kOrigin, 5)});
  problem.require({atMost(x, kOrigin, 4)});
  const Optimum optimum = minimise(problem, x, 0, std::nullopt, {});
  EXPECT_TRUE(optimum.infeasible);
  EXPECT_FALSE(optimum.values);
}

TEST_F(SolverTest, AnInterruptKeepsTheIncumbentAndItsBound) {
  Integer end;
  const Problem problem =
      oneMachine({3, 4, 2, 7, 5, 1, 6, 6}, {5, 0, 8, 2, 2, 20, 1, 9}, end);
  Values serial;
  serial.integers = {0, 100, 20, 23, 27, 29, 36, 41, 42, 48};
  takt::search::interrupt();
  const Optimum optimum = minimise(problem, end, 7, serial, {});
  const Answer answer = decide(problem, {});
  takt::search::clearInterrupt();
  EXPECT_EQ(optimum.value, 100);
  EXPECT_EQ(optimum.bound, 7);
  EXPECT_FALSE(optimum.failure);
  EXPECT_EQ(answer.verdict, Verdict::Unknown);
  EXPECT_FALSE(answer.failure);
}

TEST_F(SolverTest, ABreakerEndsAQuestionThatRuns) {
  // Pigeons: too many for any solver, and for the work it may do.
  Problem problem;
  constexpr int kHoles = 14;
  std::vector<std::vector<Truth>> in(kHoles + 1);
  for (int p = 0; p <= kHoles; ++p) {
    Clause somewhere;
    for (int h = 0; h < kHoles; ++h) {
      in[p].push_back(problem.addTruth("in"));
      somewhere.push_back(holds(in[p][h]));
      for (int q = 0; q < p; ++q)
        problem.require({fails(in[p][h]), fails(in[q][h])});
    }
    problem.require(somewhere);
  }
  const Integer x = problem.addInteger("x");
  problem.require({atLeast(x, kOrigin, 1)});
  Settings settings;
  settings.workLimit = int64_t(1) << 60;
  std::atomic<bool> ended{false};
  std::thread other([&] {
    while (!takt::search::callBreakers())
      std::this_thread::yield(); // it has not begun
    takt::search::interrupt();
    while (!ended) {
      takt::search::callBreakers();
      std::this_thread::yield();
    }
  });
  const Answer answer = decide(problem, settings);
  ended = true;
  other.join();
  takt::search::clearInterrupt();
  EXPECT_EQ(answer.verdict, Verdict::Unknown);
  EXPECT_FALSE(answer.failure) << answer.failure.message;
}

TEST_F(SolverTest, WorkLimitKeepsTheIncumbentAndItsBound) {
  Integer end;
  const Problem problem =
      oneMachine({3, 4, 2, 7, 5, 1, 6, 6}, {5, 0, 8, 2, 2, 20, 1, 9}, end);
  Values serial;
  serial.integers = {0, 100, 20, 23, 27, 29, 36, 41, 42, 48};
  ASSERT_FALSE(verify(problem, serial));
  Settings settings;
  settings.workLimit = 1;
  const Optimum optimum = minimise(problem, end, 7, serial, settings);
  ASSERT_TRUE(optimum.values);
  EXPECT_EQ(optimum.value, 100);
  EXPECT_EQ(optimum.bound, 7);
  EXPECT_FALSE(optimum.proven());
}

TEST_F(SolverTest, ABadProblemIsRefusedWithoutAnException) {
  Problem problem;
  problem.require({atLeast(Integer{7}, kOrigin, 1)});
  const Answer answer = decide(problem, {});
  EXPECT_EQ(answer.verdict, Verdict::Unknown);
  EXPECT_EQ(answer.failure.kind, Failure::Kind::Solver);
  EXPECT_EQ(answer.failure.message,
            "constraint 0 names a variable that is not there");
}

TEST_F(SolverTest, DumpsWhatItAsks) {
  Integer end;
  const Problem problem = oneMachine({3, 4}, {0, 0}, end);
  Settings settings;
  settings.dumpFolder = testing::TempDir() + "takt-smt2";
  settings.name = "machine";
  std::filesystem::remove_all(settings.dumpFolder);
  ASSERT_TRUE(minimise(problem, end, 7, std::nullopt, settings).proven());
  std::ifstream file(settings.dumpFolder + "/machine-1.smt2");
  std::stringstream text;
  text << file.rdbuf();
  EXPECT_NE(text.str().find("(check-sat)"), std::string::npos);
  std::filesystem::remove_all(settings.dumpFolder);
}

TEST_F(SolverTest, AnUnwritableDumpFolderIsAnAnswerNotACrash) {
  Problem problem;
  problem.require({atLeast(problem.addInteger("x"), kOrigin, 1)});
  Settings settings;
  settings.dumpFolder = "/dev/null/folder";
  const Answer answer = decide(problem, settings);
  EXPECT_EQ(answer.verdict, Verdict::Unknown);
  EXPECT_EQ(answer.failure.kind, Failure::Kind::Dump);
  EXPECT_NE(answer.failure.message.find(
                "cannot create the folder '/dev/null/folder'"),
            std::string::npos)
      << answer.failure.message;
  // A search says the same of its first probe, and asks no other.
  Values incumbent;
  incumbent.integers = {0, 9};
  const Optimum optimum = minimise(problem, Integer{1}, 0, incumbent, settings);
  EXPECT_EQ(optimum.failure.kind, Failure::Kind::Dump);
  EXPECT_EQ(optimum.probes, 1);
  EXPECT_EQ(optimum.value, 9);
}

/// Jobs enough that no proof of the least end is in reach: orders of jobs that
/// all differ a little in heads and tails.
TEST_F(SolverTest, TheWorkLimitHoldsWhereProofsAreFarAway) {
  std::mt19937 random(3);
  Problem problem;
  const Integer end = problem.addInteger("end");
  std::vector<std::vector<Integer>> starts;
  Values serial;
  serial.integers = {0, 0};
  int64_t at = 0;
  for (int machine = 0; machine < 5; ++machine) {
    starts.emplace_back();
    for (int job = 0; job < 10; ++job) {
      starts.back().push_back(problem.addInteger("start"));
      serial.integers.push_back(at);
      at += 100;
    }
  }
  serial.integers[1] = at;
  for (int machine = 0; machine < 5; ++machine)
    for (int job = 0; job < 10; ++job) {
      const Integer start = starts[machine][job];
      const int64_t length = 1 + int64_t(random() % 99);
      problem.require({atLeast(start, kOrigin, 0)});
      problem.require({atLeast(end, start, length)});
      if (machine > 0)
        problem.require({atLeast(start, starts[machine - 1][job], 99)});
      for (int other = 0; other < job; ++other)
        problem.require({atLeast(start, starts[machine][other], 99),
                         atLeast(starts[machine][other], start, length)});
    }
  ASSERT_FALSE(verify(problem, serial));
  Settings settings;
  settings.workLimit = 1000000;
  const Optimum optimum = minimise(problem, end, 100, serial, settings);
  ASSERT_TRUE(optimum.values);
  EXPECT_FALSE(optimum.proven());
  // An open probe does not end the search: better values are still found.
  EXPECT_LT(optimum.value, serial.integers[1]);
  EXPECT_GT(optimum.probes, 2);
  // A probe is over its limit by what one step adds, not by more.
  EXPECT_LT(optimum.work, 2 * settings.workLimit);
}

/// Any values in [0, 4] and {false, true} that make the problem true?
bool enumerate(const Problem &problem) {
  Values values;
  values.integers.assign(problem.integers.size(), 0);
  values.truths.assign(problem.truths.size(), false);
  int64_t total = 1;
  for (size_t i = 1; i < problem.integers.size(); ++i)
    total *= 5;
  total <<= problem.truths.size();
  for (int64_t code = 0; code < total; ++code) {
    int64_t rest = code;
    for (size_t t = 0; t < problem.truths.size(); ++t, rest >>= 1)
      values.truths[t] = rest & 1;
    for (size_t i = 1; i < problem.integers.size(); ++i, rest /= 5)
      values.integers[i] = rest % 5;
    if (!verify(problem, values))
      return true;
  }
  return false;
}

TEST_F(SolverTest, AgreesWithEnumerationOnRandomClauses) {
  std::mt19937 random(7);
  auto draw = [&](int low, int high) {
    return low + int(random() % uint32_t(high - low + 1));
  };
  int satisfiable = 0;
  for (int round = 0; round < 150; ++round) {
    Problem problem;
    for (int i = 0; i < 3; ++i) {
      const Integer x = problem.addInteger("x");
      problem.require({atLeast(x, kOrigin, 0)});
      problem.require({atMost(x, kOrigin, 4)});
    }
    problem.addTruth("s");
    problem.addTruth("t");
    for (int c = draw(4, 12); c > 0; --c) {
      Clause clause;
      for (int l = draw(1, 3); l > 0; --l) {
        const int kind = draw(0, 5);
        if (kind < 4)
          clause.push_back(atLeast({draw(0, 3)}, {draw(0, 3)}, draw(-2, 4)));
        else
          clause.push_back(kind == 4 ? holds({draw(0, 1)})
                                     : fails({draw(0, 1)}));
      }
      problem.require(clause, draw(0, 1) ? problem.addRule("r") : kNoRule);
    }
    const Answer answer = decide(problem, {});
    ASSERT_NE(answer.verdict, Verdict::Unknown) << answer.message;
    const bool expected = enumerate(problem);
    ASSERT_EQ(answer.verdict == Verdict::Satisfiable, expected)
        << "round " << round;
    satisfiable += expected;
    if (expected)
      continue;
    // The core alone must clash as well.
    Problem core = problem;
    core.constraints.clear();
    for (const Problem::Constraint &constraint : problem.constraints)
      if (constraint.rule == kNoRule ||
          std::count(answer.core.begin(), answer.core.end(), constraint.rule))
        core.constraints.push_back(constraint);
    EXPECT_FALSE(enumerate(core)) << "round " << round;
  }
  EXPECT_GT(satisfiable, 20);
  EXPECT_LT(satisfiable, 130);
}

/// All integers 0, every combination of the truth values.
bool satisfiableByEnumeration(const Problem &problem) {
  Values values;
  values.integers.assign(problem.integers.size(), 0);
  const size_t truths = problem.truths.size();
  for (unsigned bits = 0; bits < 1u << truths; ++bits) {
    values.truths.clear();
    for (size_t t = 0; t < truths; ++t)
      values.truths.push_back(bits >> t & 1);
    if (!verify(problem, values))
      return true;
  }
  return false;
}

/// Clauses and weighted sums over truth values; with `integer`, beside an
/// integer, which takes another of Z3's solvers.
void agreeOnWeights(bool integer) {
  std::mt19937 random(7);
  auto draw = [&](int low, int high) {
    return low + int(random() % unsigned(high - low + 1));
  };
  int satisfiable = 0;
  for (int round = 0; round < 200; ++round) {
    SCOPED_TRACE(round);
    Problem problem;
    if (integer) // 0 keeps this, so enumeration may leave it at 0
      problem.require({atLeast(problem.addInteger("x"), kOrigin, 0)});
    for (int t = 0; t < 8; ++t)
      problem.addTruth("t");
    auto some = [&] {
      const Truth truth{draw(0, 7)};
      return draw(0, 1) ? holds(truth) : fails(truth);
    };
    for (int c = draw(0, 8); c > 0; --c)
      problem.require({some(), some()},
                      draw(0, 1) ? problem.addRule("r") : kNoRule);
    for (int w = draw(1, 3); w > 0; --w) {
      std::vector<Term> terms;
      int64_t sum = 0;
      const int64_t scale = draw(0, 1) ? 1 : 30000000;
      for (int t = draw(3, 8); t > 0; --t) {
        terms.push_back({some(), draw(0, 8) * scale});
        sum += terms.back().weight;
      }
      problem.limitWeight(terms, sum * draw(5, 60) / 100);
    }
    const Answer one = decide(problem, {}), two = decide(problem, {});
    ASSERT_NE(one.verdict, Verdict::Unknown) << one.message;
    const bool expected = satisfiableByEnumeration(problem);
    EXPECT_EQ(one.verdict == Verdict::Satisfiable, expected);
    EXPECT_EQ(one.work, two.work);
    EXPECT_GT(one.work, 0);
    satisfiable += expected;
    if (expected)
      continue;
    // The core alone must clash as well.
    Problem core = problem;
    core.constraints.clear();
    for (const Problem::Constraint &constraint : problem.constraints)
      if (constraint.rule == kNoRule ||
          std::count(one.core.begin(), one.core.end(), constraint.rule))
        core.constraints.push_back(constraint);
    EXPECT_FALSE(satisfiableByEnumeration(core));
  }
  EXPECT_GT(satisfiable, 40);
  EXPECT_LT(satisfiable, 160);
}

TEST_F(SolverTest, AgreesWithEnumerationOnWeights) { agreeOnWeights(false); }

TEST_F(SolverTest, AgreesWithEnumerationOnWeightsBesideIntegers) {
  agreeOnWeights(true);
}

TEST(SolverProblem, BadWeightsAreRefused) {
  auto faultOf = [](Literal literal, int64_t weight, int64_t limit) {
    Problem problem;
    problem.addTruth("t");
    problem.limitWeight({{literal, weight}, {holds({0}), 1}}, limit);
    return problem.check().value_or("");
  };
  EXPECT_EQ(faultOf(holds({0}), kLargestWeight - 1, kLargestWeight), "");
  EXPECT_NE(faultOf(holds({0}), kLargestWeight, 1), "");
  EXPECT_NE(faultOf(holds({0}), -1, 1), "");
  EXPECT_NE(faultOf(holds({0}), 1, -1), "");
  EXPECT_NE(faultOf(holds({1}), 1, 1), "");
  EXPECT_NE(faultOf(atLeast({0}, {0}, 0), 1, 1), "");
}

} // namespace
