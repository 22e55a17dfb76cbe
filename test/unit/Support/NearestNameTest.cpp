//===- NearestNameTest.cpp - "did you mean" ----------------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Distances by hand, and when a hint is given.
//
//===----------------------------------------------------------------------===//
#include "takt/Support/NearestName.h"

#include <gtest/gtest.h>

using namespace takt;

namespace {

TEST(NearestNameTest, Distance) {
  EXPECT_EQ(editDistance("", ""), 0u);
  EXPECT_EQ(editDistance("abc", ""), 3u);
  EXPECT_EQ(editDistance("kitten", "sitting"), 3u);
  EXPECT_EQ(editDistance("widht", "width"), 1u); // a swap counts once
  EXPECT_EQ(editDistance("ab", "ba"), 1u);
  EXPECT_EQ(editDistance("flaw", "lawn"), 2u);
}

TEST(NearestNameTest, Hints) {
  std::vector<std::string> names = {"width", "vocab", "heads", "input"};
  EXPECT_EQ(nearestName("widht", names), "width");
  EXPECT_EQ(nearestName("VOCAB", names), "vocab");
  EXPECT_EQ(nearestName("inputs", names), "input");
  EXPECT_EQ(nearestName("completely", names), "");
  EXPECT_EQ(nearestName("", names), "");
  EXPECT_EQ(nearestName(std::string(65, 'w'), names), "");
  EXPECT_EQ(nearestHint("head", names), "; did you mean 'heads'?");
  EXPECT_EQ(nearestHint("zzz", names), "");
}

TEST(NearestNameTest, TiesGoToTheEarlierCandidate) {
  EXPECT_EQ(nearestName("ln", {"ln1", "ln2"}), "ln1");
  EXPECT_EQ(nearestName("ln", {"ln2", "ln1"}), "ln2");
  EXPECT_EQ(nearestName("ln2", {"ln1", "ln2"}), "ln2");
}

} // namespace
