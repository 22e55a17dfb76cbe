//===- ZeroBubbleChunkTests.cpp - several stages a rank, split backwards --===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "PipelineReplay.h"

#include <fstream>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

using namespace takt;
using namespace takt::test;

namespace {

/// A rank's stages together take F = I = W = 1 and hold 1.
PipelineProblem equalRanks(int32_t p, int32_t chunks, int32_t m) {
  PipelineProblem problem{p, chunks, m};
  const double part = 1.0 / chunks;
  problem.times.assign(problem.stages(), {part, part, part, part, part / 2});
  return problem;
}

Replay generateAndReplay(const char *family, const PipelineProblem &problem) {
  std::string why;
  const auto pipeline = generatePipeline(family, problem, why);
  if (!pipeline)
    throw std::runtime_error(why);
  return *replay(problem, *pipeline);
}

TEST(ZeroBubbleV, HasNoBubble) {
  for (int32_t p = 1; p <= 8; ++p)
    for (int32_t m = 2 * p - 1; m <= 3 * p; ++m) {
      const PipelineProblem problem = equalRanks(p, 2, m);
      const Replay times = generateAndReplay("zb-v", problem);
      EXPECT_EQ(times.longestSpan, 3 * m) << p << " ranks, " << m;
      EXPECT_EQ(times.makespan, 3 * m + (p - 1) / 2.0);
      for (const double peak : times.peakHeld)
        EXPECT_EQ(peak, p);
    }
}

/// Spans of the published greedy reordering, in whole ranks' times.
TEST(VShapes, PublishedSpans) {
  const struct {
    const char *family;
    int32_t p, m;
    double span, peak;
  } rows[] = {{"v-half", 4, 8, 26.5, 3},
              {"v-half", 8, 24, 80.5, 5},
              {"v-min", 4, 8, 29.5, 2},
              {"v-min", 8, 24, 85.5, 4}};
  for (const auto &row : rows) {
    const Replay times =
        generateAndReplay(row.family, equalRanks(row.p, 2, row.m));
    EXPECT_LE(times.longestSpan, row.span) << row.family << " " << row.p;
    for (const double peak : times.peakHeld)
      EXPECT_LE(peak, row.peak);
  }
}

/// Without a stated limit a family keeps to its own: a half and a third of
/// 1F1B's p micro-batches, and a rest.
TEST(VShapes, PeaksWithoutLimits) {
  for (int32_t p = 1; p <= 12; ++p)
    for (const int32_t m : {1, p, 3 * p}) {
      const PipelineProblem problem = equalRanks(p, 2, m);
      for (const double peak : generateAndReplay("v-half", problem).peakHeld)
        EXPECT_LE(peak, p / 2 + 1);
      for (const double peak : generateAndReplay("v-min", problem).peakHeld)
        EXPECT_LE(peak, (p + 4) / 3);
    }
}

/// Table 8: 28.3B on 32 ranks, within the memory of 1F1B.
TEST(ZeroBubbleV, PublishedRates) {
  std::ifstream file(TAKT_TEST_DATA "/zero-bubble/published-profiles.json");
  const nlohmann::json root = nlohmann::json::parse(file);
  const std::map<int32_t, double> published = {
      {96, 0.0593}, {128, 0.0451}, {256, 0.0236}};
  int compared = 0;
  for (const nlohmann::json &row : root.at("rows")) {
    if (row.at("ranks") != 32)
      continue;
    const int32_t m = row.at("microbatches");
    PipelineProblem problem{32, 2, m};
    auto half = [&](const char *name) {
      return row.at(name).get<double>() / 2;
    };
    const StageTimes t{half("F_ms"), half("I_ms"), half("W_ms"), 0.5, 0.25};
    problem.times.assign(64, t);
    problem.hop = row.at("hop_ms");
    const Replay times = generateAndReplay("zb-v", problem);
    const double work = 2 * m * (t.forward + t.inputGrad + t.weightGrad);
    EXPECT_LE((times.longestSpan - work) / times.longestSpan,
              published.at(m) + 1e-4);
    for (const double peak : times.peakHeld)
      EXPECT_LE(peak, 32);
    ++compared;
  }
  EXPECT_EQ(compared, 3);
}

TEST(ZeroBubbleInterleaved, ClosedForms) {
  for (int32_t p = 1; p <= 8; ++p)
    for (const int32_t v : {1, 2, 4})
      for (const int32_t groups : {1, 2, 3}) {
        const int32_t m = groups * p;
        const Replay times =
            generateAndReplay("zb-interleaved", equalRanks(p, v, m));
        EXPECT_DOUBLE_EQ(times.makespan, 3 * m + double(p - 1) / v);
        for (int32_t r = 0; r < p; ++r)
          EXPECT_LE(times.peakHeld[r], p);
      }
}

} // namespace
