//===- GeneratorTests.cpp - closed forms of the schedules -----------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Makespan and micro-batches in flight of the generators against the papers'
// closed forms. The small list simulator here shares no code with the runtime's
// virtual clock or with the verifier.
//
//===----------------------------------------------------------------------===//

#include "takt/Schedule/Schedule.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <tuple>

using namespace takt;

namespace {

/// Makespan with the same costs on every stage and free transfers, or -1 when
/// the lists get stuck.
int64_t makespan(const Schedule &schedule, int64_t forward, int64_t backward) {
  std::map<std::tuple<int32_t, bool, int32_t>, int64_t> end;
  std::vector<size_t> head(schedule.roles.size(), 0);
  std::vector<int64_t> clock(schedule.roles.size(), 0);
  const int32_t stages = schedule.roles.size();
  for (bool moved = true; moved;) {
    moved = false;
    for (int32_t role = 0; role < stages; ++role)
      for (; head[role] < schedule.roles[role].size(); ++head[role]) {
        const Action &action = schedule.roles[role][head[role]];
        const bool isForward = action.kind == ActionKind::F;
        const int32_t from = action.stage + (isForward ? -1 : 1);
        int64_t start = clock[role];
        if (from >= 0 && from < stages) {
          const auto need = end.find({from, isForward, action.microBatch});
          if (need == end.end())
            break;
          start = std::max(start, need->second);
        }
        clock[role] = start + (isForward ? forward : backward);
        end[{action.stage, isForward, action.microBatch}] = clock[role];
        moved = true;
      }
  }
  for (int32_t role = 0; role < stages; ++role)
    if (head[role] < schedule.roles[role].size())
      return -1;
  return *std::max_element(clock.begin(), clock.end());
}

struct Generator {
  const char *name;
  int32_t (*inFlight)(int32_t p, int32_t m, int32_t s);
};

const Generator kGenerators[] = {
    {"gpipe", [](int32_t, int32_t m, int32_t) { return m; }},
    {"1f1b",
     [](int32_t p, int32_t m, int32_t s) { return std::min(m, p - s); }},
};

TEST(Generators, MakespanIsTheClosedForm) {
  for (const Generator &generator : kGenerators)
    for (int32_t p = 2; p <= 16; ++p)
      for (int32_t m = p; m <= 4 * p; ++m) {
        const auto schedule = generateSchedule(generator.name, {p, m});
        ASSERT_TRUE(schedule.has_value());
        const int64_t forward = 1, backward = m % 2 + 1;
        EXPECT_EQ(makespan(*schedule, forward, backward),
                  (m + p - 1) * (forward + backward))
            << generator.name << " p " << p << " m " << m;
      }
}

TEST(Generators, InFlightIsTheClosedForm) {
  for (const Generator &generator : kGenerators)
    for (int32_t p = 1; p <= 16; ++p)
      for (int32_t m = 1; m <= 4 * p; ++m) {
        const auto schedule = generateSchedule(generator.name, {p, m});
        ASSERT_TRUE(schedule.has_value());
        ASSERT_EQ(schedule->roles.size(), size_t(p));
        for (int32_t s = 0; s < p; ++s)
          EXPECT_EQ(peakInFlight(schedule->roles[s]),
                    generator.inFlight(p, m, s))
              << generator.name << " p " << p << " m " << m << " s " << s;
      }
}

TEST(Generators, PassTheVerifier) {
  for (const std::string &name : scheduleNames())
    for (int32_t p = 1; p <= 9; ++p)
      for (int32_t m = 1; m <= 20; ++m) {
        const ScheduleProblem problem{p, m};
        const auto fault = verify(problem, *generateSchedule(name, problem));
        EXPECT_FALSE(fault.has_value()) << name << ": " << *fault;
      }
}

// Sums of gradients are in the order of backwards: the same for every schedule.
TEST(Generators, BackwardsComeInMicroBatchOrder) {
  for (const std::string &name : scheduleNames()) {
    const Schedule schedule = *generateSchedule(name, {4, 7});
    for (const std::vector<Action> &actions : schedule.roles) {
      int32_t next = 0;
      for (const Action &action : actions)
        if (action.kind == ActionKind::B) {
          EXPECT_EQ(action.microBatch, next++) << name;
        }
      EXPECT_EQ(next, 7);
    }
  }
}

TEST(Generators, ListsOfASmallCase) {
  const Schedule schedule = generateOneFOneB({3, 4});
  std::string text;
  for (const Action &action : schedule.roles[1])
    text += toText(action) + " ";
  EXPECT_EQ(text, "1F0 1F1 1B0 1F2 1B1 1F3 1B2 1B3 ");
}

TEST(Registry, NamesAndRefusals) {
  EXPECT_EQ(scheduleNames(), (std::vector<std::string>{"gpipe", "1f1b"}));
  for (const std::string &name : scheduleNames())
    EXPECT_EQ(generateSchedule(name, {2, 2})->name, name);
  EXPECT_FALSE(generateSchedule("GPipe", {2, 2}).has_value());
  EXPECT_FALSE(generateSchedule("gpipe", {0, 2}).has_value());
  EXPECT_FALSE(generateSchedule("gpipe", {2, 0}).has_value());
  EXPECT_FALSE(generateSchedule("1f1b", {2147483647, 2147483647}).has_value());
}

TEST(Forward, FlowsInOrder) {
  for (int32_t p = 1; p <= 5; ++p)
    for (int32_t m = 1; m <= 9; ++m) {
      SCOPED_TRACE(testing::Message() << p << " stages, " << m);
      ScheduleProblem problem{p, m};
      problem.forwardOnly = true;
      const Schedule schedule = generateSchedule("forward", problem).value();
      EXPECT_EQ(verify(problem, schedule).value_or(""), "");
      EXPECT_EQ(makespan(schedule, 3, 0), 3 * (m + p - 1));
      EXPECT_EQ(heldByStage(schedule, p), std::vector<int32_t>(p, 1));
    }
}

TEST(Forward, IsNoTraining) {
  const ScheduleProblem training{2, 3};
  ScheduleProblem inference = training;
  inference.forwardOnly = true;
  EXPECT_EQ(scheduleNames(true), (std::vector<std::string>{"forward"}));
  EXPECT_FALSE(generateSchedule("forward", training).has_value());
  EXPECT_FALSE(generateSchedule("1f1b", inference).has_value());
  Schedule schedule = generateForward(inference);
  EXPECT_EQ(verify(training, schedule).value_or(""),
            "'0I0' is missing, and there is no '0B0' either");
  schedule.roles[1].push_back({1, ActionKind::B, 2});
  EXPECT_EQ(verify(inference, schedule).value_or(""),
            "'1B2' in role 1 goes backward, and there is nothing to train");
  schedule.roles[1].pop_back();
  schedule.roles[1].pop_back();
  EXPECT_EQ(verify(inference, schedule).value_or(""), "'1F2' is missing");
}

} // namespace
