//===- PeerScheduleTests.cpp - no longer than other planners' orders ------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Every row of test/data/peer-schedules whose family is there: the same
// placement, times and memory limit as the other planner's.
//
//===----------------------------------------------------------------------===//

#include "PipelineReplay.h"

#include <fstream>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

using namespace takt;
using namespace takt::test;

namespace {

TEST(PeerSchedules, AreNotBeaten) {
  std::ifstream file(TAKT_TEST_DATA "/peer-schedules/rows.json");
  const nlohmann::json root = nlohmann::json::parse(file);
  std::map<std::string, int> rows;
  for (const nlohmann::json &row : root.at("rows")) {
    const std::string name = row.at("family");
    const ScheduleFamily *family = findFamily(name);
    if (!family)
      continue;
    SCOPED_TRACE(row.dump());
    PipelineProblem problem{row.at("ranks"), row.at("chunks"),
                            row.at("microbatches")};
    const double held = 1.0 / problem.chunks;
    problem.times.assign(problem.stages(), {row.at("F"), row.at("I"),
                                            row.at("W"), held, held / 2});
    problem.hop = row.at("hop");
    problem.mostHeld.assign(problem.ranks, row.at("limit").get<double>());
    std::string why;
    const auto pipeline = generatePipeline(name, problem, why);
    ASSERT_TRUE(pipeline) << why;
    const auto timing = timePipeline(problem, *pipeline);
    ASSERT_TRUE(timing);
    EXPECT_LE(timing->makespan, row.at("makespan").get<double>() * (1 + 1e-9));
    for (const double peak : timing->peakHeld)
      EXPECT_LE(peak, problem.mostHeld[0] * (1 + 1e-9));
    const double bound =
        boundPipeline(problem, pipeline->rankOfStage, family->splitsBackward)
            .best();
    // The rows' bounds let the backward be split.
    if (family->splitsBackward) {
      EXPECT_NEAR(bound, row.at("bound").get<double>(), bound * 1e-6);
    }
    EXPECT_LE(bound, timing->makespan * (1 + 1e-9));
    ++rows[name];
  }
  EXPECT_EQ(rows["zb-auto"], 54);
  EXPECT_EQ(rows["zb-interleaved"], 77);
  EXPECT_EQ(rows["zb-v"], 46);
  EXPECT_EQ(rows["v-half"], 18);
  EXPECT_EQ(rows["v-min"], 18);
}

} // namespace
