//===- schedule_input.cpp - schedule files where plans are expected
//--------===//
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

#include "takt-rt/core/clock.h"
#include "takt-rt/core/error.h"
#include "takt/Lower/TimedPlan.h"
#include "takt/Schedule/File.h"
#include "takt/Support/TextFile.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

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

/// A schedule file that was read, and what was found wrong with it.
struct Checked {
  Diagnostics diags;
  std::optional<ScheduleFile> file; ///< nothing: not even its cells are right
  bool right = false;
};

/// The file with the times that the user states.
rt::Plan timed(const ScheduleFile &file, const std::string &name,
               const std::map<std::string, Nanos> &given) {
  auto costOf = [&](const char *action, Nanos otherwise) {
    auto it = given.find(action);
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
  problem.shape.stages = file.stages;
  problem.shape.microBatches = file.microBatches;
  problem.schedule = computeSchedule(file);
  problem.schedule.name = scheduleName(name);
  if (std::optional<std::string> fault = problem.check())
    throw Error(fmt::format("{}: {}", name, *fault), ExitCode::BadInput);
  return timedPlan(problem);
}

using Json = nlohmann::ordered_json;

Json placeJson(const SourceLoc &loc) {
  return {{"file", loc.file}, {"line", loc.line}, {"column", loc.column}};
}

/// An action of the file by its place; of what is no action only the place.
Json endJson(const Diagnostic &diagnostic,
             const std::optional<ScheduleFile> &file) {
  Json end = {{"rank", nullptr},
              {"action", nullptr},
              {"place", placeJson(diagnostic.loc)},
              {"text", diagnostic.message}};
  for (size_t rank = 0; file && rank < file->rows.size(); ++rank)
    for (const FileAction &action : file->rows[rank])
      if (action.line == diagnostic.loc.line &&
          action.column == diagnostic.loc.column) {
        end["rank"] = rank;
        end["action"] = toText(action);
      }
  return end;
}

Json faultJson(const Diagnostic &diagnostic, const char *rule,
               const std::optional<ScheduleFile> &file) {
  Json json = {{"rule", rule},
               {"text", diagnostic.message},
               {"place", placeJson(diagnostic.loc)},
               {"ends", Json::array({endJson(diagnostic, file)})}};
  for (const Diagnostic &note : diagnostic.notes)
    json["ends"].push_back(endJson(note, file));
  return json;
}

/// The rule that a file breaks: its cells, its compute actions, or its sends
/// and receives.
const char *brokenRule(const Checked &reading) {
  if (!reading.file)
    return "syntax";
  const ScheduleFile &file = *reading.file;
  // Tables by stage and micro-batch must not outgrow the file.
  int64_t actions = 0;
  for (const std::vector<FileAction> &row : file.rows)
    for (const FileAction &action : row)
      actions += action.isCompute();
  bool complete = 2 * int64_t(file.stages) * file.microBatches <= actions;
  return !complete || findFault({file.stages, file.microBatches},
                                computeSchedule(file))
             ? "schedule"
             : "transfers";
}

/// `plan` is that of the file, if it can run.
std::string verdictJson(const Checked &checked, const rt::Plan *plan) {
  Json json;
  json["proof"] = plan ? std::string("schedule verified")
                       : fmt::format("failed: {}", brokenRule(checked));
  json["holds"] = plan != nullptr;
  int64_t actions = 0;
  if (checked.file)
    for (const std::vector<FileAction> &row : checked.file->rows)
      actions += int64_t(row.size());
  json["actions"] = actions;
  json["ranks"] = checked.file ? checked.file->rows.size() : 0;
  json["stages"] = checked.file ? checked.file->stages : 0;
  json["micro_batches"] = checked.file ? checked.file->microBatches : 0;
  json["step_time_ns"] =
      plan ? Json(rt::simulate(*plan, {/*keepRecords=*/false}).makespan)
           : Json();
  json["failure"] = nullptr;
  json["warnings"] = Json::array();
  for (const Diagnostic &diagnostic : checked.diags.all()) {
    if (diagnostic.severity == Severity::Error && json["failure"].is_null())
      json["failure"] =
          faultJson(diagnostic, brokenRule(checked), checked.file);
    if (diagnostic.severity == Severity::Warning)
      json["warnings"].push_back(
          faultJson(diagnostic, "transfers", checked.file));
  }
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

rt::Plan timedSchedule(const std::string &name, std::string text,
                       const std::string &costs, std::ostream *verdict) {
  const std::map<std::string, Nanos> given = readCosts(costs);
  Checked checked;
  checked.file = parseScheduleCsv(name, std::move(text), checked.diags);
  checked.right = checked.file && verifyFile(*checked.file, checked.diags);
  checked.diags.print(std::cerr);
  if (!checked.right) {
    if (verdict)
      *verdict << verdictJson(checked, nullptr);
    throw Error(fmt::format("'{}' is not a schedule that can run", name),
                ExitCode::BadInput);
  }
  rt::Plan plan = timed(*checked.file, name, given);
  if (verdict)
    *verdict << verdictJson(checked, &plan);
  return plan;
}

bool isOfUse(const std::string &beginning) {
  return rt::looksLikePlan(beginning) || looksLikeSchedule(beginning);
}

} // namespace

PlanInput readPlanOrSchedule(const std::string &file, const std::string &costs,
                             rt::Reading reading, std::ostream *verdict) {
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
  return {timedSchedule(name, std::move(content), costs, verdict), true};
}
