//===- outputs.cpp - files a run leaves -----------------------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Traces and timelines are written through a temporary file, as all else.
//
//===----------------------------------------------------------------------===//

#include "outputs.h"

#include "takt-rt/core/error.h"
#include "takt-rt/core/file.h"
#include "takt-rt/trace/timeline.h"
#include "takt-rt/trace/trace.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <sstream>

namespace takt::run {

static void checkOutput(const std::string &path) {
  if (path.empty() || path == "-")
    return;
  std::error_code error;
  std::filesystem::path folder = std::filesystem::path(path).parent_path();
  if (folder.empty())
    folder = ".";
  if (std::filesystem::is_directory(path, error))
    throw rt::Error(fmt::format("cannot write '{}': it is a folder", path));
  if (!std::filesystem::is_directory(folder, error))
    throw rt::Error(fmt::format("cannot write '{}': there is no folder '{}'",
                                path, folder.string()));
  if (access(folder.c_str(), W_OK) != 0)
    throw rt::Error(fmt::format("cannot write '{}': folder '{}' is read-only",
                                path, folder.string()));
}

void checkOutputs(const RunOptions &options) {
  for (const std::string *path :
       {&options.saveWeights, &options.dumpGradients, &options.profile,
        &options.trace, &options.timeline, &options.logLosses})
    checkOutput(*path);
}

LossLog::LossLog(const std::string &path)
    : isOn(!path.empty()), toStandardOutput(path == "-") {
  if (!isOn || toStandardOutput)
    return;
  file.open(path, std::ios::trunc);
  if (!file)
    throw rt::Error(fmt::format("cannot write '{}'", path));
}

void LossLog::add(double loss) {
  if (!isOn)
    return;
  std::ostream &out = toStandardOutput ? std::cout : file;
  out << fmt::format("{:.9g} {:a}\n", loss, loss) << std::flush;
}

void TypicalStep::add(rt::StepResult result) {
  constexpr size_t kKept = 31;
  steps.push_back(std::move(result));
  if (steps.size() > kKept)
    steps.pop_front();
}

std::vector<rt::Record> TypicalStep::records() const {
  if (steps.empty())
    return {};
  std::vector<const rt::StepResult *> sorted;
  for (const rt::StepResult &step : steps)
    sorted.push_back(&step);
  auto middle = sorted.begin() + sorted.size() / 2;
  std::nth_element(sorted.begin(), middle, sorted.end(),
                   [](const rt::StepResult *a, const rt::StepResult *b) {
                     return a->time < b->time;
                   });
  return (*middle)->records;
}

void writePictures(const RunOptions &options, const rt::Plan &plan,
                   const rt::Runs &runs) {
  if (!options.trace.empty()) {
    std::ostringstream out;
    rt::writeChromeTrace(out, plan, runs);
    rt::writeFile(options.trace, out.str());
  }
  if (!options.timeline.empty()) {
    std::ostringstream out;
    if (std::filesystem::path(options.timeline).extension() == ".svg")
      rt::writeTimelineSvg(out, plan, runs);
    else
      rt::writeTimelineHtml(out, plan, runs);
    rt::writeFile(options.timeline, out.str());
  }
}

} // namespace takt::run
