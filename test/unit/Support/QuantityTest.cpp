//===- QuantityTest.cpp - numbers with units ---------------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Values are compared exactly: integral kinds must not pass through doubles.
//
//===----------------------------------------------------------------------===//
#include "takt/Support/Quantity.h"

#include <gtest/gtest.h>

using namespace takt;

namespace {

TEST(QuantityTest, Times) {
  EXPECT_EQ(parseTime("3 us").value, 3000);
  EXPECT_EQ(parseTime("123 ns").value, 123);
  EXPECT_EQ(parseTime("3.4 ms").value, 3400000);
  EXPECT_EQ(parseTime("1.5s").value, 1500000000);
  EXPECT_EQ(parseTime(" 0 ns ").value, 0);
  EXPECT_EQ(parseTime("0.1 us").value, 100);
  EXPECT_EQ(parseTime("1e3 ms").value, 1000000000);
  EXPECT_EQ(parseTime("25e-1 us").value, 2500);
  EXPECT_EQ(parseTime("1.4999 ns").value, 1);
  EXPECT_EQ(parseTime("1.5 ns").value, 2);
  EXPECT_EQ(parseTime("9223372036854775807 ns").value, INT64_MAX);
  EXPECT_EQ(parseTime("+7 ns").value, 7);
}

TEST(QuantityTest, BytesAreExact) {
  EXPECT_EQ(parseBytes("6835 B").value, 6835);
  EXPECT_EQ(parseBytes("80 GiB").value, int64_t(80) << 30);
  EXPECT_EQ(parseBytes("80 GB").value, 80000000000);
  EXPECT_EQ(parseBytes("1.5 KiB").value, 1536);
  EXPECT_EQ(parseBytes("2 TB").value, 2000000000000);
  EXPECT_EQ(parseBytes("2 TiB").value, int64_t(2) << 40);
  // Not representable in a double.
  EXPECT_EQ(parseBytes("9007199254740993 B").value, 9007199254740993);
  EXPECT_EQ(parseBytes("9007199254740.993 KB").value, 9007199254740993);
}

TEST(QuantityTest, Rates) {
  EXPECT_DOUBLE_EQ(parseRate("25 GB/s").value, 25e9);
  EXPECT_DOUBLE_EQ(parseRate("1 GiB/s").value, 1073741824.0);
  EXPECT_DOUBLE_EQ(parseRate("200 Gbit/s").value, 25e9);
  EXPECT_DOUBLE_EQ(parseRate("3.35 TB/s").value, 3.35e12);
  EXPECT_DOUBLE_EQ(parseFlops("312 TFLOP/s").value, 312e12);
  EXPECT_DOUBLE_EQ(parseFlops("1 PFLOP/s").value, 1e15);
  EXPECT_DOUBLE_EQ(parseFlops("5e9 FLOP/s").value, 5e9);
}

TEST(QuantityTest, Errors) {
  EXPECT_EQ(parseBytes("80").error,
            "'80' has no unit; write for example '80 GiB' (units: B, KB, KiB, "
            "MB, MiB, GB, GiB, TB, TiB)");
  EXPECT_EQ(parseTime("3").error, "'3' has no unit; write for example '3 us' "
                                  "(units: ns, us, ms, s)");
  EXPECT_EQ(parseBytes("3 us").error,
            "'3 us' is a time; a size in bytes is needed, such as '4 GiB'");
  EXPECT_EQ(parseFlops("450 GB/s").error,
            "'450 GB/s' is a transfer rate; an arithmetic rate is needed, such "
            "as '4 TFLOP/s'");
  EXPECT_EQ(parseTime("-3 us").error, "'-3 us' is negative");
  EXPECT_EQ(parseTime("inf us").error, "'inf us' is not a time; write a number "
                                       "and a unit, such as '4 us'");
  EXPECT_FALSE(parseTime("nan us"));
  EXPECT_FALSE(parseTime(""));
  EXPECT_FALSE(parseTime("us"));
  EXPECT_FALSE(parseTime("."));
  EXPECT_FALSE(parseTime("0x10 us"));
  EXPECT_FALSE(parseTime("1 000 us"));
  EXPECT_FALSE(parseTime("1,5 us"));
  EXPECT_EQ(parseBytes("80 gib").error,
            "unknown unit 'gib' in '80 gib'; did you mean 'GiB'?");
  EXPECT_EQ(parseTime("3 sec").error,
            "unknown unit 'sec' in '3 sec' (units: ns, us, ms, s)");
  EXPECT_EQ(parseBytes("0.2 B").error, "'0.2 B' is less than 1 B");
  EXPECT_EQ(parseTime("1e-9 ns").error, "'1e-9 ns' is less than 1 ns");
}

TEST(QuantityTest, Overflow) {
  EXPECT_EQ(parseTime("9223372036854775808 ns").error,
            "'9223372036854775808 ns' is too large");
  EXPECT_FALSE(parseBytes("99999999 TiB"));
  EXPECT_FALSE(parseBytes("1e999999999999 B"));
  EXPECT_FALSE(parseBytes("1e-999999999999 B"));
  EXPECT_FALSE(parseBytes("1e400 TiB"));
  EXPECT_EQ(parseBytes("0e999 B").value, 0);
  EXPECT_TRUE(parseBytes("0e999 B"));
  EXPECT_FALSE(parseBytes("1234567890123456789012345 B"));
  EXPECT_FALSE(parseRate("1e308 TB/s"));
  EXPECT_FALSE(parseFlops("1e999 FLOP/s"));
  // Long texts are cut in messages.
  EXPECT_LT(parseBytes(std::string(100000, '9') + " B").error.size(), 200u);
}

TEST(QuantityTest, Formatting) {
  EXPECT_EQ(formatTime(0), "0 ns");
  EXPECT_EQ(formatTime(123), "123 ns");
  EXPECT_EQ(formatTime(1234567), "1.235 ms");
  EXPECT_EQ(formatTime(-1500), "-1.5 us");
  EXPECT_EQ(formatTime(INT64_MIN), "-9223372037 s");
  EXPECT_EQ(formatBytes(1023), "1023 B");
  EXPECT_EQ(formatBytes(1536), "1.5 KiB");
  EXPECT_EQ(formatBytes(int64_t(80) << 30), "80 GiB");
  EXPECT_EQ(formatRate(450e9), "450 GB/s");
  EXPECT_EQ(formatFlops(312e12), "312 TFLOP/s");
}

TEST(QuantityTest, ExactTextReadsBackEqual) {
  EXPECT_EQ(exactTime(3400000), "3.4 ms");
  EXPECT_EQ(exactTime(7000), "7 us");
  EXPECT_EQ(exactTime(0), "0 ns");
  EXPECT_EQ(exactBytes(384000000), "384 MB");
  EXPECT_EQ(exactBytes(6835), "6835 B");
  for (int64_t value :
       {int64_t(0), int64_t(1), int64_t(999), int64_t(1001), int64_t(1000001),
        int64_t(123456789012345), int64_t(1) << 50, INT64_MAX}) {
    EXPECT_EQ(parseTime(exactTime(value)).value, value);
    EXPECT_EQ(parseBytes(exactBytes(value)).value, value);
  }
}

} // namespace
