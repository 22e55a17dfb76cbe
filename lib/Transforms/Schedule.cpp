//===- Schedule.cpp - takt-schedule ---------------------------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Gives every stage a role, of its own or with others, and each role its list
// of compute actions. It runs after stage assignment and before communication,
// which follows the order of the actions. Generators and verifier are in
// takt/Schedule.
//
//===----------------------------------------------------------------------===//
#include "takt/Transforms/Passes.h"

#include "FamilySchedule.h"
#include "PlannedStep.h"
#include "SearchedSchedule.h"
#include "SolverFailure.h"

#include "Model/ModelBridge.h"
#include "Pipe/PipeBridge.h"
#include "takt/Schedule/File.h"
#include "takt/Schedule/Language.h"
#include "takt/Schedule/Pipeline.h"
#include "takt/Schedule/Schedule.h"
#include "takt/Support/TextFile.h"

#include "llvm/Support/Path.h"

namespace takt {
#define GEN_PASS_DEF_SCHEDULEPASS
#include "takt/Transforms/Passes.h.inc"
} // namespace takt

using namespace takt;
using mlir::failed;
using mlir::success;

namespace {

struct SchedulePass : impl::SchedulePassBase<SchedulePass> {
  using SchedulePassBase::SchedulePassBase;

  void runOnOperation() override {
    if (failed(run()))
      signalPassFailure();
  }

  llvm::LogicalResult run();
  std::optional<Schedule> search(const pipe::ProgramParts &parts);
  std::optional<Schedule> readFile();
  std::optional<Schedule> expandFile(const pipe::ProgramParts &parts);
  void report(const Diagnostics &diags);
  llvm::LogicalResult reportUnknown(pipe::ProgramOp program);
  /// Stages of one role must share devices, those of two roles none.
  llvm::LogicalResult checkPlacement(pipe::ProgramOp program,
                                     const Schedule &found);
  /// Memory was reckoned for a number of micro-batches: holds the schedule
  /// more?
  llvm::LogicalResult checkInFlight(pipe::ProgramOp program,
                                    const Schedule &found);
};

} // namespace

/// The shortest schedule; what was proven of it stays on the program.
std::optional<Schedule> SchedulePass::search(const pipe::ProgramParts &parts) {
  solver::Settings settings;
  settings.workLimit = searchWork;
  settings.dumpFolder = dumpSmt2;
  settings.name = "schedule";
  std::string error;
  std::optional<SearchResult> found =
      searchProgram(parts, schedule, settings, error);
  pipe::ProgramOp program = parts.program;
  if (!found) {
    program.emitError() << error;
    return std::nullopt;
  }
  if (failed(reportFailure(program, found->failure)))
    return std::nullopt;
  mlir::Builder builder(&getContext());
  auto number = [&](int64_t value) { return builder.getI64IntegerAttr(value); };
  program->setAttr(
      pipe::kSearchAttr,
      builder.getDictionaryAttr(
          {builder.getNamedAttr("bound_ns", number(found->bound)),
           builder.getNamedAttr("makespan_ns", number(found->makespan)),
           builder.getNamedAttr("method", builder.getStringAttr(found->method)),
           builder.getNamedAttr("work", number(found->work))}));
  return found->schedule;
}

void SchedulePass::report(const Diagnostics &diags) {
  auto placeOf = [&](const SourceLoc &loc) -> mlir::Location {
    if (loc.file.empty())
      return getOperation().getLoc();
    return mlir::FileLineColLoc::get(&getContext(), loc.file, loc.line,
                                     loc.column);
  };
  for (const takt::Diagnostic &fault : diags.all()) {
    mlir::InFlightDiagnostic out =
        fault.severity == Severity::Error
            ? mlir::emitError(placeOf(fault.loc), fault.message)
            : mlir::emitWarning(placeOf(fault.loc), fault.message);
    for (const takt::Diagnostic &note : fault.notes)
      out.attachNote(placeOf(note.loc)) << note.message;
  }
}

/// The compute actions of the file; faults come at their place in it.
std::optional<Schedule> SchedulePass::readFile() {
  Diagnostics diags;
  std::optional<ScheduleFile> read;
  if (std::optional<std::string> text = readTextFile(file, diags))
    read = parseScheduleCsv(file, *text, diags);
  const bool right = read && verifyFile(*read, diags);
  report(diags);
  if (!right)
    return std::nullopt;
  Schedule found = computeSchedule(*read);
  found.name = scheduleName(file);
  sortRoles(found, read->stages); // whatever the order of rows
  return found;
}

