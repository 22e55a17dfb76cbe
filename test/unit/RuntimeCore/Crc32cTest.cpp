//===- Crc32cTest.cpp - the checksum against its definition -----*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Published values, and both ways of computing it against one bit at a time.
//
//===----------------------------------------------------------------------===//
#include "takt-rt/core/crc32c.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

using namespace takt::rt;

static uint32_t bitByBit(const std::string &bytes) {
  uint32_t state = 0xFFFFFFFF;
  for (unsigned char byte : bytes) {
    state ^= byte;
    for (int bit = 0; bit < 8; ++bit)
      state = (state & 1) != 0 ? state >> 1 ^ 0x82F63B78 : state >> 1;
  }
  return ~state;
}

TEST(Crc32c, HasThePublishedValues) {
  EXPECT_EQ(crc32c(""), 0u);
  EXPECT_EQ(crc32c("123456789"), 0xE3069283u);
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8A9136AAu);
  EXPECT_EQ(crc32c(std::string(32, '\xff')), 0x62A8AB43u);
}

TEST(Crc32c, BothWaysFollowTheDefinition) {
  std::mt19937 random(5);
  for (int round = 0; round < 300; ++round) {
    std::string bytes(random() % 70, '\0');
    for (char &byte : bytes)
      byte = static_cast<char>(random());
    uint32_t expected = bitByBit(bytes);
    EXPECT_EQ(crc32c(bytes), expected);
    EXPECT_EQ(crc32cByTable(0, bytes.data(), bytes.size()), expected);
    // In two pieces, the second at any alignment.
    size_t cut = bytes.empty() ? 0 : random() % bytes.size();
    uint32_t first = crc32c(0, bytes.data(), cut);
    EXPECT_EQ(crc32c(first, bytes.data() + cut, bytes.size() - cut), expected);
  }
}

TEST(Crc32c, EveryFlippedBitShows) {
  std::string bytes(257, 'x');
  uint32_t right = crc32c(bytes);
  for (size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    bytes[bit / 8] ^= static_cast<char>(1 << bit % 8);
    EXPECT_NE(crc32c(bytes), right) << bit;
    bytes[bit / 8] ^= static_cast<char>(1 << bit % 8);
  }
}
