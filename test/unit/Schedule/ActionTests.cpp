//===- ActionTests.cpp - text of actions, counts over lists ---------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Users write action lists by hand, so the reader must take exactly the text
// that the writer gives and nothing near it.
//
//===----------------------------------------------------------------------===//

#include "takt/Schedule/Schedule.h"

#include <gtest/gtest.h>

using namespace takt;

namespace {

std::vector<Action> actions(std::initializer_list<const char *> texts) {
  std::vector<Action> list;
  for (const char *text : texts)
    list.push_back(parseAction(text).value());
  return list;
}

TEST(Action, TextRoundTrip) {
  for (const ActionKind kind :
       {ActionKind::F, ActionKind::I, ActionKind::W, ActionKind::B})
    for (const int32_t number : {0, 7, 10, 2147483647}) {
      const Action action{number, kind, number / 2};
      const std::optional<Action> read = parseAction(toText(action));
      ASSERT_TRUE(read.has_value()) << toText(action);
      EXPECT_TRUE(*read == action);
    }
  EXPECT_EQ(toText({2, ActionKind::F, 0}), "2F0");
  EXPECT_EQ(toText({0, ActionKind::W, 12}), "0W12");
}

TEST(Action, RefusesOtherTexts) {
  for (const char *text : {"",
                           "F",
                           "2F",
                           "F0",
                           "2f0",
                           "2X0",
                           " 2F0",
                           "2F0 ",
                           "2 F0",
                           "-1F0",
                           "2F-1",
                           "+2F0",
                           "02F0",
                           "2F00",
                           "2F0F",
                           "2F0x",
                           "2147483648F0",
                           "2F99999999999999999999",
                           "2.0F0",
                           "2SEND_F0"})
    EXPECT_FALSE(parseAction(text).has_value()) << "'" << text << "'";
}

TEST(Action, RefusesEmbeddedZero) {
  EXPECT_FALSE(parseAction(std::string("2F0\0", 4)).has_value());
}

TEST(PeakInFlight, CountsFromForwardToBackward) {
  EXPECT_EQ(peakInFlight({}), 0);
  EXPECT_EQ(peakInFlight(actions({"0F0", "0F1", "0B0", "0F2", "0B1", "0B2"})),
            2);
  EXPECT_EQ(peakInFlight(actions({"0F0", "0B0", "0F1", "0B1"})), 1);
}

// A split backward ends with its second half, whichever that is.
TEST(PeakInFlight, SplitBackwardHoldsUntilBothHalves) {
  EXPECT_EQ(peakInFlight(actions({"0F0", "0I0", "0F1", "0W0", "0I1", "0W1"})),
            2);
  EXPECT_EQ(peakInFlight(actions({"0F0", "0I0", "0W0", "0F1", "0I1", "0W1"})),
            1);
}

TEST(PeakInFlight, StagesOfOneRoleAddUp) {
  EXPECT_EQ(peakInFlight(actions({"0F0", "1F0", "1B0", "0B0"})), 2);
}

} // namespace
