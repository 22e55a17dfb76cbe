//===- FamilyPropertyTests.cpp - every family, every small problem --------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "PipelineReplay.h"

#include <gtest/gtest.h>

#include <set>

using namespace takt;
using namespace takt::test;

namespace {

void checkPipeline(const ScheduleFamily &family, const PipelineProblem &problem,
                   const Pipeline &pipeline) {
  EXPECT_EQ(pipeline.schedule.name, family.name);
  EXPECT_EQ(pipeline.rankOfStage,
            placeStages(family.placement, problem.ranks, problem.chunks));
  EXPECT_EQ(verify(shapeOf(problem, pipeline), pipeline.schedule),
            std::nullopt);
  const auto timing = timePipeline(problem, pipeline);
  ASSERT_TRUE(timing);
  for (size_t r = 0; r < problem.mostHeld.size(); ++r)
    EXPECT_LE(timing->peakHeld[r], problem.mostHeld[r] * (1 + 1e-9));
  const double bound =
      boundPipeline(problem, pipeline.rankOfStage, family.splitsBackward)
          .best();
  EXPECT_LE(bound, timing->makespan * (1 + 1e-9));
}

class EveryFamily : public testing::TestWithParam<std::string> {
protected:
  const ScheduleFamily &family = *findFamily(GetParam());

  bool adapts() const {
    const std::set<std::string> names = {"zb-auto", "zb-v", "v-half", "v-min",
                                         "zb-interleaved"};
    return names.count(GetParam()) > 0;
  }

  /// Gives the problem the family's chains; false if it has none of this size.
  bool makeFit(PipelineProblem &problem) const {
    problem.chains = family.chains;
    return !family.refuse || !family.refuse(problem);
  }

  /// Numbers of stages a rank that are worth a try.
  std::vector<int32_t> chunkCounts() const {
    std::vector<int32_t> counts;
    for (int32_t v = family.leastChunks; v <= std::min(family.mostChunks, 4);
         ++v)
      counts.push_back(v);
    return counts;
  }
};

TEST_P(EveryFamily, RunsWithoutLimits) {
  std::mt19937 random(17);
  for (const int32_t chunks : chunkCounts())
    for (int32_t p = 1; p <= 8; ++p)
      for (int32_t m = 1; m <= 24; ++m)
        for (const bool equal : {true, false}) {
          PipelineProblem problem = equal
                                        ? PipelineProblem{p, chunks, m}
                                        : randomPipeline(random, p, chunks, m);
          if (!makeFit(problem))
            continue;
          SCOPED_TRACE(testing::Message()
                       << p << " ranks, " << chunks << " chunks, " << m
                       << " of " << (equal ? "equal" : "unequal"));
          std::string why;
          const auto pipeline = generatePipeline(GetParam(), problem, why);
          ASSERT_TRUE(pipeline) << why;
          checkPipeline(family, problem, *pipeline);
        }
}

/// Under limits it fits, or says why not; a limit below a single micro-batch
/// is always refused.
TEST_P(EveryFamily, KeepsLimits) {
  std::mt19937 random(23);
  for (const int32_t chunks : chunkCounts())
    for (int round = 0; round < 150; ++round) {
      PipelineProblem problem =
          randomPipeline(random, 1 + random() % 8, chunks, 1 + random() % 24);
      if (!makeFit(problem))
        continue;
      const std::vector<int32_t> ranks =
          placeStages(family.placement, problem.ranks, chunks);
      std::vector<double> least(problem.ranks, 0);
      for (int32_t s = 0; s < problem.stages(); ++s)
        least[ranks[s]] += problem.at(s).held;
      problem.mostHeld = least;
      for (double &most : problem.mostHeld)
        most += random() % (4 * problem.ranks);
      std::string why;
      const auto pipeline = generatePipeline(GetParam(), problem, why);
      if (pipeline)
        checkPipeline(family, problem, *pipeline);
      else
        EXPECT_NE(why.find("'" + GetParam() + "'"), std::string::npos) << why;
      // Lists by formula cannot adapt; the others can.
      EXPECT_TRUE(pipeline || !adapts()) << why;
      problem.mostHeld[random() % problem.ranks] = 0.5;
      EXPECT_FALSE(generatePipeline(GetParam(), problem, why));
      EXPECT_NE(why.find("one micro-batch needs"), std::string::npos) << why;
    }
}

std::vector<std::string> names() {
  std::vector<std::string> result;
  for (const ScheduleFamily &family : scheduleFamilies())
    result.emplace_back(family.name);
  return result;
}

INSTANTIATE_TEST_SUITE_P(Families, EveryFamily, testing::ValuesIn(names()),
                         [](const auto &info) {
                           std::string name = info.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

} // namespace
