//===- Emit.cpp - levels and views on their way out -----------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Writes IR levels, the plan and its views, and prints the report.
//
//===----------------------------------------------------------------------===//
#include "Compiler.h"
#include "Watch.h"

#include "Pipe/PipeBridge.h"
#include "takt/Support/Quantity.h"
#include "takt/Transforms/ScheduleBounds.h"

#include "takt-rt/core/file.h"
#include "takt-rt/core/summary.h"
#include "takt-rt/core/text.h"
#include "takt-rt/trace/timeline.h"
#include "takt-rt/trace/trace.h"

#include "llvm/Support/raw_ostream.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cmath>
#include <filesystem>
#include <iostream>
#include <sstream>
#include <tuple>
#include <unistd.h>

using namespace takt;
using rt::ExitCode;

std::string Compiler::moduleText() {
  std::string text;
  llvm::raw_string_ostream stream(text);
  module->print(stream);
  stream << '\n';
  return text;
}

ExitCode Compiler::write(const std::string &path, const std::string &content) {
  const UnfinishedFile guard(rt::temporaryName(path));
  rt::writeFile(path, content);
  return ExitCode::Done;
}

/// Writes the module as it stands into --dump-levels, and to -o if it is the
/// level that --emit names.
ExitCode Compiler::level(EmitKind kind, const char *fileName) {
  if (!options.dumpLevels.empty()) {
    std::error_code error;
    std::filesystem::create_directories(options.dumpLevels, error);
    if (error)
      return fail(fmt::format("cannot create the folder '{}': {}",
                              options.dumpLevels, error.message()));
    write((std::filesystem::path(options.dumpLevels) / fileName).string(),
          moduleText());
  }
  if (kind == options.emit && kind != EmitKind::Plan) {
    written = true;
    return write(options.output.empty() ? "-" : options.output, moduleText());
  }
  return ExitCode::Done;
}

namespace {

/// The compute actions of every role as a schedule file.
ScheduleFile scheduleOf(const rt::Plan &plan) {
  ScheduleProblem shape{0, plan.training.microBatches};
  Schedule schedule{plan.schedule, {}};
  for (const rt::Role &role : plan.roles) {
    std::vector<Action> &actions = schedule.roles.emplace_back();
    shape.stages += int32_t(role.stages.size());
    for (const rt::Lane &lane : role.lanes)
      for (const rt::Instr &instr : lane.instrs)
        if (lane.kind == rt::LaneKind::Compute && instr.microBatch >= 0 &&
            rt::pieceOf(role.procedures[instr.target]) <= 0) {
          // Pieces are one action; its first stands for all.
          std::string text = rt::actionText(plan, role, instr);
          if (auto action = parseAction(text.substr(0, text.find('.'))))
            actions.push_back(*action);
        }
  }
  return toFile(shape, schedule);
}

} // namespace

ExitCode Compiler::emitPlan() {
  if (!options.dumpLevels.empty())
    write((std::filesystem::path(options.dumpLevels) / "6-plan.txt").string(),
          rt::toText(plan));
  std::string path = options.output;
  if (options.emit == EmitKind::Plan) {
    if (path.empty()) { // only the report was wanted
      if (!options.quiet && !options.json)
        err << "no plan was written: '-o FILE' names one\n";
      return ExitCode::Done;
    }
    if (path == "-" && isatty(STDOUT_FILENO) && !options.force)
      return fail("a plan is binary: name a file with '-o', or take "
                  "'--emit=plan-text' (or '-f')",
                  ExitCode::Usage);
    const UnfinishedFile guard(rt::temporaryName(path));
    rt::writePlan(plan, path);
    return ExitCode::Done;
  }
  std::ostringstream out;
  const rt::Runs runs{simulation.records, {}};
  switch (options.emit) {
  case EmitKind::PlanText:
    out << rt::toText(plan);
    break;
  case EmitKind::Csv:
    out << writeScheduleCsv(scheduleOf(plan));
    break;
  case EmitKind::CsvComms:
    out << writeScheduleCsv(insertTransfers(scheduleOf(plan)));
    break;
  case EmitKind::CsvWaits:
    out << writeScheduleCsv(insertSendWaits(insertTransfers(scheduleOf(plan))));
    break;
  case EmitKind::Trace:
    rt::writeChromeTrace(out, plan, runs);
    break;
  case EmitKind::Svg:
    rt::writeTimelineSvg(out, plan, runs);
    break;
  case EmitKind::Html:
    rt::writeTimelineHtml(out, plan, runs);
    break;
  default:
    break; // IR levels were written on the way
  }
  return write(path.empty() ? "-" : path, out.str());
}

/// As plans state it.
static double gapOf(Nanos value, Nanos bound) {
  return bound > 0 ? double(value - bound) / double(bound) : 0;
}

/// What no order of the same stages can go below; null where costs are missing
/// or a single rank has nothing to order.
nlohmann::ordered_json Compiler::boundsJson() {
  std::string error;
  const std::optional<PipelineBounds> found =
      plan.roles.size() > 1 ? scheduleBounds(*module, error) : std::nullopt;
  if (!found)
    return nullptr;
  nlohmann::ordered_json json;
  const std::tuple<const char *, const char *, double> rules[] = {
      {"head_and_work", "way to a rank and its work", found->headAndWork},
      {"critical_path", "one micro-batch there and back", found->criticalPath},
      {"warm_up", "what fits before the first backward", found->warmUp},
      {"memory_time", "memory and time", found->memoryTime},
      {"busy_and_tail", "calls of a rank and the way back",
       found->busyAndTail}};
  double best = 0;
  for (const auto &[name, words, bound] : rules) {
    json[std::string(name) + "_ns"] = int64_t(bound);
    if (bound > best) {
      best = bound;
      json["rule"] = words;
    }
  }
  json["bound_ns"] = int64_t(best);
  json["gap"] = gapOf(plan.predictedStep, int64_t(best));
  return json;
}

