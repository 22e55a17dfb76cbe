//===- SearchTest.cpp - searches that run and that end --------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
#include "takt/Support/Search.h"

#include <gtest/gtest.h>

using namespace takt;

TEST(Search, TheInnermostIsTold) {
  EXPECT_FALSE(search::running());
  {
    search::Running outer("outer");
    outer.setBest(7);
    {
      search::Running inner("inner");
      inner.setBound(3);
      ASSERT_TRUE(search::running());
      EXPECT_EQ(search::running()->rung, "inner");
      EXPECT_EQ(search::running()->bound, 3);
      EXPECT_FALSE(search::running()->best);
    }
    ASSERT_TRUE(search::running());
    EXPECT_EQ(search::running()->rung, "outer");
    EXPECT_EQ(search::running()->best, 7);
  }
  EXPECT_FALSE(search::running());
}

TEST(Search, BreakersAreCalledWhileTheyLive) {
  int calls = 0;
  EXPECT_FALSE(search::callBreakers());
  {
    const search::Breaker breaker([&] { ++calls; });
    EXPECT_TRUE(search::callBreakers());
    EXPECT_TRUE(search::callBreakers());
  }
  EXPECT_FALSE(search::callBreakers());
  EXPECT_EQ(calls, 2);
}

TEST(Search, AnInterruptHoldsUntilItIsCleared) {
  EXPECT_STREQ(search::whyEnded(), "work limit");
  search::interrupt();
  EXPECT_TRUE(search::interrupted());
  EXPECT_STREQ(search::whyEnded(), "interrupted");
  search::clearInterrupt();
  EXPECT_FALSE(search::interrupted());
}