/// The lists of a rule for the stages as they lie.
std::optional<Schedule>
SchedulePass::expandFile(const pipe::ProgramParts &parts) {
  Diagnostics diags;
  std::optional<ScheduleRule> rule;
  if (std::optional<std::string> text = readTextFile(file, diags))
    rule = parseScheduleRule(file, *text, diags);
  if (!rule) {
    report(diags);
    return std::nullopt;
  }
  // Of two problems that it is asked for only the first one's faults are shown.
  std::string error;
  Diagnostics faults;
  std::optional<Schedule> found = generatedSchedule(
      parts,
      [&](const PipelineProblem &given, std::string &why) {
        Diagnostics own;
        std::optional<Pipeline> lists = expandSchedule(*rule, given, own);
        if (!lists && why.empty())
          faults = own;
        return lists;
      },
      error);
  if (found)
    return found;
  report(faults);
  if (!error.empty())
    getOperation().emitError() << error;
  return std::nullopt;
}

llvm::LogicalResult SchedulePass::reportUnknown(pipe::ProgramOp program) {
  mlir::InFlightDiagnostic diag = program.emitError()
                                  << "unknown schedule '" << schedule
                                  << "'; known are ";
  std::vector<std::string> known = familyNames();
  known.insert(known.end(), {"optimal", "optimal-split"});
  llvm::interleaveComma(known, diag, [&](const std::string &name) {
    diag << "'" << name << "'";
  });
  return diag;
}

llvm::LogicalResult SchedulePass::checkInFlight(pipe::ProgramOp program,
                                                const Schedule &found) {
  const std::vector<pipe::StageOp> stages = program.getStages();
  const std::vector<int32_t> held = heldByStage(found, stages.size());
  for (pipe::StageOp stage : stages) {
    int32_t peak = held[stage.getNumber()];
    if (peak <= stage.getInFlight())
      continue;
    mlir::InFlightDiagnostic diag =
        stage.emitError() << "schedule '" << found.name << "' holds " << peak
                          << " micro-batches on stage " << stage.getNumber()
                          << ", whose memory was planned for "
                          << stage.getInFlight();
    diag.attachNote() << "assign stages with schedule-policy="
                      << (file.empty() ? schedule.getValue() : "gpipe");
    return diag;
  }
  return success();
}

llvm::LogicalResult SchedulePass::checkPlacement(pipe::ProgramOp program,
                                                 const Schedule &found) {
  std::vector<pipe::StageOp> stages = program.getStages();
  std::vector<int32_t> roleOf(stages.size());
  for (size_t r = 0; r < found.roles.size(); ++r)
    for (const Action &action : found.roles[r])
      roleOf[action.stage] = int32_t(r);
  for (size_t s = 0; s < stages.size(); ++s)
    for (size_t first = 0; first < s; ++first) {
      const bool share = stages[first].getDevices() == stages[s].getDevices();
      if (share == (roleOf[first] == roleOf[s]))
        continue;
      return stages[s].emitError()
             << "schedule '" << found.name << "' has stages " << first
             << " and " << s << (share ? " on two ranks" : " on one rank")
             << ", they have " << (share ? "the same" : "different")
             << " devices";
    }
  return success();
}

llvm::LogicalResult SchedulePass::run() {
  std::string error;
  std::optional<pipe::ProgramParts> parts =
      pipe::findProgram(getOperation(), error);
  if (!parts)
    return getOperation().emitError() << error;
  pipe::ProgramOp program = parts->program;
  if (!program.getRoles().empty())
    return program.emitError() << "has a schedule already";

  ScheduleProblem problem;
  problem.stages = program.getStages().size();
  const rt::Training training = model::exportTraining(parts->graph);
  problem.microBatches = training.microBatches;
  problem.forwardOnly = training.mode == rt::Mode::Inference;
  if (std::optional<std::string> fault = problem.check())
    return program.emitError() << *fault;
  if (problem.forwardOnly && (!file.empty() || schedule != "forward"))
    return program.emitError()
           << "the mode 'inference' has the schedule 'forward', not '"
           << (file.empty() ? schedule : file) << "'";
  std::optional<Schedule> found;
  if (!file.empty()) {
    found = isScheduleRule(file) ? expandFile(*parts) : readFile();
    if (!found)
      return mlir::failure();
  } else if (isSearchedSchedule(schedule)) {
    found = search(*parts);
    if (!found)
      return mlir::failure();
  } else if (found = generateSchedule(schedule, problem); !found) {
    if (!findFamily(schedule.getValue()))
      return reportUnknown(program);
    found = generatedSchedule(
        *parts,
        [&](const PipelineProblem &given, std::string &why) {
          return generatePipeline(schedule.getValue(), given, why);
        },
        error);
    if (!found)
      return program.emitError() << error;
  }
  if (std::optional<std::string> fault = verify(problem, *found))
    return program.emitError()
           << "schedule '" << found->name << "' fails its check: " << *fault;
  if (failed(checkPlacement(program, *found)) ||
      failed(checkInFlight(program, *found)))
    return mlir::failure();

  addRoles(program, *found);
  return success();
}
