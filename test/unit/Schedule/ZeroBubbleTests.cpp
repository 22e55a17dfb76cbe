//===- ZeroBubbleTests.cpp - the schedules that split the backward --------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Published bubble rates, order strings, closed forms and peaks of the
// schedules of one stage a rank. Times and peaks are those of the replay here,
// not of the library.
//
//===----------------------------------------------------------------------===//

#include "PipelineReplay.h"

#include <fstream>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

using namespace takt;
using namespace takt::test;

namespace {

nlohmann::json read(const std::string &name) {
  std::ifstream file(TAKT_TEST_DATA "/" + name);
  return nlohmann::json::parse(file);
}

PipelineProblem equalStages(int32_t p, int32_t m, StageTimes t,
                            double hop = 0) {
  PipelineProblem problem{p, 1, m};
  problem.times.assign(p, t);
  problem.hop = hop;
  return problem;
}

Replay generateAndReplay(const char *family, const PipelineProblem &problem,
                         Pipeline *made = nullptr) {
  std::string why;
  const auto pipeline = generatePipeline(family, problem, why);
  if (!pipeline)
    throw std::runtime_error(why);
  if (made)
    *made = *pipeline;
  const Replay result = *replay(problem, *pipeline);
  for (size_t r = 0; r < problem.mostHeld.size(); ++r)
    EXPECT_LE(result.peakHeld[r], problem.mostHeld[r] * (1 + 1e-9));
  return result;
}

std::string letters(const std::vector<Action> &list) {
  std::string text;
  for (const Action &a : list)
    text += a.kind == ActionKind::I ? 'B' : "FIWB"[int(a.kind)];
  return text;
}

class PublishedRates : public testing::TestWithParam<nlohmann::json> {};

TEST_P(PublishedRates, AreMet) {
  const nlohmann::json &row = GetParam();
  // Whole microseconds, so that sums are exact.
  auto micros = [&](const char *name) {
    return std::round(row.at(name).get<double>() * 1000);
  };
  const double h = row.at("hidden"), heads = row.at("heads");
  const int32_t p = row.at("ranks"), m = row.at("microbatches");
  const StageTimes t{micros("F_ms"), micros("I_ms"), micros("W_ms"),
                     34 * h + 5 * heads * 1024, 32 * h};
  PipelineProblem problem = equalStages(p, m, t, micros("hop_ms"));
  auto rate = [&](const char *family, std::optional<double> microBatchesHeld) {
    problem.mostHeld.clear();
    if (microBatchesHeld)
      problem.mostHeld.assign(p, *microBatchesHeld * t.held);
    const double span = generateAndReplay(family, problem).longestSpan;
    return (span - m * (t.forward + t.inputGrad + t.weightGrad)) / span;
  };
  const nlohmann::json &published = row.at("rate");
  EXPECT_NEAR(rate("1f1b", p), published.at("1f1b"), 1e-4);
  EXPECT_NEAR(rate("zb-h1", std::nullopt), published.at("zb-h1"), 1e-4);
  EXPECT_NEAR(rate("zb-h2", 2 * p), published.at("zb-h2"), 1e-4);
  EXPECT_NEAR(rate("zb-auto", p), published.at("zb-1p"), 1e-4);
  EXPECT_NEAR(rate("zb-auto", 2 * p), published.at("zb-2p"), 1e-4);
}

std::vector<nlohmann::json> publishedRows() {
  return read("zero-bubble/published-profiles.json").at("rows");
}

INSTANTIATE_TEST_SUITE_P(Rows, PublishedRates,
                         testing::ValuesIn(publishedRows()),
                         [](const auto &info) {
                           return "p" + info.param.at("ranks").dump() + "_m" +
                                  info.param.at("microbatches").dump() + "_h" +
                                  info.param.at("hidden").dump();
                         });

TEST(ZeroBubble, HasAllPublishedRows) {
  EXPECT_EQ(publishedRows().size(), 12u);
}

TEST(ZeroBubble, UnitTimes) {
  const struct {
    int32_t p, m;
    double limit, span;
  } rows[] = {
      {4, 8, 4, 27},   {4, 8, 6, 25},   {4, 8, 8, 24},   {4, 12, 4, 39},
      {4, 12, 8, 36},  {8, 24, 8, 79},  {8, 24, 12, 75}, {8, 24, 16, 72},
      {8, 32, 8, 103}, {8, 32, 12, 99}, {8, 32, 16, 96}, {2, 4, 2, 13},
      {3, 6, 3, 20},   {3, 6, 5, 18},   {4, 4, 4, 15},   {4, 6, 4, 21}};
  for (const auto &row : rows) {
    PipelineProblem problem = equalStages(row.p, row.m, {});
    problem.mostHeld.assign(row.p, row.limit);
    EXPECT_EQ(generateAndReplay("zb-auto", problem).longestSpan, row.span)
        << row.p << " ranks, " << row.m << " micro-batches, " << row.limit;
  }
  PipelineProblem uneven = equalStages(4, 8, {10, 11, 9, 1, 0.5}, 1);
  uneven.mostHeld.assign(4, 4);
  EXPECT_EQ(generateAndReplay("zb-auto", uneven).longestSpan, 288);
  uneven.mostHeld.assign(4, 7);
  EXPECT_EQ(generateAndReplay("zb-auto", uneven).longestSpan, 254);
}

TEST(ZeroBubble, OrderStrings) {
  Pipeline made;
  PipelineProblem problem = equalStages(4, 8, {});
  generateAndReplay("zb-h1", problem, &made);
  EXPECT_EQ(letters(made.schedule.roles[0]), "FFFFBWFBWFBWFBWFBWBWBWBW");
  EXPECT_EQ(letters(made.schedule.roles[3]), "FBFBFBFBWFBWFBWFBWFBWWWW");
  problem.mostHeld.assign(4, 8);
  generateAndReplay("zb-auto", problem, &made);
  EXPECT_EQ(letters(made.schedule.roles[0]), "FFFFFFFBFWBWBWBWBWBWBWBW");
  EXPECT_EQ(letters(made.schedule.roles[3]), "FBFBFBFBFBFBFBFBWWWWWWWW");
}

/// Per rank, with m large enough: (p - r) M_B + r M_W and
/// (2 (p - r) - 1) M_B + 2r M_W, where M_W is what stays until W.
TEST(ZeroBubble, PeaksOfTheHandMadeOrders) {
  for (int32_t p = 1; p <= 8; ++p)
    for (const double kept : {0.0, 0.25, 1.0}) {
      const PipelineProblem problem = equalStages(p, 3 * p, {1, 1, 1, 1, kept});
      const Replay h1 = generateAndReplay("zb-h1", problem);
      const Replay h2 = generateAndReplay("zb-h2", problem);
      for (int32_t r = 0; r < p; ++r) {
        // At the start of F one more is held in full than at the end of I.
        EXPECT_EQ(h1.peakHeld[r], p - r + r * kept);
        EXPECT_EQ(h2.peakHeld[r], 2 * (p - r) - 1 + 2 * r * kept);
      }
    }
}

/// Sets of activations held from F to W, at their most.
int32_t peakSets(const std::vector<Action> &list) {
  int32_t held = 0, peak = 0;
  for (const Action &a : list) {
    held += a.kind == ActionKind::F ? 1 : a.kind == ActionKind::I ? 0 : -1;
    peak = std::max(peak, held);
  }
  return peak;
}

TEST(ZeroBubble, NoWorseThanExpected) {
  const nlohmann::json cases = read("schedules/expected-uniform.json")["cases"];
  ASSERT_GE(cases.size(), 27u);
  for (const nlohmann::json &row : cases)
    for (const auto &[name, key] :
         {std::pair("zb-h1", "zb_h1"), std::pair("zb-h2", "zb_h2")}) {
      const PipelineProblem problem =
          equalStages(row["stages"], row["microbatches"],
                      {row["F"], row["I"], row["W"], 1, 1}, row["comm"]);
      Pipeline made;
      const Replay times = generateAndReplay(name, problem, &made);
      const nlohmann::json &expected = row[key];
      EXPECT_LE(times.makespan, expected["makespan"].get<double>() + 1e-9)
          << name << row;
      EXPECT_LE(times.longestSpan,
                expected["longest_rank_span"].get<double>() + 1e-9)
          << name << row;
      for (int32_t r = 0; r < problem.ranks; ++r)
        EXPECT_LE(peakSets(made.schedule.roles[r]),
                  expected["peak_in_flight"][r].get<int32_t>())
            << name << row;
    }
}

} // namespace
