//===- ScheduleFileTimesTest.cpp - published files take published times ----===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// PyTorch's schedule files under the virtual clock against
// expected-schedules.json, with free transfers and with transfers of one unit.
//
//===----------------------------------------------------------------------===//
#include "takt-rt/core/clock.h"
#include "takt/Lower/TimedPlan.h"
#include "takt/Schedule/File.h"
#include "takt/Support/TextFile.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>

using namespace takt;
using nlohmann::json;

namespace {

constexpr rt::Nanos kUnit = 1000;

std::string readData(const std::string &name) {
  Diagnostics diags;
  std::optional<std::string> text = readTextFile(
      std::string(TAKT_TEST_DATA) + "/pytorch-pipelining/" + name, diags);
  EXPECT_TRUE(text) << diags.text();
  return text.value_or("");
}

ScheduleFile readSchedule(const std::string &name) {
  Diagnostics diags;
  std::optional<ScheduleFile> file =
      parseScheduleCsv(name, readData(name + ".csv"), diags);
  EXPECT_TRUE(file && verifyFile(*file, diags)) << diags.text();
  return file.value_or(ScheduleFile{});
}

void expectTimes(const ScheduleFile &file, rt::Nanos transfer,
                 const json &expected) {
  TimedPlanProblem problem;
  problem.shape = {file.stages, file.microBatches};
  problem.schedule = computeSchedule(file);
  problem.times = {{kUnit, kUnit, kUnit, 2 * kUnit}};
  problem.transfer = transfer;
  ASSERT_FALSE(problem.check()) << *problem.check();
  const rt::Plan plan = timedPlan(problem);
  const rt::Simulation run = rt::simulate(plan);
  EXPECT_EQ(run.makespan, expected["makespan"].get<double>() * kUnit);
  for (size_t rank = 0; rank < file.rows.size(); ++rank) {
    EXPECT_EQ(run.busy[rank], expected["busy"][rank].get<double>() * kUnit);
    EXPECT_EQ(run.peakInFlight[rank], expected["peak_in_flight"][rank]);
    rt::Nanos first = run.makespan, last = 0;
    for (const rt::Record &record : run.records)
      if (record.rank == int32_t(rank) && record.lane == 0) {
        first = std::min(first, record.begin);
        last = std::max(last, record.end);
      }
    EXPECT_EQ(last - first,
              expected["first_to_last_span_per_rank"][rank].get<double>() *
                  kUnit);
  }
}

TEST(ScheduleFileTimes, PublishedFilesTakeTheExpectedTimes) {
  const json all = json::parse(readData("expected-schedules.json"));
  for (const char *name :
       {"zb1p_2rank_2stagep_compute", "torchtitan_custom_schedule"}) {
    SCOPED_TRACE(name);
    const json &expected = all.at(name);
    const ScheduleFile file = readSchedule(name);
    EXPECT_EQ(int32_t(file.rows.size()), expected["ranks"]);
    EXPECT_EQ(file.stages, expected["stages"]);
    EXPECT_EQ(file.microBatches, expected["microbatches"]);
    expectTimes(file, 0, expected);
    expectTimes(file, kUnit, expected["with_comm_1"]);
    // The same times with communication written out, and read again.
    Diagnostics diags;
    std::optional<ScheduleFile> whole = parseScheduleCsv(
        name, writeScheduleCsv(insertTransfers(file)), diags);
    ASSERT_TRUE(whole && verifyFile(*whole, diags)) << diags.text();
    expectTimes(*whole, kUnit, expected["with_comm_1"]);
  }
}

/// Four hundred thousand actions pass through a file.
TEST(ScheduleFileTimes, LargeFilesAreRead) {
  const ScheduleProblem shape{64, 1024};
  const ScheduleFile file =
      toFile(shape, generateSchedule("1f1b", shape).value());
  const std::string text = writeScheduleCsv(insertTransfers(file));
  Diagnostics diags;
  std::optional<ScheduleFile> read = parseScheduleCsv("big.csv", text, diags);
  ASSERT_TRUE(read && verifyFile(*read, diags)) << diags.text();
  EXPECT_EQ(writeScheduleCsv(*read), text);
}

} // namespace
