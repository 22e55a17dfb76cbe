//===- TraceTest.cpp - traces, there and back --------------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// The trace is JSON whose events fit together, and is read back.
//
//===----------------------------------------------------------------------===//
#include "Runs.h"

#include "takt-rt/core/error.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <tuple>

using namespace takt::rt;
using namespace takt::rt::test;

TEST(ChromeTrace, EventsOfEveryInstruction) {
  Plan plan = makePipeline(smallShape());
  Runs runs = bothRuns(plan);
  json trace = traceOf(plan, runs);
  size_t complete = 0;
  std::set<std::string> names;
  for (const json &event : trace["traceEvents"])
    if (event["ph"] == "X") {
      ++complete;
      names.insert(event["name"].get<std::string>());
    }
  EXPECT_EQ(complete, 2 * runs.predicted.size());
  for (const char *name : {"PP:0F3", "PP:2B0", "PP:0SEND_F1", "PP:1RECV_B2",
                           "PP:0REDUCE_GRAD", "PP:1UPDATE", "PP:0LOAD0"})
    EXPECT_EQ(names.count(name), 1u) << name;
  EXPECT_EQ(trace["otherData"]["model"], "linear-chain");
}

TEST(ChromeTrace, EventsOfALaneDoNotOverlap) {
  Plan plan = makePipeline(smallShape());
  json trace = traceOf(plan, bothRuns(plan));
  std::map<std::pair<int, int>, double> ends;
  for (const json &event : trace["traceEvents"]) {
    if (event["ph"] != "X")
      continue;
    double &end = ends[{event["pid"], event["tid"]}];
    EXPECT_GE(event["ts"].get<double>() + 1e-9, end);
    end = event["ts"].get<double>() + event["dur"].get<double>();
  }
  EXPECT_GT(ends.size(), 12u);
}

TEST(ChromeTrace, TimesAreMicroseconds) {
  PipelineShape shape;
  shape.stages = 1;
  shape.microBatches = 1;
  shape.forward = 1'234'567;
  Plan plan = makePipeline(shape);
  Runs runs;
  runs.predicted = simulate(plan).records;
  json trace = traceOf(plan, runs);
  for (const json &event : trace["traceEvents"])
    if (event["name"] == "PP:0F0") {
      EXPECT_DOUBLE_EQ(event["dur"].get<double>(), 1234.567);
      EXPECT_EQ(event["args"]["phase"], "forward");
      EXPECT_EQ(event["args"]["micro_batch"], 0);
      return;
    }
  FAIL() << "no forward event";
}

TEST(ChromeTrace, RunsAreProcessesOfTheirOwn) {
  Plan plan = makePipeline(smallShape());
  Runs runs = bothRuns(plan);
  auto processes = [&](const Runs &shown) {
    std::map<int, std::string> names;
    json trace = traceOf(plan, shown);
    for (const json &event : trace["traceEvents"])
      if (event["name"] == "process_name")
        names[event["pid"]] = event["args"]["name"];
    return names;
  };
  std::map<int, std::string> both = processes(runs);
  EXPECT_EQ(both.size(), 12u);
  EXPECT_EQ(both[0], "predicted rank 0 (stage0)");
  EXPECT_EQ(both[11], "measured rank 5 (stage2)");
  runs.predicted.clear();
  std::map<int, std::string> measured = processes(runs);
  EXPECT_EQ(measured.size(), 6u);
  EXPECT_EQ(measured[0], "measured rank 0 (stage0)");
}

TEST(ChromeTrace, ArrowsGoForwardFromSendToReceive) {
  Plan plan = makePipeline(smallShape());
  Runs runs;
  runs.predicted = simulate(plan).records;
  std::map<int, json> starts;
  size_t arrows = 0;
  json trace = traceOf(plan, runs);
  for (const json &event : trace["traceEvents"]) {
    if (event["ph"] == "s")
      starts[event["id"]] = event;
    if (event["ph"] != "f")
      continue;
    ++arrows;
    const json &from = starts.at(event["id"]);
    EXPECT_GE(event["ts"].get<double>(), from["ts"].get<double>());
    EXPECT_NE(event["pid"], from["pid"]);
  }
  // Pieces between 2, 1 and 3 replicas, both ways, 4 micro-batches.
  EXPECT_EQ(arrows, (2u + 3u) * 2 * 4);
}

