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

#include "takt-rt/checkpoint/safetensors.h"
#include "takt-rt/core/error.h"
#include "takt-rt/core/file.h"
#include "takt-rt/data/init.h"
#include "takt-rt/trace/timeline.h"
#include "takt-rt/trace/trace.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <limits>
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

/// Outputs go back to the beginning of their file, which only a file allows, and
/// take the place of the one before.
static void checkSeekable(const std::string &path) {
  std::error_code none;
  if (std::filesystem::exists(path, none) &&
      !std::filesystem::is_regular_file(path, none))
    throw rt::Error(fmt::format("cannot write '{}': '--outputs' needs a file, "
                                "not a device or a pipe",
                                path));
}

static bool sameFile(const std::string &a, const std::string &b) {
  std::error_code none;
  return !a.empty() && !b.empty() &&
         (a == b || std::filesystem::equivalent(a, b, none));
}

void checkOutputs(const RunOptions &options) {
  const std::pair<const char *, const std::string *> inputs[] = {
      {"the plan", &options.plan},
      {"'--data'", &options.data},
      {"'--load-weights'", &options.loadWeights}};
  const std::pair<const char *, const std::string *> outputs[] = {
      {"--save-weights", &options.saveWeights},
      {"--dump-gradients", &options.dumpGradients},
      {"--outputs", &options.outputs},
      {"--profile", &options.profile},
      {"--trace", &options.trace},
      {"--timeline", &options.timeline},
      {"--log-losses", &options.logLosses}};
  for (size_t i = 0; i < std::size(outputs); ++i) {
    const auto &[option, path] = outputs[i];
    checkOutput(*path);
    if (path == &options.outputs && !path->empty() && *path != "-")
      checkSeekable(*path);
    if (*path == "-" && path == &options.outputs)
      throw rt::Error("'--outputs' needs a file: its beginning is written last",
                      rt::ExitCode::Usage);
    if (*path == "-" && options.json)
      throw rt::Error(fmt::format("'{} -' and '--format=json' both write to "
                                  "standard output",
                                  option),
                      rt::ExitCode::Usage);
    // Weights may be loaded from and saved to one file: a run that goes on.
    for (const auto &[what, input] : inputs)
      if (*path != "-" && sameFile(*path, *input) &&
          input != &options.loadWeights)
        throw rt::Error(
            fmt::format("'{} {}' would overwrite {}", option, *path, what),
            rt::ExitCode::Usage);
    for (size_t j = 0; j < i; ++j)
      if (*path != "/dev/null" && sameFile(*path, *outputs[j].second))
        throw rt::Error(fmt::format("'{}' and '{}' both write '{}'",
                                    outputs[j].first, option, *path),
                        rt::ExitCode::Usage);
  }
}

void flushStandardOutput() {
  if (!std::cout.flush())
    throw rt::Error("cannot write to standard output");
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
  if (!out)
    throw rt::Error("cannot write the losses: the output is full or closed");
}

OutputFile::OutputFile(const std::string &path, const rt::Plan &plan)
    : plan(plan), path(path) {
  if (path.empty())
    return;
  temporary = fmt::format("{}.tmp{}", path, getpid());
  file.open(temporary, std::ios::binary | std::ios::trunc);
  if (!file)
    fail();
  // As long as the header will be at most.
  samples = std::numeric_limits<int64_t>::max() / 8 /
            std::max<int64_t>(1, rt::elementCount(plan.output.shape));
  headerBytes = header().size();
  samples = 0;
  file << std::string(headerBytes, ' ');
}

OutputFile::~OutputFile() {
  if (!temporary.empty())
    std::remove(temporary.c_str());
}

void OutputFile::fail() const {
  throw rt::Error(
      fmt::format("cannot write '{}': {}", temporary, std::strerror(errno)));
}

std::string OutputFile::header() const {
  std::vector<int64_t> shape{samples};
  shape.insert(shape.end(), plan.output.shape.begin(), plan.output.shape.end());
  return rt::safetensorsHeader({{plan.output.name, shape}},
                               {{"model", plan.model}});
}

void OutputFile::add(const std::vector<float> &outputs) {
  if (path.empty())
    return;
  file.write(reinterpret_cast<const char *>(outputs.data()),
             std::streamsize(outputs.size() * sizeof(float)));
  if (!file.flush())
    fail();
  samples += plan.training.globalBatch;
}

/// A header may end in spaces, which its length counts.
void OutputFile::finish() {
  if (path.empty())
    return;
  std::string text = header();
  text.resize(headerBytes, ' ');
  for (int i = 0; i < 8; ++i)
    text[i] = static_cast<char>(uint64_t(headerBytes - 8) >> (8 * i));
  file.seekp(0);
  file << text;
  file.close();
  if (!file || std::rename(temporary.c_str(), path.c_str()) != 0)
    fail();
  temporary.clear();
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
