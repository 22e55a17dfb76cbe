//===- HelixTests.cpp - attention apart from its layer --------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "ChainMakespan.h"

#include <algorithm>

using namespace takt;

namespace {

HelixProblem helix(int32_t p, int32_t layers, int32_t folds, double attention,
                   double hop = 0) {
  HelixProblem problem;
  problem.ranks = p;
  problem.layers = layers;
  problem.folds = folds;
  problem.attention = attention;
  problem.hop = hop;
  EXPECT_EQ(problem.check(), std::nullopt);
  return problem;
}

TEST(Helix, HasThePublishedMakespans) {
  struct Row {
    HelixProblem problem;
    double total, ideal;
  };
  for (const Row &row : {Row{helix(4, 8, 1, 1), 123, 96},
                         {helix(4, 8, 2, 1), 234, 192},
                         {helix(4, 8, 2, 6), 468, 432},
                         {helix(4, 8, 2, 24), 1332, 1296},
                         {helix(4, 16, 2, 6), 900, 864},
                         {helix(8, 16, 2, 6), 972, 864},
                         {helix(8, 32, 2, 24), 5292, 5184},
                         {helix(4, 8, 2, 6, 1), 474, 432},
                         {helix(4, 8, 1, 6, 1), 271, 216}}) {
    const ChainPlan plan = generateHelix(row.problem);
    EXPECT_EQ(makespan(plan), row.total);
    const auto timing = timeChains(plan.problem, plan.schedule);
    for (double busy : timing->busy)
      EXPECT_LE(busy, row.total);
    double work = 0;
    for (double busy : timing->busy)
      work += busy;
    EXPECT_EQ(work / row.problem.ranks, row.ideal);
  }
}

TEST(Helix, PutsEachAttentionOnTheRankOfTheFormula) {
  for (int32_t p = 2; p <= 8; ++p)
    for (int32_t loops = 1; loops <= 3; ++loops)
      for (int32_t folds = 1; folds <= 3; ++folds) {
        HelixProblem problem = helix(p, p * loops, folds, 3);
        problem.repeats = 1 + (p + loops) % 2;
        const ChainPlan plan = generateHelix(problem);
        makespan(plan);
        size_t count = 0;
        for (int32_t rank = 0; rank < p; ++rank)
          for (const ChainAction &action : plan.schedule.ranks[rank]) {
            const std::string text = toText(plan.problem, action);
            const bool backward = text[0] == 'b';
            const char kind = text[backward];
            const int32_t layer = std::stoi(text.substr(backward + 1));
            const int32_t d = action.microBatch % p;
            EXPECT_EQ(rank, (kind == 'A' ? layer + d + 1 : layer) % p) << text;
            ++count;
          }
        const size_t forward = size_t(2 * p * loops + 1) * p * folds;
        EXPECT_EQ(count, 2 * forward * problem.repeats);
      }
}

TEST(Helix, BubbleDoesNotDependOnAttentionOrDepth) {
  for (int32_t p = 2; p <= 8; ++p)
    for (int32_t folds = 1; folds <= 3; ++folds) {
      double bubble = 3 * 3 * std::max(p - 1, folds * (p - 3) + 2);
      if (p == 3 && folds > 1)
        bubble = 3 * (2 * folds + 3);
      for (int32_t loops : {1, 2, 4})
        for (double attention : {3.0, 6.0, 24.0}) {
          const HelixProblem problem = helix(p, p * loops, folds, attention);
          const double work =
              problem.microBatches() * loops * (3 + attention) * 3;
          EXPECT_EQ(makespan(generateHelix(problem)) - work, bubble)
              << p << " ranks, " << folds << " folds, " << loops << " loops";
        }
    }
}

TEST(Helix, HoldsAboutAsMuchOnEveryRank) {
  const ChainPlan plan = generateHelix(helix(4, 8, 2, 6));
  const auto timing = timeChains(plan.problem, plan.schedule);
  // Two blocks and two attentions of eight micro-batches; rank 0 has the last
  // block besides.
  EXPECT_EQ(timing->peakHeld, (std::vector<double>{40, 32, 32, 32}));
}

TEST(Helix, SendsWeightsWhereTheyAreSmaller) {
  const HelixMessage longer = helixMessage(131072, 1, 4096);
  EXPECT_TRUE(longer.sendsWeights);
  EXPECT_EQ(longer.elements,
            int64_t(131072) * 4096 + int64_t(3) * 4096 * 4096 + 3 * 4096);
  const HelixMessage shorter = helixMessage(1024, 1, 4096);
  EXPECT_FALSE(shorter.sendsWeights);
  EXPECT_EQ(shorter.elements, int64_t(3) * 1024 * 4096);
}

TEST(Helix, NamesWhatItCannotDo) {
  HelixProblem problem;
  problem.ranks = 1;
  EXPECT_EQ(problem.check().value(), "'ranks' is 1, not from 2 to 1024");
  problem.ranks = 4;
  problem.layers = 6;
  EXPECT_EQ(problem.check().value(),
            "'layers' is 6, no multiple of the 4 ranks");
  problem.layers = 8;
  problem.folds = 0;
  EXPECT_EQ(problem.check().value(),
            "there are 0 folds and 1 repeats, not at least 1");
  problem.folds = 1 << 30;
  EXPECT_EQ(problem.check().value(), "8 layers of 4 x 1073741824 x 1 "
                                     "micro-batches are more than 16777216");
  problem.folds = 1;
  problem.hop = -1;
  EXPECT_EQ(problem.check().value(), "'hop' is -1");
}

} // namespace