TEST(ChromeTrace, CounterReachesThePeakAndReturnsToZero) {
  Plan plan = makePipeline(smallShape());
  Runs runs;
  runs.predicted = simulate(plan).records;
  std::map<int, int> peak, last;
  json trace = traceOf(plan, runs);
  for (const json &event : trace["traceEvents"])
    if (event["name"] == "in flight") {
      int value = event["args"]["micro-batches"];
      peak[event["pid"]] = std::max(peak[event["pid"]], value);
      last[event["pid"]] = value;
    }
  for (int32_t rank = 0; rank < plan.numRanks(); ++rank) {
    EXPECT_EQ(peak[rank], plan.roles[plan.roleOf(rank)].peakInFlight);
    EXPECT_EQ(last[rank], 0);
  }
}

TEST(ChromeTrace, RecordsOfAnotherPlanAreRefused) {
  Plan plan = makePipeline(PipelineShape());
  std::ostringstream out;
  for (Record bad : {Record{9, 0, 0, 0, 1}, Record{0, 99, 0, 0, 1},
                     Record{0, 0, 9999, 0, 1}, Record{0, 0, 0, 5, 1}}) {
    Runs runs;
    runs.measured = {bad};
    EXPECT_THROW(writeChromeTrace(out, plan, runs), Error);
    EXPECT_THROW(writeTimelineSvg(out, plan, runs), Error);
  }
}

TEST(ReadTrace, GivesTheMeasuredRunBack) {
  Plan plan = makePipeline(smallShape());
  Runs runs = bothRuns(plan);
  std::vector<Record> read = readChromeTrace(textOf(plan, runs), "t", plan);
  auto key = [](const Record &r) {
    return std::tuple(r.rank, r.lane, r.instr, r.begin, r.end);
  };
  std::set<decltype(key(Record()))> expected, found;
  for (const Record &record : runs.measured)
    expected.insert(key(record));
  for (const Record &record : read)
    found.insert(key(record));
  EXPECT_EQ(found, expected);
  EXPECT_EQ(read.size(), runs.measured.size());
  runs.measured.clear();
  read = readChromeTrace(textOf(plan, runs), "t", plan);
  EXPECT_EQ(stepTime(read), stepTime(runs.predicted));
}

TEST(ReadTrace, RefusesWhatIsNoTraceOfThePlan) {
  Plan plan = makePipeline(smallShape());
  std::string trace = textOf(plan, bothRuns(plan));
  auto refusal = [&](const std::string &text) -> std::string {
    try {
      readChromeTrace(text, "t.json", plan);
    } catch (const Error &error) {
      return error.what();
    }
    return "accepted";
  };
  auto with = [&](const std::string &from, const std::string &to) {
    std::string text = trace;
    size_t at = text.rfind(from);
    EXPECT_NE(at, std::string::npos) << from;
    return text.replace(at, from.size(), to);
  };
  EXPECT_EQ(refusal("{").find("t.json: no JSON: "), 0u);
  EXPECT_EQ(refusal("[]"), "t.json: no list 'traceEvents'");
  EXPECT_EQ(refusal(R"({"traceEvents":[]})"),
            "t.json: no process is named 'measured rank N': not a trace of "
            "takt-run");
  EXPECT_EQ(refusal(R"({"traceEvents":[7]})"), "t.json: event 0 is no object");
  EXPECT_NE(refusal(with("PP:2B3", "PP:2B1")).find("is not what the plan does"),
            std::string::npos);
  EXPECT_NE(refusal(with("measured rank 5", "measured rank 6"))
                .find("a rank that the plan does not have"),
            std::string::npos);
  EXPECT_NE(refusal(with("\"ph\":\"X\",\"ts\":", "\"ph\":\"X\",\"ts\":-"))
                .find("'ts' is no time in microseconds"),
            std::string::npos);
  PipelineShape other = smallShape();
  other.stages = 2;
  other.replicas = {2, 1};
  Plan smaller = makePipeline(other);
  EXPECT_THROW(readChromeTrace(trace, "t", smaller), Error);
}
