//===- GuideTests.cpp - the worked example of the guide -------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// The generator in docs/guides/adding-a-schedule.md, compiled from the page, is
// short, has valid lists, and those of the rule on the same page.
//
//===----------------------------------------------------------------------===//
#include "takt/Schedule/Language.h"
#include "takt/Schedule/Pipeline.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iterator>

using namespace takt;

namespace takt {
Schedule generatePairs(const PipelineProblem &problem); // of the page
} // namespace takt

namespace {

/// The first block of the page in a language.
std::string block(const std::string &language) {
  std::ifstream page(TAKT_SOURCE_DIR "/docs/guides/adding-a-schedule.md");
  const std::string text{std::istreambuf_iterator<char>(page), {}};
  const std::string open = "```" + language + "\n";
  const size_t begin = text.find(open) + open.size();
  return text.substr(begin, text.find("```", begin) - begin);
}

TEST(Guide, ExampleIsShort) {
  const std::string code = block("cpp");
  EXPECT_LT(std::count(code.begin(), code.end(), '\n'), 60);
  EXPECT_NE(code.find("generatePairs"), std::string::npos);
}

TEST(Guide, GeneratorHasTheListsOfTheRule) {
  Diagnostics diags;
  const auto rule = parseScheduleRule("pairs.yaml", block("yaml"), diags);
  ASSERT_TRUE(rule.has_value());
  for (int32_t p = 1; p <= 8; ++p)
    for (int32_t m = 1; m <= 24; ++m) {
      SCOPED_TRACE(testing::Message() << p << " ranks, " << m);
      PipelineProblem problem;
      problem.ranks = p;
      problem.microBatches = m;
      const Schedule own = generatePairs(problem);
      EXPECT_EQ(verify({p, m}, own).value_or(""), "");
      const auto expanded = expandSchedule(*rule, problem, diags);
      ASSERT_TRUE(expanded.has_value());
      EXPECT_EQ(own.roles, expanded->schedule.roles);
    }
}

} // namespace
