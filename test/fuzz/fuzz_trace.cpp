//===- fuzz_trace.cpp - traces of runs -----------------------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// JSON that may be a trace of the plan 'mlp-2-stages.txt' of the corpus. What
// is accepted can be drawn, and comes back when it is written again.
//
//===----------------------------------------------------------------------===//
#include "fuzz.h"
#include "plan_checks.h"

#include "takt-rt/core/error.h"
#include "takt-rt/core/file.h"
#include "takt-rt/trace/timeline.h"
#include "takt-rt/trace/trace.h"

#include <algorithm>
#include <sstream>
#include <tuple>

using namespace takt;

std::vector<std::string> fuzz::dictionary() {
  return {"\"ph\":\"X\"",
          "\"ph\":\"M\"",
          "\"pid\":",
          "\"tid\":",
          "\"ts\":",
          "\"dur\":",
          "\"name\":\"process_name\"",
          "\"measured rank 0\"",
          "predicted rank",
          "PP:0F0",
          "\"traceEvents\":[",
          "\"args\":{",
          "null",
          "{",
          "}",
          "[",
          "]",
          ",",
          "\"",
          "1e300",
          "-1"};
}

static const rt::Plan &planOfTraces() {
  static const rt::Plan plan =
      rt::readPlan(TAKT_FUZZ_CORPUS "/plan-text/mlp-2-stages.txt");
  return plan;
}

int fuzz::fuzzOne(const uint8_t *bytes, size_t size) {
  const rt::Plan &plan = planOfTraces();
  rt::Runs runs;
  try {
    runs.measured = rt::readChromeTrace(asText(bytes, size), "mutant", plan);
  } catch (const rt::Error &error) {
    checkRefusal(error.what(), "mutant");
    return 0;
  }
  std::ostringstream trace, picture, page;
  rt::writeChromeTrace(trace, plan, runs);
  rt::writeTimelineSvg(picture, plan, runs);
  rt::writeTimelineHtml(page, plan, runs);
  auto sorted = [](std::vector<rt::Record> records) {
    auto key = [](const rt::Record &r) {
      return std::tuple(r.rank, r.lane, r.instr, r.begin, r.end);
    };
    std::vector<decltype(key(rt::Record()))> keys;
    for (const rt::Record &record : records)
      keys.push_back(key(record));
    std::sort(keys.begin(), keys.end());
    return keys;
  };
  require(sorted(rt::readChromeTrace(trace.str(), "again", plan)) ==
              sorted(runs.measured),
          "a trace is read back as it is written");
  return 1;
}
