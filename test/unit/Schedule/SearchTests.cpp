//===- SearchTests.cpp - shortest schedules of small pipelines ------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// The optima of test/data/schedules, every order of tiny random pipelines, and
// faults that the verification must see.
//
//===----------------------------------------------------------------------===//
#include "takt/Schedule/Search.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <array>
#include <fstream>
#include <functional>
#include <random>

using namespace takt;

namespace {

SearchProblem uniform(int stages, int microBatches, int held, bool split) {
  SearchProblem problem;
  SearchStage stage;
  stage.mostInFlight = held;
  problem.stages.assign(stages, stage);
  problem.microBatches = microBatches;
  problem.split = split;
  return problem;
}

//===----------------------------------------------------------------------===//
// Published optima
//===----------------------------------------------------------------------===//

struct Case {
  int stages, microBatches, held;
  int64_t least;
};

std::vector<Case> exactCases() {
  std::ifstream file(TAKT_TEST_DATA "/schedules/exact-small.json");
  const nlohmann::json root = nlohmann::json::parse(file);
  std::vector<Case> cases;
  for (const auto &entry : root.at("cases")) {
    const auto &held = entry.at("activation_sets_per_rank");
    cases.push_back({entry.at("stages"), entry.at("microbatches"),
                     held.is_null() ? 0 : held.get<int>(),
                     entry.at("least_makespan_slots")});
  }
  return cases;
}

class ExactSmall : public testing::TestWithParam<Case> {};

TEST_P(ExactSmall, IsProvenTwiceWithTheSameWork) {
  if (!solver::available())
    GTEST_SKIP() << "this build has no Z3";
  const Case &c = GetParam();
  const SearchProblem problem =
      uniform(c.stages, c.microBatches, c.held, /*split=*/true);
  const SearchResult first = searchSchedule(problem, {});
  EXPECT_EQ(verify(problem, first).value_or(""), "");
  EXPECT_EQ(first.makespan, c.least);
  EXPECT_EQ(first.bound, c.least);
  const SearchResult second = searchSchedule(problem, {});
  EXPECT_EQ(second.work, first.work);
  EXPECT_EQ(second.schedule.roles, first.schedule.roles);
  // A schedule of the solver's own, proven shortest.
  const SearchResult own = searchSchedule(problem, {}, /*fromList=*/false);
  EXPECT_EQ(verify(problem, own).value_or(""), "");
  EXPECT_EQ(own.makespan, c.least);
  EXPECT_EQ(own.bound, c.least);
  EXPECT_EQ(own.method, "Z3");
  EXPECT_GT(own.work, 0);
  const SearchResult again = searchSchedule(problem, {}, false);
  EXPECT_EQ(again.work, own.work);
  EXPECT_EQ(again.schedule.roles, own.schedule.roles);
  RecordProperty("work", std::to_string(own.work));
  RecordProperty("makespan", std::to_string(first.makespan));
}

INSTANTIATE_TEST_SUITE_P(
    Cases, ExactSmall, testing::ValuesIn(exactCases()), [](const auto &info) {
      const Case &c = info.param;
      return "p" + std::to_string(c.stages) + "m" +
             std::to_string(c.microBatches) + "held" + std::to_string(c.held);
    });

TEST(ScheduleSearch, AllPublishedOptimaAreThere) {
  EXPECT_EQ(exactCases().size(), 20u);
}

/// The solver alone must reach the optimum, whatever the list schedule gave.
TEST(ScheduleSearch, FourStagesEightMicroBatches) {
  if (!solver::available())
    GTEST_SKIP() << "this build has no Z3";
  const SearchProblem problem = uniform(4, 8, 4, true);
  const SearchResult result = searchSchedule(problem, {});
  EXPECT_EQ(verify(problem, result).value_or(""), "");
  EXPECT_EQ(result.makespan, 27);
  EXPECT_EQ(result.bound, 27);
}

//===----------------------------------------------------------------------===//
// Every order of tiny pipelines
//===----------------------------------------------------------------------===//

/// All orders of a stage's actions, micro-batches in any order.
std::vector<std::vector<Action>> ordersOf(const SearchProblem &problem,
                                          int32_t stage) {
  std::vector<ActionKind> kinds{ActionKind::F, ActionKind::B};
  if (problem.split)
    kinds = {ActionKind::F, ActionKind::I, ActionKind::W};
  std::vector<std::vector<Action>> found;
  std::vector<Action> current;
  std::vector<size_t> done(problem.microBatches, 0);
  std::function<void()> extend = [&] {
    bool complete = true;
    for (int32_t m = 0; m < problem.microBatches; ++m) {
      if (done[m] == kinds.size())
        continue;
      complete = false;
      current.push_back({stage, kinds[done[m]++], m});
      extend();
      current.pop_back();
      --done[m];
    }
    const int32_t most = problem.stages[stage].mostInFlight;
    if (complete && (most == 0 || peakInFlight(current) <= most))
      found.push_back(current);
  };
  extend();
  return found;
}

Nanos bruteForce(const SearchProblem &problem) {
  std::vector<std::vector<std::vector<Action>>> orders;
  for (size_t s = 0; s < problem.stages.size(); ++s)
    orders.push_back(ordersOf(problem, int32_t(s)));
  Nanos best = -1;
  Schedule schedule;
  std::function<void(size_t)> choose = [&](size_t s) {
    if (s == orders.size()) {
      const std::optional<Nanos> time = makespan(problem, schedule);
      if (time && (best < 0 || *time < best))
        best = *time;
      return;
    }
    for (const std::vector<Action> &order : orders[s]) {
      schedule.roles.push_back(order);
      choose(s + 1);
      schedule.roles.pop_back();
    }
  };
  choose(0);
  return best;
}

TEST(ScheduleSearch, EqualsEveryOrderOfTinyPipelines) {
  if (!solver::available())
    GTEST_SKIP() << "this build has no Z3";
  std::mt19937 random(11);
  auto draw = [&](int low, int high) {
    return low + int(random() % uint32_t(high - low + 1));
  };
  int improved = 0;
  for (int round = 0; round < 60; ++round) {
    SearchProblem problem;
    problem.split = draw(0, 1);
    const int shape = draw(0, 2);
    problem.microBatches = shape == 2 ? 3 : 2;
    if (problem.split && shape == 2)
      problem.microBatches = 2;
    for (int s = shape == 1 ? 3 : 2; s > 0; --s) {
      SearchStage stage;
      stage.forward = draw(1, 9);
      stage.inputGrad = draw(1, 9);
      stage.weightGrad = draw(1, 9);
      stage.toNext = draw(0, 4);
      stage.toPrevious = draw(0, 4);
      stage.tail = draw(0, 6);
      stage.mostInFlight = draw(0, 3);
      problem.stages.push_back(stage);
    }
    ASSERT_FALSE(problem.check());
    const SearchResult result = searchSchedule(problem, {});
    ASSERT_EQ(verify(problem, result).value_or(""), "") << "round " << round;
    ASSERT_EQ(result.makespan, bruteForce(problem)) << "round " << round;
    ASSERT_EQ(result.bound, result.makespan) << "round " << round;
    ASSERT_LE(leastMakespan(problem), result.makespan) << "round " << round;
    improved += result.method == "Z3";
  }
  EXPECT_GT(improved, 0) << "the list schedule was always the best";
}

//===----------------------------------------------------------------------===//
// Limited buffers
//===----------------------------------------------------------------------===//

/// All orders of a stage's actions with micro-batches in order.
std::vector<std::vector<Action>> interleavings(const SearchProblem &problem,
                                               int32_t stage) {
  std::vector<ActionKind> kinds{ActionKind::F, ActionKind::B};
  if (problem.split)
    kinds = {ActionKind::F, ActionKind::I, ActionKind::W};
  std::vector<std::vector<Action>> found;
  std::vector<Action> current;
  std::vector<int32_t> done(kinds.size(), 0);
  std::function<void()> extend = [&] {
    if (current.size() == kinds.size() * problem.microBatches) {
      const int32_t most = problem.stages[stage].mostInFlight;
      if (most == 0 || peakInFlight(current) <= most)
        found.push_back(current);
      return;
    }
    for (size_t k = 0; k < kinds.size(); ++k) {
      if (done[k] == problem.microBatches || (k > 0 && done[k] == done[k - 1]))
        continue;
      current.push_back({stage, kinds[k], done[k]++});
      extend();
      current.pop_back();
      --done[k];
    }
  };
  extend();
  return found;
}

Nanos bestInOrder(const SearchProblem &problem) {
  Nanos best = -1;
  Schedule schedule;
  std::function<void(int32_t)> choose = [&](int32_t s) {
    if (s == int32_t(problem.stages.size())) {
      const std::optional<Nanos> time = makespan(problem, schedule);
      if (time && (best < 0 || *time < best))
        best = *time;
      return;
    }
    for (const std::vector<Action> &order : interleavings(problem, s)) {
      schedule.roles.push_back(order);
      choose(s + 1);
      schedule.roles.pop_back();
    }
  };
  choose(0);
  return best;
}

TEST(LimitedBuffers, BoundAndScheduleEncloseTheBestOrder) {
  if (!solver::available())
    GTEST_SKIP() << "this build has no Z3";
  std::mt19937 random(5);
  auto draw = [&](int low, int high) {
    return low + int(random() % uint32_t(high - low + 1));
  };
  int exact = 0, costs = 0;
  constexpr int kRounds = 60;
  for (int round = 0; round < kRounds; ++round) {
    SearchProblem problem;
    problem.limitedBuffers = true;
    problem.split = round % 4 == 0;
    problem.microBatches = problem.split ? 3 : 5;
    for (int s = 0; s < 2; ++s) {
      SearchStage stage;
      stage.forward = draw(1, 9);
      stage.inputGrad = draw(1, 9);
      stage.weightGrad = draw(1, 9);
      // Transfers both shorter and longer than the actions they follow.
      stage.toNext = draw(0, 9);
      stage.toPrevious = draw(0, 9);
      stage.mostInFlight = draw(0, 3);
      stage.inputHeld = HeldUntil(draw(0, 2));
      stage.outputHeld = HeldUntil(draw(0, 2));
      stage.outputGradHeld = HeldUntil(draw(1, 2));
      stage.inputGradHeld = HeldUntil(draw(1, 2));
      problem.stages.push_back(stage);
    }
    ASSERT_FALSE(problem.check());
    const Nanos best = bestInOrder(problem);
    const SearchResult result = searchSchedule(problem, {});
    ASSERT_EQ(verify(problem, result).value_or(""), "") << "round " << round;
    ASSERT_LE(result.bound, best) << "round " << round;
    ASSERT_GE(result.makespan, best) << "round " << round;
    ASSERT_LE(leastMakespan(problem), best) << "round " << round;
    exact += result.bound == best && result.makespan == best;
    SearchProblem free = problem;
    free.limitedBuffers = false;
    costs += bestInOrder(free) < best;
  }
  // Mostly both meet, and buffers are no idle matter.
  EXPECT_GT(exact, kRounds * 3 / 4);
  EXPECT_GT(costs, 0);
}

/// Eight micro-batches run ahead fill every buffer of the way; 1F1B's order is
/// as short as the bound and holds 3, 2 and 1.
TEST(LimitedBuffers, RunningAheadIsNotFree) {
  SearchProblem problem;
  problem.microBatches = 8;
  problem.limitedBuffers = true;
  for (auto [forward, backward] : {std::pair{2, 18}, {4, 1}, {7, 14}}) {
    SearchStage stage;
    stage.forward = forward * 1000000;
    stage.inputGrad = stage.weightGrad = backward * 500000;
    stage.toNext = stage.toPrevious = 3001000;
    stage.mostInFlight = 8;
    problem.stages.push_back(stage);
  }
  const SearchResult result = searchSchedule(problem, {});
  EXPECT_EQ(verify(problem, result).value_or(""), "");
  EXPECT_EQ(result.makespan, result.bound);
  int32_t held = 0;
  for (const std::vector<Action> &actions : result.schedule.roles)
    held += peakInFlight(actions);
  EXPECT_LE(held, 6);
}

TEST(LimitedBuffers, NeverLongerThanTheGenerators) {
  std::mt19937 random(9);
  auto draw = [&](int low, int high) {
    return low + int(random() % uint32_t(high - low + 1));
  };
  for (int round = 0; round < 40; ++round) {
    SearchProblem problem;
    problem.limitedBuffers = true;
    problem.split = draw(0, 1);
    problem.microBatches = draw(2, 8);
    for (int s = draw(2, 4); s > 0; --s) {
      SearchStage stage;
      stage.forward = draw(1, 90);
      stage.inputGrad = draw(1, 90);
      stage.weightGrad = draw(1, 90);
      stage.toNext = stage.toPrevious = draw(0, 30);
      stage.mostInFlight = draw(0, 1) ? 0 : s + draw(0, 3);
      problem.stages.push_back(stage);
    }
    solver::Settings settings;
    settings.workLimit = 300000;
    const SearchResult result = searchSchedule(problem, settings);
    ASSERT_EQ(verify(problem, result).value_or(""), "") << "round " << round;
    const std::vector<Schedule> generated = generatedSchedules(problem);
    ASSERT_FALSE(generated.empty()) << "round " << round;
    for (const Schedule &schedule : generated)
      ASSERT_LE(result.makespan, makespan(problem, schedule).value())
          << "round " << round << ", " << schedule.name;
  }
}

//===----------------------------------------------------------------------===//
// Limits and faults
//===----------------------------------------------------------------------===//

/// Pipelines within the promised size whose proof is far away: the work spent
/// stays near the limit, whatever the shape.
TEST(ScheduleSearch, TheWorkLimitHolds) {
  struct Shape {
    std::vector<std::array<int, 3>> times;
    int32_t microBatches, held;
  };
  const std::vector<Shape> shapes{
      {{{73, 89, 63}, {8, 84, 61}, {89, 84, 13}, {19, 39, 68}}, 8, 4},
      {{{18, 24, 87}, {1, 44, 65}, {60, 78, 11}}, 11, 3},
  };
  for (const Shape &shape : shapes) {
    SearchProblem problem;
    problem.split = true;
    problem.microBatches = shape.microBatches;
    for (const auto &[forward, inputGrad, weightGrad] : shape.times) {
      SearchStage stage;
      stage.forward = forward * 1000000;
      stage.inputGrad = inputGrad * 1000000;
      stage.weightGrad = weightGrad * 1000000;
      stage.toNext = stage.toPrevious = 1001000;
      stage.mostInFlight = shape.held;
      problem.stages.push_back(stage);
    }
    ASSERT_FALSE(problem.check());
    solver::Settings settings;
    settings.workLimit = 3000000;
    const SearchResult result = searchSchedule(problem, settings);
    EXPECT_EQ(verify(problem, result).value_or(""), "");
    EXPECT_LT(result.work, 2 * settings.workLimit);
    EXPECT_LT(result.gap(), 0.1);
  }
}

TEST(ScheduleSearch, StatesTheGapWhenTheWorkEnds) {
  SearchProblem problem = uniform(4, 8, 2, true);
  solver::Settings settings;
  settings.workLimit = 1;
  const SearchResult result = searchSchedule(problem, settings);
  EXPECT_EQ(verify(problem, result).value_or(""), "");
  EXPECT_EQ(result.method, "list schedule");
  EXPECT_LT(result.bound, result.makespan);
  EXPECT_GT(result.gap(), 0);
}

TEST(ScheduleSearch, RefusesWhatIsTooLarge) {
  const std::optional<std::string> fault = uniform(8, 8, 0, false).check();
  ASSERT_TRUE(fault);
  EXPECT_EQ(*fault,
            "8 stages and 8 micro-batches make 128 actions; the shortest "
            "schedule is searched for up to 100 ('--schedule=1f1b' has no such "
            "limit)");
}

TEST(ScheduleSearch, RefusesActionsWithoutTime) {
  SearchProblem problem = uniform(2, 2, 0, false);
  problem.stages[1].forward = 0;
  EXPECT_EQ(problem.check().value_or(""),
            "the actions of stage 1 must take time");
}

class SearchFaults : public testing::Test {
protected:
  void SetUp() override {
    problem = uniform(2, 3, 2, false);
    result.schedule = bestKnown(problem);
    result.makespan = *makespan(problem, result.schedule);
    ASSERT_FALSE(verify(problem, result));
  }
  std::string fault() { return verify(problem, result).value_or(""); }
  SearchProblem problem;
  SearchResult result;
};

TEST_F(SearchFaults, AWrongMakespan) {
  ++result.makespan;
  EXPECT_EQ(fault(), "the makespan is stated as 13, recomputed 12");
}

TEST_F(SearchFaults, ABoundAboveTheMakespan) {
  result.bound = result.makespan + 1;
  EXPECT_EQ(fault(), "the bound 13 lies above the makespan 12");
}

TEST_F(SearchFaults, TooManyInFlight) {
  problem.stages[0].mostInFlight = 1;
  EXPECT_EQ(fault(), "stage 0 holds 2 micro-batches, 1 are allowed");
}

TEST_F(SearchFaults, TheWrongKind) {
  problem.split = true;
  EXPECT_EQ(fault(), "'0B0' is of the wrong kind");
}

TEST_F(SearchFaults, AMissingAction) {
  result.schedule.roles[1].pop_back();
  EXPECT_NE(fault().find("is missing"), std::string::npos) << fault();
}

} // namespace
