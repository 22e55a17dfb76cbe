//===- schedule_input.cpp - schedule files where plans are expected --------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Reads costs and file, and puts both together.
//
//===----------------------------------------------------------------------===//
#include "schedule_input.h"

#include "takt-rt/core/error.h"
#include "takt/Lower/TimedPlan.h"
#include "takt/Schedule/File.h"
#include "takt/Support/TextFile.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <iostream>
#include <locale>
#include <map>
#include <sstream>

using namespace takt;
using rt::Error;
using rt::ExitCode;
using rt::Nanos;

namespace {

constexpr double kMostMicroseconds = 1e9;

/// Whether the content begins as a schedule does: with a number, or a cell that
/// is quoted or empty, and without the bytes of a binary file.
bool looksLikeSchedule(const std::string &content) {
  const size_t first = content.find_first_not_of("\xEF\xBB\xBF \t\r\n");
  if (first == std::string::npos)
    return false;
  const char c = content[first];
  return ((c >= '0' && c <= '9') || c == ',' || c == '"') &&
         content.find('\0') == std::string::npos;
}

bool isNamedAsSchedule(std::string file) {
  const std::string end = ".csv";
  std::transform(file.begin(), file.end(), file.begin(),
                 [](unsigned char c) { return char(std::tolower(c)); });
  return file.size() > end.size() &&
         file.compare(file.size() - end.size(), end.size(), end) == 0;
}

[[noreturn]] void failCosts(const std::string &part) {
  throw Error(fmt::format("'{}' is no cost: '--costs' takes microseconds of "
                          "F, B, I, W and comm, from 0 to {:g}, for instance "
                          "'F=1,B=2,I=1,W=1,comm=0'",
                          quotable(part), kMostMicroseconds),
              ExitCode::Usage);
}

/// Named costs in nanoseconds.
std::map<std::string, Nanos> readCosts(const std::string &text) {
  std::map<std::string, Nanos> costs;
  std::istringstream parts(text);
  for (std::string part; std::getline(parts, part, ',');) {
    const size_t equals = part.find('=');
    if (equals == std::string::npos)
      failCosts(part);
    const std::string name = part.substr(0, equals);
    std::istringstream number(part.substr(equals + 1));
    number.imbue(std::locale::classic());
    double value = 0;
    number >> value;
    const bool known = name == "F" || name == "B" || name == "I" ||
                       name == "W" || name == "comm";
    if (!known || number.fail() || !number.eof() || !(value >= 0) ||
        value > kMostMicroseconds || costs.count(name))
      failCosts(part);
    costs[name] = Nanos(std::llround(value * 1000));
  }
  return costs;
}

rt::Plan timedSchedule(const std::string &file, std::string text,
                       const std::string &costs) {
  std::map<std::string, Nanos> given = readCosts(costs);
  auto costOf = [&](const char *name, Nanos otherwise) {
    auto it = given.find(name);
    return it == given.end() ? otherwise : it->second;
  };
  TimedPlanProblem problem;
  ActionTimes times;
  times.forward = costOf("F", 1000);
  times.inputGrad = costOf("I", 1000);
  times.weightGrad = costOf("W", 1000);
  times.backward = costOf("B", times.inputGrad + times.weightGrad);
  problem.times = {times};
  problem.transfer = costOf("comm", 0);

  Diagnostics diags;
  std::optional<ScheduleFile> read =
      parseScheduleCsv(file, std::move(text), diags);
  const bool right = read && verifyFile(*read, diags);
  diags.print(std::cerr);
  if (!right)
    throw Error(fmt::format("'{}' is not a schedule that can run", file),
                ExitCode::BadInput);
  problem.shape.stages = read->stages;
  problem.shape.microBatches = read->microBatches;
  problem.schedule = computeSchedule(*read);
  problem.schedule.name = scheduleName(file);
  if (std::optional<std::string> fault = problem.check())
    throw Error(fmt::format("{}: {}", file, *fault), ExitCode::BadInput);
  return timedPlan(problem);
}

bool isOfUse(const std::string &beginning) {
  return rt::looksLikePlan(beginning) || looksLikeSchedule(beginning);
}

} // namespace

PlanInput readPlanOrSchedule(const std::string &file, const std::string &costs,
                             rt::Reading reading) {
  const std::string name = file == "-" ? "standard input" : file;
  std::string content;
  if (isNamedAsSchedule(file)) {
    Diagnostics diags;
    std::optional<std::string> text = readTextFile(file, diags);
    diags.print(std::cerr);
    if (!text)
      throw Error(fmt::format("cannot read '{}'", file), ExitCode::BadInput);
    content = std::move(*text);
  } else {
    content = rt::readFileIf(file, isOfUse);
  }
  if (rt::looksLikePlan(content))
    return {rt::parsePlan(content, name, reading), false};
  if (!isNamedAsSchedule(file) && !looksLikeSchedule(content))
    throw Error(fmt::format("{}: neither a plan, in binary or text form, nor a "
                            "schedule (.csv)",
                            name),
                ExitCode::BadInput);
  return {timedSchedule(name, std::move(content), costs), true};
}
