//===- FlightTests.cpp - recordings, whole and damaged --------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// What a rank records is read back after any end of it, and damage is said.
//
//===----------------------------------------------------------------------===//

#include "../RuntimeCore/PlanBuilder.h"

#include "takt-rt/core/error.h"
#include "takt-rt/core/file.h"
#include "takt-rt/trace/flight.h"

#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <map>

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace takt::rt::test {
namespace {

class FlightTest : public testing::Test {
protected:
  FlightTest() : plan(makePipeline({})) {
    folder = testing::TempDir() + "/takt-flight-" +
             testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::remove_all(folder);
    info.ranks = 2;
    info.planHash = 0x1234;
    info.run = "this run";
    info.model = "m";
    info.plan = "/somewhere/job.plan";
    info.host = "here";
    info.pid = 42;
    info.started = 1000;
    info.deadline = 7;
    info.predicted = 8;
  }
  ~FlightTest() override { std::filesystem::remove_all(folder); }
  std::string path(int32_t rank = 0) const {
    return folder + "/" + flightName(rank);
  }
  const Role &role() const { return plan.roles[0]; }
  static std::string errorOf(const std::string &content) {
    try {
      parseFlight(content, "file");
    } catch (const Error &error) {
      return error.what();
    }
    return "";
  }

  Plan plan;
  std::string folder;
  FlightInfo info;
};

TEST_F(FlightTest, IsReadAsItWasRecorded) {
  FlightRecorder recorder(folder, info, role());
  Flight before = readFlight(path());
  EXPECT_EQ(before.step, -1);
  EXPECT_FALSE(before.inStep);
  recorder.stepBegan(5);
  recorder.began(1, 0);
  recorder.completed(1, 0);
  recorder.began(0, 0);
  Flight flight = readFlight(path());
  EXPECT_EQ(flight.info.ranks, 2);
  EXPECT_EQ(flight.info.planHash, 0x1234u);
  EXPECT_EQ(flight.info.run, "this run");
  EXPECT_EQ(flight.info.plan, "/somewhere/job.plan");
  EXPECT_EQ(flight.info.host, "here");
  EXPECT_EQ(flight.info.pid, 42);
  EXPECT_EQ(flight.info.deadline, 7);
  EXPECT_EQ(flight.step, 5);
  EXPECT_TRUE(flight.inStep);
  ASSERT_EQ(flight.lanes.size(), role().lanes.size());
  EXPECT_EQ(flight.lanes[0].completed, 0u);
  EXPECT_TRUE(flight.lanes[0].running);
  EXPECT_EQ(flight.lanes[1].completed, 1u);
  EXPECT_FALSE(flight.lanes[1].running);
  ASSERT_EQ(flight.events.size(), 4u);
  EXPECT_EQ(flight.events[0].kind, FlightEventKind::StepBegan);
  EXPECT_EQ(flight.events[3].kind, FlightEventKind::Began);
  EXPECT_EQ(flight.events[3].step, 5);
  EXPECT_LE(flight.events[0].time, flight.events[3].time);
  EXPECT_EQ(flight.end, FlightEnd::None);
  recorder.completed(0, 0);
  recorder.stepEnded();
  recorder.end(FlightEnd::Failed, 13, "a connection has ended");
  recorder.end(FlightEnd::Failed, 12, "nothing moved\nfor 3 s");
  flight = readFlight(path());
  EXPECT_FALSE(flight.inStep);
  EXPECT_EQ(flight.busy.size(), 1u);
  EXPECT_EQ(flight.end, FlightEnd::Failed);
  EXPECT_EQ(flight.exitCode, 12);
  EXPECT_EQ(flight.message, "nothing moved for 3 s");
}

TEST_F(FlightTest, KeepsTheLastEvents) {
  FlightRecorder recorder(folder, info, role(), 8);
  for (int64_t step = 0; step < 100; ++step) {
    recorder.stepBegan(step);
    recorder.began(0, 0);
    recorder.completed(0, 0);
    recorder.stepEnded();
  }
  Flight flight = readFlight(path());
  ASSERT_EQ(flight.events.size(), 8u);
  EXPECT_EQ(flight.lost, 392u);
  EXPECT_EQ(flight.damaged, 0u);
  EXPECT_EQ(flight.events[0].step, 98);
  EXPECT_EQ(flight.busy.size(), kFlightSteps);
}

TEST_F(FlightTest, SurvivesAKill) {
  pid_t child = fork();
  if (child == 0) {
    FlightRecorder recorder(folder, info, role());
    recorder.stepBegan(3);
    recorder.began(0, 0);
    raise(SIGKILL);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status));
  Flight flight = readFlight(path());
  EXPECT_EQ(flight.step, 3);
  EXPECT_TRUE(flight.lanes[0].running);
  EXPECT_EQ(flight.events.size(), 2u);
  EXPECT_EQ(flight.end, FlightEnd::None);
}

TEST_F(FlightTest, TheRunBeforeIsKept) {
  for (int64_t step : {1, 2, 3}) {
    FlightRecorder recorder(folder, info, role());
    recorder.stepBegan(step);
  }
  EXPECT_EQ(readFlight(path()).step, 3);
  EXPECT_EQ(readFlight(folder + "/previous/" + flightName(0)).step, 2);
}

/// Recordings by run: its word, and the ranks of the folder that are of it.
static std::map<std::string, std::vector<int32_t>>
runsIn(const std::string &folder) {
  std::map<std::string, std::vector<int32_t>> runs;
  for (const Flight &flight : readFlights(folder).flights)
    runs[flight.info.run].push_back(flight.info.rank);
  return runs;
}

// Whatever the sizes of runs are, a folder holds one run and the one before it.
TEST_F(FlightTest, RanksThatARunLacksAreMovedToo) {
  using Ranks = std::map<std::string, std::vector<int32_t>>;
  auto record = [&](const std::string &run, std::vector<int32_t> order) {
    info.run = run;
    info.ranks = int32_t(order.size());
    for (int32_t rank : order) {
      info.rank = rank;
      FlightRecorder(folder, info, role());
    }
  };
  record("a", {0, 1, 2, 3, 4});
  std::ofstream(folder + "/flight.rank7.bin.txt") << "not a recording";
  record("b", {1, 0});
  EXPECT_EQ(runsIn(folder), (Ranks{{"b", {0, 1}}}));
  EXPECT_EQ(runsIn(folder + "/previous"), (Ranks{{"a", {0, 1, 2, 3, 4}}}));
  record("c", {0, 1});
  EXPECT_EQ(runsIn(folder + "/previous"), (Ranks{{"b", {0, 1}}}));
  record("d", {2, 0, 1});
  EXPECT_EQ(runsIn(folder), (Ranks{{"d", {0, 1, 2}}}));
  EXPECT_EQ(runsIn(folder + "/previous"), (Ranks{{"c", {0, 1}}}));
  record("e", {0});
  EXPECT_EQ(runsIn(folder), (Ranks{{"e", {0}}}));
  EXPECT_EQ(runsIn(folder + "/previous"), (Ranks{{"d", {0, 1, 2}}}));
  EXPECT_TRUE(std::filesystem::exists(folder + "/flight.rank7.bin.txt"));
}

TEST(FlightName, IsOfOneRank) {
  EXPECT_EQ(rankOfFlight(flightName(0)), 0);
  EXPECT_EQ(rankOfFlight(flightName(1234567)), 1234567);
  for (const char *other :
       {"", "flight.rank", "flight.rank.bin", "flight.rank-1.bin",
        "flight.rank01.bin", "flight.rank99999999999.bin", "flight.rank1.bin ",
        "flight.rank1.txt"})
    EXPECT_EQ(rankOfFlight(other), -1) << other;
}

TEST_F(FlightTest, NoRoomIsAnErrorAtTheStart) {
  auto before = std::signal(SIGXFSZ, SIG_IGN);
  rlimit old;
  getrlimit(RLIMIT_FSIZE, &old);
  rlimit small = old;
  small.rlim_cur = 10000;
  setrlimit(RLIMIT_FSIZE, &small);
  EXPECT_THROW(FlightRecorder(folder, info, role()), Error);
  setrlimit(RLIMIT_FSIZE, &old);
  std::signal(SIGXFSZ, before);
  EXPECT_FALSE(std::filesystem::exists(path()));
}

TEST_F(FlightTest, DamageIsFound) {
  {
    FlightRecorder recorder(folder, info, role(), 16);
    for (int64_t step = 0; step < 20; ++step) {
      recorder.stepBegan(step);
      recorder.began(0, 0);
    }
  }
  std::string content = readFile(path());
  EXPECT_EQ(errorOf(content), "");
  for (size_t size :
       {size_t(0), size_t(7), size_t(8191), size_t(8192), content.size() - 1})
    EXPECT_NE(errorOf(content.substr(0, size)).find("'file' is no recording"),
              std::string::npos)
        << size;
  EXPECT_NE(errorOf(content + "x"), "");
  std::string other = content;
  other[0] = 'X';
  EXPECT_NE(errorOf(other).find("does not begin as one"), std::string::npos);
  other = content;
  other[8] = 9;
  EXPECT_NE(errorOf(other).find("has the version 9"), std::string::npos);
  // Every bit of every event.
  size_t begin = content.size() - 16 * 24;
  for (size_t bit = 8 * begin; bit < 8 * content.size(); ++bit) {
    other = content;
    other[bit / 8] ^= char(1 << bit % 8);
    EXPECT_EQ(parseFlight(other, "file").damaged, 1u) << bit;
  }
}

TEST_F(FlightTest, AFolderTellsWhatItCannotRead) {
  FlightRecorder recorder(folder, info, role());
  std::ofstream(path(1)) << "no recording";
  std::filesystem::copy(path(0), path(7));
  std::ofstream(folder + "/notes.txt") << "notes";
  FlightFolder found = readFlights(folder);
  EXPECT_EQ(found.flights.size(), 1u);
  ASSERT_EQ(found.faults.size(), 2u);
  EXPECT_NE(found.faults[0].find(flightName(1)), std::string::npos);
  EXPECT_NE(found.faults[1].find("holds a recording of rank 0"),
            std::string::npos);
  EXPECT_THROW(readFlights(folder + "/none"), Error);
}

} // namespace
} // namespace takt::rt::test
