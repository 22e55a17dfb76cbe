//===- TraceTest.cpp - traces and timelines ---------------------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// The trace is JSON whose events fit together; the pictures are well-formed XML
// that shows every box.
//
//===----------------------------------------------------------------------===//
#include "../RuntimeCore/PlanBuilder.h"

#include "takt-rt/core/clock.h"
#include "takt-rt/core/error.h"
#include "takt-rt/trace/timeline.h"
#include "takt-rt/trace/trace.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <map>
#include <set>
#include <sstream>

using namespace takt::rt;
using namespace takt::rt::test;
using nlohmann::json;

namespace {

PipelineShape smallShape() {
  PipelineShape shape;
  shape.stages = 3;
  shape.replicas = {2, 1, 3};
  shape.forward = 1234;
  shape.backward = 2345;
  shape.update = 100;
  shape.link = {"nv", 50, 1e9};
  return shape;
}

/// The predicted run, and as the measured one the same twice as slow.
Runs bothRuns(const Plan &plan) {
  Runs runs;
  runs.predicted = simulate(plan).records;
  runs.measured = runs.predicted;
  for (Record &record : runs.measured) {
    record.begin *= 2;
    record.end *= 2;
  }
  return runs;
}

json traceOf(const Plan &plan, const Runs &runs) {
  std::ostringstream out;
  writeChromeTrace(out, plan, runs);
  return json::parse(out.str());
}

std::string svgOf(const Plan &plan, const Runs &runs) {
  std::ostringstream out;
  writeTimelineSvg(out, plan, runs);
  return out.str();
}

size_t countOf(const std::string &text, const std::string &what) {
  size_t count = 0;
  for (size_t at = text.find(what); at != std::string::npos;
       at = text.find(what, at + 1))
    ++count;
  return count;
}

/// Empty if every tag is closed in order, attributes are quoted and every
/// ampersand starts an entity.
std::string xmlFault(const std::string &text) {
  std::vector<std::string> open;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '&') {
      size_t end = text.find(';', i);
      if (end == std::string::npos || end - i > 6)
        return "bare ampersand";
    }
    if (text[i] != '<')
      continue;
    size_t end = text.find('>', i);
    if (end == std::string::npos)
      return "tag without an end";
    std::string tag = text.substr(i + 1, end - i - 1);
    if (tag.find('<') != std::string::npos)
      return "bare <";
    std::string name = tag.substr(0, tag.find_first_of(" \n"));
    if (countOf(tag, "\"") % 2 != 0)
      return "open quote in " + tag;
    if (name[0] == '/') {
      if (open.empty() || "/" + open.back() != name)
        return "unexpected <" + name + ">";
      open.pop_back();
    } else if (tag.back() != '/') {
      open.push_back(name);
    }
    i = end;
  }
  return open.empty() ? "" : "<" + open.back() + "> is not closed";
}

} // namespace

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
    if (event["ph"] == "C") {
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

TEST(Timeline, SvgIsWellFormedAndShowsEveryCall) {
  Plan plan = makePipeline(smallShape());
  plan.model = "a < b & \"c\"";
  Runs runs = bothRuns(plan);
  std::string svg = svgOf(plan, runs);
  EXPECT_EQ(xmlFault(svg), "");
  EXPECT_NE(svg.find("a &lt; b &amp; &quot;c&quot;: 1f1b on test"),
            std::string::npos);
  // 6 ranks x 4 micro-batches in either run, and one update each.
  EXPECT_EQ(countOf(svg, "<rect class=\"b F\""), 2u * 6 * 4);
  EXPECT_EQ(countOf(svg, "<rect class=\"b B\""), 2u * 6 * 4);
  EXPECT_EQ(countOf(svg, "<rect class=\"b U\""), 2u * 6);
  EXPECT_NE(svg.find("predicted: step "), std::string::npos);
  EXPECT_NE(svg.find("2.00 x predicted"), std::string::npos);
  EXPECT_NE(svg.find("<title>1B2, rank 2: 2.345 us from "), std::string::npos);
}

TEST(Timeline, EitherRunAloneAndNone) {
  Plan plan = makePipeline(smallShape());
  Runs runs = bothRuns(plan);
  Runs measured;
  measured.measured = runs.measured;
  std::string svg = svgOf(plan, measured);
  EXPECT_EQ(xmlFault(svg), "");
  EXPECT_EQ(svg.find("predicted"), std::string::npos);
  EXPECT_EQ(xmlFault(svgOf(plan, Runs())), "");
}

TEST(Timeline, UnitCostsAndZeroTimesStillDraw) {
  PipelineShape shape;
  Plan plan = makePipeline(shape);
  Runs runs;
  runs.predicted = simulate(plan).records;
  EXPECT_NE(svgOf(plan, runs).find(" ns</text>"), std::string::npos);
  shape.forward = shape.backward = 0;
  plan = makePipeline(shape);
  runs.predicted = simulate(plan).records;
  EXPECT_EQ(xmlFault(svgOf(plan, runs)), "");
}

TEST(Timeline, ManyRanksShowOneOfEachRole) {
  PipelineShape shape;
  shape.replicas = {60, 30};
  shape.samples = 60;
  Plan plan = makePipeline(shape);
  Runs runs;
  runs.predicted = simulate(plan).records;
  std::string svg = svgOf(plan, runs);
  EXPECT_EQ(countOf(svg, "class=\"bar\""), 2u);
  EXPECT_NE(svg.find("ranks 60-89"), std::string::npos);
  EXPECT_NE(svg.find("one rank of each role is shown"), std::string::npos);
}

TEST(Timeline, PageIsSelfContained) {
  Plan plan = makePipeline(smallShape());
  std::ostringstream out;
  writeTimelineHtml(out, plan, bothRuns(plan));
  std::string page = out.str();
  EXPECT_EQ(page.find("<!DOCTYPE html>"), 0u);
  EXPECT_EQ(countOf(page, "http"), countOf(page, "http://www.w3.org/2000/svg"));
  EXPECT_EQ(countOf(page, "src="), 0u);
  EXPECT_EQ(countOf(page, "<svg"), 1u);
  EXPECT_NE(page.find("data-span="), std::string::npos);
}