/// Only of schedules whose order is a choice of the user among many.
std::string Compiler::boundsReport() {
  if (!scheduleFile)
    return {};
  const nlohmann::ordered_json found = boundsJson();
  if (found.is_null())
    return {};
  return fmt::format("order: {} predicted, no order of these stages below {} "
                     "({}), gap {:.2f} %\n",
                     formatTime(plan.predictedStep),
                     formatTime(found["bound_ns"].get<int64_t>()),
                     found["rule"].get<std::string>(),
                     100 * found["gap"].get<double>());
}

/// What is proven of a searched schedule; null if it was not searched.
nlohmann::ordered_json Compiler::searchJson() {
  std::string error;
  auto parts = pipe::findProgram(*module, error);
  if (!parts)
    return nullptr;
  auto found =
      parts->program->getAttrOfType<mlir::DictionaryAttr>(pipe::kSearchAttr);
  if (!found)
    return nullptr;
  auto number = [&](llvm::StringRef key) {
    return found.getAs<mlir::IntegerAttr>(key).getInt();
  };
  const int64_t makespan = number("makespan_ns"), bound = number("bound_ns");
  nlohmann::ordered_json json;
  json["makespan_ns"] = makespan;
  json["bound_ns"] = bound;
  json["gap"] = gapOf(makespan, bound);
  json["method"] = found.getAs<mlir::StringAttr>("method").getValue().str();
  json["work"] = number("work");
  return json;
}

std::string Compiler::searchReport() {
  const nlohmann::ordered_json found = searchJson();
  if (found.is_null())
    return {};
  const int64_t makespan = found["makespan_ns"].get<int64_t>();
  // The model of the search is the plan but for what the words say.
  const char *leavesOut =
      makespan == plan.predictedStep
          ? ""
          : " with gradients reduced after the calls and nothing shared";
  return fmt::format(
      "schedule {}: {}{}, bound {}, gap {:.2f} % ({}, solver work {})\n",
      schedule, formatTime(makespan), leavesOut,
      formatTime(found["bound_ns"].get<int64_t>()),
      100 * found["gap"].get<double>(), found["method"].get<std::string>(),
      found["work"].get<int64_t>());
}

/// What a published formula expects of its stages beside what the simulator
/// finds; null if none chose them.
nlohmann::ordered_json Compiler::costModelJson() {
  std::string error;
  auto parts = pipe::findProgram(*module, error);
  if (!parts)
    return nullptr;
  auto chosen =
      parts->program->getAttrOfType<mlir::DictionaryAttr>(pipe::kCostModelAttr);
  if (!chosen)
    return nullptr;
  const int64_t step = chosen.getAs<mlir::IntegerAttr>("step_ns").getInt();
  nlohmann::ordered_json json;
  json["name"] = chosen.getAs<mlir::StringAttr>("name").getValue().str();
  json["step_ns"] = step;
  json["error"] = plan.predictedStep > 0
                      ? double(step) / double(plan.predictedStep) - 1
                      : 0.0;
  return json;
}

std::string Compiler::costModelReport() {
  const nlohmann::ordered_json chosen = costModelJson();
  if (chosen.is_null())
    return {};
  const double error = chosen["error"].get<double>();
  return fmt::format("cost model {}: a step of {} by its formula, {} in the "
                     "simulator ({:+.1f} %{})\n",
                     chosen["name"].get<std::string>(),
                     formatTime(chosen["step_ns"].get<int64_t>()),
                     formatTime(plan.predictedStep), 100 * error,
                     std::abs(error) > 0.1 ? ": do not rely on the formula here"
                                           : "");
}

/// What was taken and how far from the best it may be.
void Compiler::reportInterrupt() {
  std::string found = "before any answer was found";
  std::string error;
  auto parts = module ? pipe::findProgram(*module, error) : std::nullopt;
  if (parts) {
    const int64_t step = parts->program.getObjectiveNs();
    const int64_t bound = parts->program.getBoundNs();
    found =
        fmt::format("took the best so far: stages {}, bound {}, gap {:.2f} %",
                    formatTime(step), formatTime(bound),
                    100 * gapOf(step, bound));
    if (const nlohmann::ordered_json search = searchJson(); !search.is_null())
      found += fmt::format("; schedule {}, bound {}, gap {:.2f} %",
                           formatTime(search["makespan_ns"].get<int64_t>()),
                           formatTime(search["bound_ns"].get<int64_t>()),
                           100 * search["gap"].get<double>());
  }
  err << "taktc: warning: interrupted: " << found << '\n';
}

nlohmann::ordered_json Compiler::reportJson() {
  // What only the compiler knows follows on what any plan tells.
  auto json = nlohmann::ordered_json::parse(rt::toJson(rt::summarize(plan)));
  json["schedule_bounds"] = boundsJson();
  json["search"] = searchJson();
  if (options.explainStages)
    json["assignment"] = stagesJson();
  if (options.explainComm)
    json["communication"] = overlapJson(plan, simulation, chooseAgain());
  json["cost_model"] = costModelJson();
  json["interrupted"] = interrupted;
  return json;
}

void Compiler::report() {
  if (options.json) {
    if (!(std::cout << reportJson().dump(2) << '\n').flush())
      throw rt::Error("cannot write to standard output");
    return;
  }
  if (!options.quiet)
    err << rt::printText(rt::summarize(plan)) << boundsReport()
        << searchReport() << costModelReport();
}
