//===- FitTests.cpp - latency and bandwidth of a link ---------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Times made from a latency and a bandwidth give them back: exactly, with
// noise, and with messages that something held up.
//
//===----------------------------------------------------------------------===//

#include "takt-rt/calibrate/fit.h"
#include "takt-rt/core/error.h"

#include <gtest/gtest.h>

#include <random>

namespace takt::rt {
namespace {

std::vector<TransferTime> timesOf(double latency, double rate) {
  std::vector<TransferTime> times;
  for (Bytes bytes = 64; bytes <= (64 << 20); bytes *= 4)
    times.push_back({bytes, latency + double(bytes) * 1e9 / rate});
  return times;
}

TEST(FitLink, GivesBackWhatTimesWereMadeFrom) {
  for (double latency : {0.0, 300.0, 2'000.0, 150'000.0})
    for (double rate : {1e8, 4e9, 4.5e11}) {
      LinkFit fit = fitLink(timesOf(latency, rate));
      EXPECT_NEAR(fit.latencyNanos, latency, 1e-3 + latency * 1e-6);
      EXPECT_NEAR(fit.bytesPerSecond, rate, rate * 1e-6);
      EXPECT_LT(fit.error, 1e-6);
    }
}

TEST(FitLink, NoiseAndMessagesHeldUpDoNotBendIt) {
  std::mt19937 random(7);
  std::uniform_real_distribution<double> noise(0.97, 1.03);
  for (int round = 0; round < 50; ++round) {
    double latency = 2'000, rate = 4e9;
    std::vector<TransferTime> times = timesOf(latency, rate);
    for (TransferTime &time : times)
      time.nanos *= noise(random);
    times[size_t(random()) % times.size()].nanos *= 8;
    LinkFit fit = fitLink(times);
    EXPECT_NEAR(fit.latencyNanos, latency, 0.1 * latency);
    EXPECT_NEAR(fit.bytesPerSecond, rate, 0.1 * rate);
  }
}

TEST(FitLink, NeverFindsANegativeLatency) {
  // As if larger messages went slower than smaller ones: caches.
  LinkFit fit = fitLink({{1000, 100}, {10'000, 2'000}, {100'000, 40'000}});
  EXPECT_EQ(fit.latencyNanos, 0);
  EXPECT_GT(fit.bytesPerSecond, 0);
}

TEST(FitLink, RefusesWhatHasNoLine) {
  EXPECT_THROW(fitLink({}), Error);
  EXPECT_THROW(fitLink({{8, 100}}), Error);
  EXPECT_THROW(fitLink({{8, 100}, {8, 101}}), Error);
  EXPECT_THROW(fitLink({{8, 100}, {16, 0}}), Error);
  EXPECT_THROW(fitLink({{8, 100}, {16, NAN}}), Error);
  EXPECT_THROW(fitLink({{8, 100}, {16, 90}, {32, 80}}), Error);
}

} // namespace
} // namespace takt::rt
