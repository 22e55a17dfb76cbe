//===- PictureTest.cpp - pictures and pages ----------------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Pictures are well-formed XML that shows every box; a page holds the whole
// plan and needs no other file.
//
//===----------------------------------------------------------------------===//
#include "Runs.h"

#include "takt-rt/core/error.h"
#include "takt-rt/trace/memory.h"

#include <gtest/gtest.h>

#include <vector>

using namespace takt::rt;
using namespace takt::rt::test;

namespace {

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

TEST(Timeline, LargePlansLoseTheirTitlesOnly) {
  PipelineShape shape = smallShape();
  shape.microBatches = 2000;
  Plan plan = makePipeline(shape);
  Runs runs;
  runs.predicted = simulate(plan).records;
  std::string svg = svgOf(plan, runs);
  EXPECT_EQ(countOf(svg, "<rect class=\"b F\""), 6u * 2000);
  EXPECT_EQ(svg.find(", rank 2: "), std::string::npos);
}

TEST(Timeline, PageIsSelfContained) {
  Plan plan = makePipeline(smallShape());
  std::string page = pageOf(plan, bothRuns(plan));
  EXPECT_EQ(page.find("<!DOCTYPE html>"), 0u);
  EXPECT_EQ(countOf(page, "http"), 0u);
  EXPECT_EQ(countOf(page, "src="), 0u);
  EXPECT_EQ(countOf(page, "url("), 0u);
  EXPECT_EQ(countOf(page, "<canvas"), 1u);
}

TEST(Timeline, PageHoldsPlanAndRuns) {
  Plan plan = makePipeline(smallShape());
  Runs runs = bothRuns(plan);
  json data = dataOf(pageOf(plan, runs));
  EXPECT_EQ(data["title"], "linear-chain: 1f1b on test");
  ASSERT_EQ(data["roles"].size(), 3u);
  ASSERT_EQ(data["runs"].size(), 2u);
  for (const Record &record : runs.measured) {
    // The begin is the sum of what stands before it.
    const json *rank = &data["runs"][1]["ranks"][record.rank];
    if (rank->is_number())
      rank = &data["runs"][1]["ranks"][rank->get<int>()];
    const json &times = (*rank)["lanes"][record.lane];
    Nanos begin = 0;
    for (uint32_t i = 0; i < 2 * record.instr; ++i)
      begin += times[i].get<Nanos>();
    begin += times[2 * record.instr].get<Nanos>();
    EXPECT_EQ(begin, record.begin);
    EXPECT_EQ(begin + times[2 * record.instr + 1].get<Nanos>(), record.end);
  }
  for (size_t r = 0; r < plan.roles.size(); ++r)
    for (size_t l = 0; l < plan.roles[r].lanes.size(); ++l) {
      const Lane &lane = plan.roles[r].lanes[l];
      const json &shown = data["roles"][r]["lanes"][l];
      EXPECT_EQ(shown["style"].get<std::string>().size(), lane.instrs.size());
      EXPECT_EQ(shown["waits"].size(),
                lane.instrs.size() + 2 * lane.waits.size());
    }
}

TEST(Timeline, PageStatesEqualTimesOnceAndNamesWhatIsMissing) {
  PipelineShape shape = smallShape();
  shape.replicas = {2, 2, 2};
  Plan plan = makePipeline(shape);
  Runs runs;
  runs.measured = simulate(plan).records;
  EXPECT_EQ(dataOf(pageOf(plan, runs))["runs"][0]["ranks"][1], 0);
  Record &moved = runs.measured.back(); // of one rank: no longer the same
  ++moved.end;
  json changed = dataOf(pageOf(plan, runs))["runs"][0]["ranks"];
  EXPECT_TRUE(changed[moved.rank].is_object());
  Record dropped = runs.measured.front();
  runs.measured.erase(runs.measured.begin());
  json at = dataOf(pageOf(plan, runs))["runs"][0]["ranks"][dropped.rank]["at"];
  ASSERT_EQ(at.size(), 1u);
  EXPECT_EQ(at.begin().value().front().get<uint32_t>(), dropped.instr + 1);
}

TEST(Timeline, NamesCannotLeaveTheirPlaceInThePage) {
  Plan plan = makePipeline(smallShape());
  plan.model = "</script><b \"x\\";
  std::string page = pageOf(plan, bothRuns(plan));
  EXPECT_EQ(countOf(page, "</script>"), countOf(page, "<script"));
  EXPECT_EQ(dataOf(page)["title"], plan.model + ": 1f1b on test");
}

TEST(Memory, CurveOfOneStage) {
  PipelineShape shape;
  shape.stages = 1;
  shape.microBatches = 2;
  shape.forward = 10;
  shape.backward = 20;
  Plan plan = makePipeline(shape);
  std::vector<MemoryPoint> curve =
      memoryOverTime(plan, simulate(plan).records).at(0);
  Bytes always = 0, arena = 0;
  for (const Pool &pool : plan.roles[0].pools) {
    arena += pool.bytes();
    if (pool.kind == PoolKind::Weights || pool.kind == PoolKind::Gradients ||
        pool.kind == PoolKind::OptimizerState || pool.kind == PoolKind::Loss)
      always += pool.bytes();
  }
  EXPECT_EQ(curve.front().time, 0);
  EXPECT_GE(peakOf(curve), always);
  EXPECT_LE(peakOf(curve), arena);
  EXPECT_EQ(curve.back().bytes, always); // all is given back at the end
  for (size_t i = 1; i < curve.size(); ++i) {
    EXPECT_GT(curve[i].time, curve[i - 1].time);
    EXPECT_NE(curve[i].bytes, curve[i - 1].bytes);
  }
}

TEST(Memory, HighestWhereMostMicroBatchesAreHeld) {
  PipelineShape shape;
  shape.stages = 3;
  shape.microBatches = 6;
  shape.forward = 10;
  shape.backward = 20;
  Plan plan = makePipeline(shape);
  auto curves = memoryOverTime(plan, simulate(plan).records);
  shape.oneFOneB = false;
  Plan gpipe = makePipeline(shape);
  auto higher = memoryOverTime(gpipe, simulate(gpipe).records);
  // GPipe holds six micro-batches on each stage, 1F1B two on the second and one
  // on the third. (The first stage loads all its inputs at once.)
  Bytes last = 0;
  for (int32_t rank = 1; rank < 3; ++rank) {
    Bytes more = peakOf(higher[rank]) - peakOf(curves[rank]);
    EXPECT_GT(more, last);
    last = more;
  }
  // A rank that has not run holds what it always holds.
  auto idle = memoryOverTime(plan, {});
  EXPECT_EQ(idle[1].size(), 1u);
  EXPECT_EQ(idle[1][0].bytes, curves[1].back().bytes);
}
