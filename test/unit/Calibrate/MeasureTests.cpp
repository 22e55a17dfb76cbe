//===- MeasureTests.cpp - what links of this machine do -------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// That messages of every size go there and back and end in figures; no figure
// is held to anything that depends on the machine.
//
//===----------------------------------------------------------------------===//

#include "takt-rt/calibrate/cluster_text.h"
#include "takt-rt/calibrate/measure.h"

#include <gtest/gtest.h>

namespace takt::rt {
namespace {

TEST(Measure, EverySizeBetweenThreads) {
  std::vector<TransferTime> times = exchangeBetweenThreads();
  ASSERT_EQ(times.size(), messageSizes().size());
  for (size_t i = 0; i < times.size(); ++i) {
    EXPECT_EQ(times[i].bytes, messageSizes()[i]);
    EXPECT_GT(times[i].nanos, 0);
  }
}

TEST(Measure, RatesOfADevice) {
  DeviceRates rates = measureDevice();
  EXPECT_GT(rates.flops, 0);
  EXPECT_GT(rates.bytesPerSecond, 0);
  EXPECT_GE(coresHere(), 1);
  EXPECT_GT(memoryHere(), 0);
}

TEST(ClusterText, UnitsAreRight) {
  EXPECT_EQ(formatFlops(5e5), "0.5 MFLOP/s");
  EXPECT_EQ(formatFlops(9.953e10), "99.53 GFLOP/s");
  EXPECT_EQ(formatFlops(3.12e14), "312 TFLOP/s");
  EXPECT_EQ(formatRate(512), "512 B/s");
  EXPECT_EQ(formatRate(4.5e11), "450 GB/s");
  EXPECT_EQ(formatRate(3.35e12), "3.35 TB/s");
}

} // namespace
} // namespace takt::rt
