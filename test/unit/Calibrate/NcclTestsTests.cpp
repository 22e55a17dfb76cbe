//===- NcclTestsTests.cpp - what nccl-tests print -------------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Tables made from a link give it back; a published one is read and its busbw
// met; damaged ones are refused with their line.
//
//===----------------------------------------------------------------------===//

#include "takt-rt/calibrate/nccl_tests.h"
#include "takt-rt/core/error.h"
#include "takt-rt/core/file.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace takt::rt {
namespace {

struct Made {
  bool allReduce = true;
  int32_t ranks = 8;
  int32_t hosts = 1;
  bool names = true;  ///< devices and the test
  bool root = true;   ///< the column of newer versions
  double latency = 3; ///< us
  double rate = 200;  ///< GB/s
};

std::string table(const Made &made) {
  std::string text;
  if (made.names) {
    text += fmt::format("# Collective test starting: {}\n# Using devices\n",
                        made.allReduce ? "all_reduce_perf" : "sendrecv_perf");
    for (int32_t r = 0; r < made.ranks; ++r)
      text += fmt::format("#  Rank {:2} Group  0 Pid {} on node{} device  0 "
                          "[0x07] GPU\n",
                          r, 100 + r, r * made.hosts / made.ranks);
  }
  text += fmt::format("#  size  count  type  redop {} time algbw busbw #wrong "
                      "time algbw busbw #wrong\n#  (B) (elements) (us)\n",
                      made.root ? "root" : "");
  for (double bytes = 1024; bytes < 5e9; bytes *= 4) {
    double messages = made.allReduce ? 2.0 * (made.ranks - 1) : 1;
    double share = made.allReduce ? made.ranks : 1;
    double micros =
        messages * (made.latency + bytes / share / made.rate * 1e-3);
    double rate = bytes / micros * 1e-3;
    std::string figures = fmt::format("{:.3f} {:.2f} {:.2f} 0", micros, rate,
                                      rate * messages / share);
    text += fmt::format(" {:.0f} {:.0f} float {} {} {} {}\n", bytes, bytes / 4,
                        made.allReduce ? "sum" : "", made.root ? "-1" : "",
                        figures, figures);
  }
  return text + "# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 1\n";
}

TEST(NcclTests, MadeTablesGiveBackTheirLink) {
  for (bool allReduce : {true, false})
    for (int32_t ranks : {2, 8, 16})
      for (bool names : {true, false})
        for (bool root : {true, false}) {
          Made made{allReduce, ranks, 2, names, root};
          NcclTable read = parseNcclTests(table(made), "made.txt");
          EXPECT_EQ(read.allReduce, allReduce);
          EXPECT_EQ(read.ranks, names || allReduce ? ranks : 2);
          EXPECT_EQ(read.hosts, names ? 2 : 0);
          LinkFit fit = fitNcclTests(read);
          EXPECT_NEAR(fit.latencyNanos, 3'000, 60);
          EXPECT_NEAR(fit.bytesPerSecond, 200e9, 4e9);
        }
}

TEST(NcclTests, FitsAPublishedTable) {
  std::string path = TAKT_TEST_DATA "/nccl-tests/p4de-2-nodes.txt";
  NcclTable read = parseNcclTests(readFile(path), path);
  EXPECT_TRUE(read.allReduce);
  EXPECT_EQ(read.ranks, 16); // by busbw / algbw
  EXPECT_EQ(read.times.size(), 58u);
  EXPECT_EQ(read.times[0].bytes, 8);
  EXPECT_DOUBLE_EQ(read.times[0].nanos, 164'300);
  EXPECT_EQ(read.times.back().bytes, 2147483648);
  LinkFit fit = fitNcclTests(read);
  // The table: 161 us for nothing, 30 messages one after the other; 78.33 GB/s
  // at most.
  EXPECT_NEAR(fit.latencyNanos, 161e3 / 30, 0.25 * 161e3 / 30);
  EXPECT_NEAR(fit.bytesPerSecond, 78.33e9, 0.25 * 78.33e9);
}

std::string faultOf(const std::string &text) {
  try {
    fitNcclTests(parseNcclTests(text, "in.txt"));
  } catch (const Error &error) {
    EXPECT_EQ(error.code(), ExitCode::BadInput);
    return error.what();
  }
  return "";
}

TEST(NcclTests, RefusesWithThePlace) {
  auto expect = [](const std::string &text, const char *words) {
    EXPECT_NE(faultOf(text).find(words), std::string::npos)
        << faultOf(text) << "\n"
        << text;
  };
  const std::string head = "# size count type redop root time algbw busbw "
                           "#wrong time algbw busbw #wrong\n";
  expect("", "in.txt: no table");
  expect("8 2 float sum -1 1.0 0.01 0.01 0\n", "no table");
  expect(head, "no table");
  expect(head + "1000 250 float sum -1 x 1.00 1.75 0 1.0 1.00 1.75 0\n",
         "in.txt:2: 'x' is no time");
  expect(head + "1000 250 float sum -1 -1 1.00 1.75 0 1.0 1.00 1.75 0\n",
         "in.txt:2: '-1' is no time");
  expect(head + "1000\n", "in.txt:2: a row of 1 columns");
  expect(head + "1000 250 float sum -1 0 0 0 0 0 0 0 0\n",
         "in.txt:2: 1000 B in 0 us cannot be");
  expect(head + "0.5 0 float sum -1 1.0 0 0 0 1.0 0 0 0\n",
         "in.txt:2: 0.5 B in 1 us cannot be");
  expect(head + "1000 250 float sum -1 1.0 7.00 1.75 0 1.0 1.00 1.75 0\n",
         "in.txt:2: 1000 B in 1 us are 1.00 GB/s");
  // A reduce-scatter: 'busbw' is (n - 1) / n times 'algbw'.
  expect(head + "1000 250 float sum -1 1.0 1.00 0.75 0 1.0 1.00 0.75 0\n",
         "not an all-reduce");
  expect(head + "1000 250 float sum -1 1.0 1.00 1.75 0 1.0 1.00 1.75 0\n",
         "fewer than two sizes");
  expect("# Collective test starting: all_gather_perf\n" + head +
             "1000 250 float none -1 1.0 1.00 0.5 0 1.0 1.00 0.5 0\n",
         "'all_gather_perf' does not say");
}

} // namespace
} // namespace takt::rt
