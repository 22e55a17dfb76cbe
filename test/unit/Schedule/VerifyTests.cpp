//===- VerifyTests.cpp - broken schedules are named -----------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// One case a rule of the verifier; each message must name the action at fault.
//
//===----------------------------------------------------------------------===//

#include "takt/Schedule/Schedule.h"

#include <gtest/gtest.h>

#include <sstream>

using namespace takt;

namespace {

Schedule lists(std::initializer_list<const char *> texts) {
  Schedule schedule;
  for (const char *text : texts) {
    std::vector<Action> &actions = schedule.roles.emplace_back();
    std::istringstream words(text);
    for (std::string word; words >> word;)
      actions.push_back(parseAction(word).value());
  }
  return schedule;
}

std::string faultOf(const ScheduleProblem &problem,
                    std::initializer_list<const char *> texts) {
  return verify(problem, lists(texts)).value_or("");
}

TEST(Verify, AcceptsWholeAndSplitBackwards) {
  EXPECT_EQ(faultOf({2, 2}, {"0F0 0F1 0B0 0B1", "1F0 1B0 1F1 1B1"}), "");
  EXPECT_EQ(faultOf({2, 1}, {"0F0 0B0", "1F0 1I0 1W0"}), "");
}

TEST(Verify, AcceptsTwoStagesOnARole) {
  EXPECT_EQ(faultOf({2, 1}, {"0F0 1F0 1B0 0B0"}), "");
}

// Two chains of two stages, there and back on two roles.
TEST(Verify, ChainsExchangeNothing) {
  ScheduleProblem problem{4, 1, {0, 1, 1, 0}, 2};
  EXPECT_EQ(faultOf(problem, {"0F0 3F0 3B0 0B0", "2F0 1F0 1B0 2B0"}), "");
  EXPECT_EQ(faultOf(problem, {"3F0 0F0 0B0 3B0", "2F0 1F0 1B0 2B0"}), "");
  EXPECT_EQ(faultOf(problem, {"3F0 0F0 0B0 3B0", "1F0 2F0 1B0 2B0"}),
            "the lists wait for each other in a circle: '3F0' of role 0 needs "
            "'2F0', but role 1 is at '1F0'; '1F0' of role 1 needs '0F0', but "
            "role 0 is at '3F0'");
  problem.chains = 1;
  EXPECT_NE(faultOf(problem, {"3F0 0F0 0B0 3B0", "2F0 1F0 1B0 2B0"}), "");
  EXPECT_EQ(faultOf({3, 1, {}, 2}, {}),
            "3 stages cannot be 2 chains of equal length");
}

TEST(Verify, ReplicasTakeMicroBatchesInTurn) {
  const ScheduleProblem problem{2, 3, {0, 2}, 1, {2, 1}};
  const char *last = "1F0 1B0 1F1 1B1 1F2 1B2";
  EXPECT_EQ(faultOf(problem, {"0F0 0F2 0B0 0B2", "0F1 0B1", last}), "");
  EXPECT_EQ(faultOf(problem, {"0F0 0B0", "0F1 0F2 0B1 0B2", last}),
            "'0F2' is in role 1, but stage 0, this replica, belongs to role 0");
  EXPECT_EQ(faultOf(problem, {"0F0 0F2 0B0 0B2", "0F1", last}),
            "'0I1' is missing, and there is no '0B1' either");
  EXPECT_EQ(faultOf({1, 1, {}, 1, {2}}, {"0F0 0B0", ""}), "");
  EXPECT_EQ(faultOf({2, 1, {}, 1, {2}}, {}),
            "there are numbers of replicas for 1 stages of 2");
  EXPECT_EQ(faultOf({1, 1, {}, 1, {0}}, {}),
            "stage 0 needs at least 1 replica, not 0");
}

TEST(Verify, NamesMissingActions) {
  EXPECT_EQ(faultOf({2, 1}, {"0F0 0B0", "1B0"}), "'1F0' is missing");
  EXPECT_EQ(faultOf({1, 1}, {"0F0"}),
            "'0I0' is missing, and there is no '0B0' either");
  EXPECT_EQ(faultOf({1, 1}, {"0F0 0I0"}),
            "'0W0' is missing, and there is no '0B0' either");
  EXPECT_EQ(faultOf({2, 1}, {"0F0 0B0"}), "'1F0' is missing");
}

TEST(Verify, NamesRepeatedWork) {
  EXPECT_EQ(faultOf({1, 1}, {"0F0 0B0 0B0"}),
            "'0B0' stands twice in role 0, at places 1 and 2");
  EXPECT_EQ(faultOf({1, 1}, {"0F0 0B0 0W0"}),
            "'0W0' repeats work of '0B0' in role 0");
}

TEST(Verify, NamesStrangers) {
  EXPECT_EQ(faultOf({1, 1}, {"0F0 0B0 1F0"}),
            "'1F0' in role 0: there is no stage 1, only 1 stages");
  EXPECT_EQ(faultOf({1, 1}, {"0F0 0B0 0F1"}),
            "'0F1' in role 0: there is no micro-batch 1, only 1 micro-batches");
  EXPECT_EQ(faultOf({2, 1}, {"0F0 0B0 1F0", "1B0"}),
            "'1B0' is in role 1, but stage 1 belongs to role 0");
  EXPECT_EQ(faultOf({1, 1}, {"0F0 0B0", ""}), "role 1 has no actions");
}

TEST(Verify, NamesWrongOrder) {
  EXPECT_EQ(faultOf({1, 1}, {"0B0 0F0"}),
            "'0B0' at place 0 of role 0 needs '0F0', which comes later at "
            "place 1");
  EXPECT_EQ(faultOf({1, 1}, {"0F0 0W0 0I0"}),
            "'0W0' at place 1 of role 0 needs '0I0', which comes later at "
            "place 2");
}

// Each list is fine alone; together they stop after 0F0.
TEST(Verify, NamesTheCircle) {
  EXPECT_EQ(faultOf({2, 2}, {"0F0 0B0 0F1 0B1", "1F0 1F1 1B0 1B1"}),
            "the lists wait for each other in a circle: '0B0' of role 0 needs "
            "'1B0', but role 1 is at '1F1'; '1F1' of role 1 needs '0F1', but "
            "role 0 is at '0B0'");
}

// Role 0 is stuck without being part of the circle.
TEST(Verify, CircleLeavesOutBystanders) {
  const std::string fault = faultOf(
      {3, 2}, {"0F0 0F1 0B0 0B1", "1F0 1B0 1F1 1B1", "2F0 2F1 2B0 2B1"});
  EXPECT_EQ(fault.find("role 0"), std::string::npos) << fault;
  EXPECT_NE(fault.find("'1B0' of role 1 needs '2B0'"), std::string::npos)
      << fault;
}

TEST(Verify, ChecksTheSizes) {
  EXPECT_TRUE(verify({0, 1}, {}).has_value());
  EXPECT_TRUE(verify({1, -5}, {}).has_value());
  EXPECT_TRUE(verify({2147483647, 2147483647}, {}).has_value());
}

} // namespace
