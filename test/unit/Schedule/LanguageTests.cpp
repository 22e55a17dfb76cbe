//===- LanguageTests.cpp - schedules as rules -----------------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// The rules in examples/schedules expand to what the generators make, and to
// published orders; text and rule are one to one; faults are at their line.
//
//===----------------------------------------------------------------------===//

#include "takt/Schedule/File.h"
#include "takt/Schedule/Language.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <filesystem>
#include <fstream>
#include <random>
#include <set>
#include <sstream>

using namespace takt;

namespace {

std::string readFile(const std::filesystem::path &path) {
  std::ifstream in(path);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

std::vector<std::filesystem::path> exampleFiles() {
  std::vector<std::filesystem::path> files;
  for (const auto &entry : std::filesystem::directory_iterator(
           std::string(TAKT_SOURCE_DIR) + "/examples/schedules"))
    files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

ScheduleRule ruleOf(const std::string &text) {
  Diagnostics diags;
  const auto rule = parseScheduleRule("rule.yaml", text, diags);
  EXPECT_TRUE(rule) << diags.text();
  return rule.value_or(ScheduleRule{});
}

ScheduleRule example(const std::string &name) {
  return ruleOf(readFile(std::string(TAKT_SOURCE_DIR) + "/examples/schedules/" +
                         name + ".yaml"));
}

Pipeline expand(const ScheduleRule &rule, const PipelineProblem &problem) {
  Diagnostics diags;
  const auto pipeline = expandSchedule(rule, problem, diags);
  EXPECT_TRUE(pipeline) << "p " << problem.ranks << " v " << problem.chunks
                        << " m " << problem.microBatches << "\n"
                        << diags.text();
  return pipeline.value_or(Pipeline{});
}

double spanOf(const char *file, const PipelineProblem &problem) {
  const auto timing = timePipeline(problem, expand(example(file), problem));
  EXPECT_TRUE(timing);
  return timing ? timing->longestSpan : -1;
}

void expectEqual(const char *file, const char *family,
                 const PipelineProblem &problem) {
  const Pipeline said = expand(example(file), problem);
  std::string why;
  const auto made = generatePipeline(family, problem, why);
  ASSERT_TRUE(made) << why;
  EXPECT_EQ(said.rankOfStage, made->rankOfStage);
  EXPECT_EQ(said.schedule.roles, made->schedule.roles)
      << file << " p " << problem.ranks << " v " << problem.chunks << " m "
      << problem.microBatches;
}

TEST(ScheduleRules, ExpandToTheFamilies) {
  for (int32_t p = 1; p <= 8; ++p)
    for (int32_t m = 1; m <= 24; ++m) {
      expectEqual("gpipe", "gpipe", {p, 1, m});
      expectEqual("1f1b", "1f1b", {p, 1, m});
      expectEqual("1f1b", "dapple-a", {p, 1, m});
      expectEqual("1f1b", "pipedream-2bw", {p, 1, m});
      expectEqual("1f1b-by-preference", "1f1b", {p, 1, m});
      expectEqual("pipedream", "pipedream", {p, 1, m});
      expectEqual("dapple-b", "dapple-b", {p, 1, m});
      for (int32_t v = 1; v <= 4; ++v) {
        expectEqual("breadth-first", "breadth-first", {p, v, m});
        if (m % p == 0 && v > 1)
          expectEqual("interleaved-1f1b", "interleaved-1f1b", {p, v, m});
      }
      // A group's backwards take as long as a forward in the published order.
      PipelineProblem groups{p, 1, m};
      const double each = 1.0 / std::max(1, p - 1);
      groups.times.assign(p, {1, each, 0});
      if (p == 2 || p == 3 || p == 5) // shares that add up exactly
        expectEqual("nf1b", "nf1b", groups);
      if (m >= 2 * p)
        expectEqual("dualpipev", "dualpipev", {p, 2, m});
      PipelineProblem both{p, 2, m};
      both.chains = 2;
      if (p % 2 == 0 && m >= p)
        expectEqual("dualpipe", "dualpipe", both);
    }
}

TEST(ScheduleRules, ExpandOverReplicas) {
  std::mt19937 random(4);
  for (int round = 0; round < 300; ++round) {
    PipelineProblem problem{0, 1, int32_t(1 + random() % 24)};
    problem.ranks = 0;
    for (int32_t s = 1 + random() % 5; s > 0; --s) {
      problem.replicas.push_back(1 + random() % 4);
      problem.ranks += problem.replicas.back();
    }
    expectEqual("pipedream", "pipedream", problem);
  }
}

/// Kinds alone, an input gradient as B.
std::string kindsOf(const std::vector<Action> &list) {
  std::string text;
  for (const Action &a : list)
    text += "FBWB"[static_cast<size_t>(a.kind)];
  return text;
}

TEST(ScheduleRules, ExpandToPublishedOrders) {
  for (const auto &list : expand(example("gpipe"), {4, 1, 4}).schedule.roles)
    EXPECT_EQ(kindsOf(list), "FFFFBBBB");
  const struct {
    const char *file, *first, *last;
    double span;
  } rows[] = {
      {"1f1b", "FFFFBFBFBFBFBBBB", "FBFBFBFBFBFBFBFB", 33},
      {"zb-h1", "FFFFBWFBWFBWFBWFBWBWBWBW", "FBFBFBFBWFBWFBWFBWFBWWWW", 27},
      {"zb-2p", "FFFFFFFBFWBWBWBWBWBWBWBW", "FBFBFBFBFBFBFBFBWWWWWWWW", 24}};
  for (const auto &row : rows) {
    const PipelineProblem problem{4, 1, 8};
    const Pipeline pipeline = expand(example(row.file), problem);
    EXPECT_EQ(kindsOf(pipeline.schedule.roles[0]), row.first);
    EXPECT_EQ(kindsOf(pipeline.schedule.roles[3]), row.last);
    EXPECT_EQ(spanOf(row.file, problem), row.span);
  }
}

// A rule holds for any size: the spans of the zero-bubble paper's closed forms.
TEST(ScheduleRules, ExpandAgainForOtherSizes) {
  for (int32_t p = 2; p <= 8; ++p)
    for (int32_t m = 2 * p; m <= 24; ++m) {
      const PipelineProblem problem{p, 1, m};
      EXPECT_EQ(spanOf("zb-h1", problem), 3 * m + p - 1);
      EXPECT_EQ(spanOf("zb-2p", problem), 3 * m);
    }
}

TEST(ScheduleRules, TextAndRuleAreOneToOne) {
  for (const auto &path : exampleFiles()) {
    const std::string text = readFile(path);
    EXPECT_LE(std::count(text.begin(), text.end(), '\n'), 10) << path;
    const ScheduleRule rule = ruleOf(text);
    const std::string written = writeScheduleRule(rule);
    EXPECT_LE(std::count(written.begin(), written.end(), '\n'), 10) << written;
    EXPECT_TRUE(ruleOf(written) == rule) << written;
    EXPECT_EQ(writeScheduleRule(ruleOf(written)), written);
  }
  EXPECT_EQ(exampleFiles().size(), 12);
}

// Lists of a rule, written as a schedule file and read again.
TEST(ScheduleRules, ListsSurviveAScheduleFile) {
  for (const char *name : {"1f1b", "zb-h1", "interleaved-1f1b", "dualpipev"}) {
    const ScheduleRule rule = example(name);
    const PipelineProblem problem{
        4, rule.placement == Placement::Linear ? 1 : 2, 8};
    const Pipeline pipeline = expand(rule, problem);
    const std::string csv =
        writeScheduleCsv(toFile(shapeOf(problem, pipeline), pipeline.schedule));
    Diagnostics diags;
    const auto file = parseScheduleCsv("lists.csv", csv, diags);
    ASSERT_TRUE(file) << diags.text();
    EXPECT_EQ(computeSchedule(*file).roles, pipeline.schedule.roles);
  }
}

/// The first message for a text or, if it can be read, for a problem.
std::string faultOf(const std::string &body,
                    const PipelineProblem &problem = {4, 1, 8}) {
  Diagnostics diags;
  const auto rule = parseScheduleRule(
      "rule.yaml", "schema_version: 1\nschedule: mine\n" + body, diags);
  if (rule && expandSchedule(*rule, problem, diags))
    return "none";
  const Diagnostic &first = diags.all().front();
  return std::to_string(first.loc.line) + ":" +
         std::to_string(first.loc.column) + ": " + first.message;
}

TEST(ScheduleRules, FaultsOfTheText) {
  EXPECT_EQ(faultOf("phases: [F: m, B: m]\n"), "none");
  EXPECT_EQ(faultOf("phases: [F: m, X: m]\n"),
            "3:16: 'X' is no action: F, B, I or W, or the first three with "
            "the number of a stage of the rank");
  EXPECT_EQ(faultOf("phases: [F: m, W0: m]\n").substr(0, 6), "3:16: ");
  EXPECT_EQ(faultOf("phases: [F: m, B01: m]\n").substr(0, 6), "3:16: ");
  EXPECT_EQ(faultOf("phases:\n  - F: m\n  - B: m -\n"),
            "5:8: 'B': expected a number or a name at the end");
  EXPECT_EQ(faultOf("phases: [F]\n"),
            "3:10: a phase is a row of actions and how often, such as "
            "'F B: p - r'");
  EXPECT_EQ(faultOf("phases: []\n").substr(0, 5), "3:9: ");
  EXPECT_EQ(faultOf("hold: 2\n"),
            "1:1: a schedule needs 'phases' or 'prefer', and not both");
  EXPECT_EQ(faultOf("phases: [F: m]\nprefer: B F\n"),
            "4:1: a schedule needs 'phases' or 'prefer', and not both");
  EXPECT_EQ(faultOf("phases: [F: m]\ntogether: 2\n"),
            "4:1: 'together' belongs to 'prefer'");
  EXPECT_EQ(faultOf("prefers: B F\nprefer: B F\n").substr(0, 34),
            "3:1: unknown key 'prefers' in the ");
  EXPECT_EQ(faultOf("let: {p: 2}\nprefer: B F\n"),
            "3:7: 'p' in 'let' has a meaning already");
  EXPECT_EQ(faultOf("let: {K: 2}\nprefer: B F\n"),
            "3:7: 'K' in 'let' must be at most 16 small letters");
  EXPECT_NE(faultOf("placement: ring\nprefer: B F\n").find("3:12: "),
            std::string::npos);
  EXPECT_EQ(faultOf("prefer: ''\n").substr(0, 5), "3:9: ");
}

// The reader's list of keys and the schema's are the same.
TEST(ScheduleRules, KeysAreThoseOfTheSchema) {
  const auto schema = nlohmann::json::parse(
      readFile(std::string(TAKT_SOURCE_DIR) + "/schemas/schedule.schema.json"));
  std::set<std::string> keys;
  for (const auto &property : schema["properties"].items())
    keys.insert(property.key());
  const std::string fault = faultOf("zzzzzzzz: 1\nprefer: B F\n");
  const std::string before = "known keys: ";
  std::istringstream words(fault.substr(fault.find(before) + before.size()));
  std::set<std::string> known;
  for (std::string word; words >> word;)
    known.insert(word.substr(0, word.find(',')));
  EXPECT_EQ(known, keys);
}

TEST(ScheduleRules, Names) {
  for (const char *name : {"One", "null", "-a", "a b", "a_b"}) {
    Diagnostics diags;
    EXPECT_FALSE(parseScheduleRule(
        "r", std::string("schema_version: 1\nprefer: B F\nschedule: ") + name,
        diags));
    EXPECT_EQ(diags.all().front().loc.line, 3) << name;
  }
}

TEST(ScheduleRules, FaultsOfTheExpansion) {
  EXPECT_EQ(faultOf("phases: [F: m, B: m - 1]\n"),
            "3:1: the phases end on rank 0 with actions left, '0B7' first");
  EXPECT_EQ(faultOf("phases: [F: m, I: rest]\n"),
            "3:1: the phases end on rank 0 with actions left, '0W0' first");
  EXPECT_EQ(faultOf("phases: [F: q, B: m]\n"), "3:13: there is no 'q'");
  EXPECT_EQ(faultOf("phases: [F: m / r, B: m]\n"),
            "3:13: 'm / r' divides by zero");
  EXPECT_EQ(faultOf("hold: p - r - 1\nphases: [F: p - r - 1, F B: rest, "
                    "B: rest]\n"),
            "3:7: rank 0 holds 4, at most 3 are allowed");
  EXPECT_EQ(faultOf("hold: 0\nprefer: B F\n"),
            "4:1: rank 0 comes to a halt after 0 actions: nothing that it "
            "prefers can start and holds 0 of at most 0");
  EXPECT_EQ(faultOf("prefer: F\n"),
            "3:1: rank 0 comes to a halt after 8 actions: nothing that it "
            "prefers can start");
  // Each rank waits for the next one's backward before its second forward.
  EXPECT_NE(faultOf("phases: [F: 1 + r, B F: rest, B: rest]\n")
                .find("the lists wait for each other in a circle"),
            std::string::npos);
  EXPECT_EQ(faultOf("phases: [F: m, B: m]\n", {4, 2, 8}),
            "3:1: 'mine' places one stage on a rank, not 2");
  EXPECT_EQ(faultOf("chunks: 2\nplacement: v\nphases: [F: m, B: m]\n"),
            "5:1: 'mine' is made for 2 stages a rank, not 1");
  EXPECT_EQ(faultOf("phases: [F1: m, B: m]\n"),
            "3:1: 'F1': a rank has only 1 stage");
  EXPECT_EQ(faultOf("placement: interleaved\ngroups: m - 8\n"
                    "phases: [F: rest, B: rest]\n",
                    {4, 2, 8}),
            "4:9: groups of 0 micro-batches");
  EXPECT_EQ(faultOf("prefer: B F\ntogether: 0\n"),
            "4:11: backwards of 0 micro-batches as one");
  EXPECT_EQ(faultOf("phases: [F: m, B: m]\n", {0, 1, 1}),
            "3:1: ranks must be at least 1, not 0");
  PipelineProblem tight{4, 1, 8};
  tight.mostHeld = {4, 4, 4, 4};
  EXPECT_EQ(faultOf("phases: [F: m, B: m]\n", tight),
            "3:1: 'mine' holds 8 on rank 0, which may hold 4");
}

// Whatever the bytes, a rule is read or refused, and what is read can be
// written, read again and expanded or refused.
TEST(ScheduleRules, DamagedTexts) {
  std::mt19937 random(6);
  int read = 0;
  for (const auto &path : exampleFiles()) {
    const std::string text = readFile(path);
    for (int round = 0; round < 1500; ++round) {
      std::string damaged = text;
      for (int edits = 1 + random() % 3; edits > 0; --edits) {
        const size_t at = random() % damaged.size();
        if (random() % 3 == 0)
          damaged.erase(at, 1);
        else
          damaged[at] = " FBIW0129prm+-*/%(),:[]{}\n"[random() % 25];
      }
      Diagnostics diags;
      const auto rule = parseScheduleRule("rule.yaml", damaged, diags);
      EXPECT_EQ(rule.has_value(), !diags.hasErrors());
      if (!rule)
        continue;
      ++read;
      EXPECT_TRUE(ruleOf(writeScheduleRule(*rule)) == *rule)
          << damaged << "\n"
          << writeScheduleRule(*rule);
      PipelineProblem problem{4, rule->placement == Placement::Linear ? 1 : 2,
                              6};
      problem.chains = rule->chains;
      const auto pipeline = expandSchedule(*rule, problem, diags);
      EXPECT_EQ(pipeline.has_value(), !diags.hasErrors());
      if (pipeline) {
        EXPECT_EQ(verifyPipeline(problem, *pipeline), std::nullopt);
      }
    }
  }
  EXPECT_GT(read, 500);
}

} // namespace
