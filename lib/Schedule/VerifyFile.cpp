//===- VerifyFile.cpp - can a schedule file run
//----------------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Holds a file against the rules of schedules and points at the cell at fault.
//
//===----------------------------------------------------------------------===//
#include "TransferActions.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

using namespace takt;
using Kind = FileActionKind;

namespace {

/// The first F or backward that a file of too few actions lacks.
std::string firstMissing(const ScheduleFile &file) {
  std::set<std::pair<int32_t, int32_t>> forward, backward;
  for (const std::vector<FileAction> &row : file.rows)
    for (const FileAction &a : row) {
      if (a.kind == Kind::F)
        forward.insert({a.stage, a.microBatch});
      if (a.kind == Kind::B || a.kind == Kind::I)
        backward.insert({a.stage, a.microBatch});
    }
  for (int32_t s = 0; s < file.stages; ++s)
    for (int32_t m = 0; m < file.microBatches; ++m) {
      if (!forward.count({s, m}))
        return fmt::format("'{}F{}'", s, m);
      if (!backward.count({s, m}))
        return fmt::format("'{}B{}'", s, m);
    }
  return "an action";
}

} // namespace

bool takt::verifyFile(const ScheduleFile &file, Diagnostics &diags) {
  // Tables by stage and micro-batch follow; they must not outgrow the file.
  int64_t actions = 0;
  for (const std::vector<FileAction> &row : file.rows)
    actions += std::count_if(row.begin(), row.end(),
                             [](const FileAction &a) { return a.isCompute(); });
  if (2 * int64_t(file.stages) * file.microBatches > actions) {
    diags.error({file.name, 1, 1},
                fmt::format("{} stages and {} micro-batches need at least {} "
                            "compute actions, the file has {}: {} is missing",
                            file.stages, file.microBatches,
                            2 * int64_t(file.stages) * file.microBatches,
                            actions, firstMissing(file)));
    return false;
  }
  const Schedule schedule = computeSchedule(file);
  const ScheduleProblem problem{file.stages, file.microBatches};
  if (std::optional<ScheduleFault> fault = findFault(problem, schedule)) {
    auto locOf = [&](int32_t role, int32_t place) {
      SourceLoc loc{file.name, role + 1, 1};
      for (const FileAction &a : file.rows[role])
        if (a.isCompute() && place-- == 0)
          loc = {file.name, a.line, a.column};
      return loc;
    };
    SourceLoc loc{file.name, 1, 1};
    if (fault->role >= 0)
      loc = locOf(fault->role, fault->place);
    Diagnostic &error = diags.error(loc, fault->message);
    if (fault->otherRole >= 0)
      error.note(locOf(fault->otherRole, fault->otherPlace),
                 "the other action is here");
    return false;
  }
  return checkTransfers(file, rankOfStage(schedule, file.stages), diags);
}
