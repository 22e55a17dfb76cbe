//===- Runs.h - runs for tests of traces and pictures -----------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// A small pipeline, its runs, and what is written of them.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "../RuntimeCore/PlanBuilder.h"

#include "takt-rt/core/clock.h"
#include "takt-rt/trace/timeline.h"
#include "takt-rt/trace/trace.h"

#include <nlohmann/json.hpp>

#include <sstream>
#include <string>

namespace takt::rt::test {

using nlohmann::json;

inline PipelineShape smallShape() {
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
inline Runs bothRuns(const Plan &plan) {
  Runs runs;
  runs.predicted = simulate(plan).records;
  runs.measured = runs.predicted;
  for (Record &record : runs.measured) {
    record.begin *= 2;
    record.end *= 2;
  }
  return runs;
}

inline std::string svgOf(const Plan &plan, const Runs &runs) {
  std::ostringstream out;
  writeTimelineSvg(out, plan, runs);
  return out.str();
}

inline std::string pageOf(const Plan &plan, const Runs &runs) {
  std::ostringstream out;
  writeTimelineHtml(out, plan, runs);
  return out.str();
}

inline std::string textOf(const Plan &plan, const Runs &runs) {
  std::ostringstream out;
  writeChromeTrace(out, plan, runs);
  return out.str();
}

inline json traceOf(const Plan &plan, const Runs &runs) {
  return json::parse(textOf(plan, runs));
}

/// The data that a page's scripts read.
inline json dataOf(const std::string &page) {
  size_t begin = page.find('>', page.find("<script id=\"data\"")) + 1;
  return json::parse(page.substr(begin, page.find("</script>", begin) - begin));
}

inline size_t countOf(const std::string &text, const std::string &what) {
  size_t count = 0;
  for (size_t at = text.find(what); at != std::string::npos;
       at = text.find(what, at + 1))
    ++count;
  return count;
}

} // namespace takt::rt::test
