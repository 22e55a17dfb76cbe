//===- ReadSchedule.cpp - --schedule=FILE
//----------------------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Reads a schedule that others wrote and holds it against the model and the
// options before anything is compiled: the sizes must be the model's, and every
// action must be able to run. The pass that makes the roles reads it again.
//
//===----------------------------------------------------------------------===//
#include "Compiler.h"

#include "takt/Support/TextFile.h"

#include <fmt/format.h>

#include <algorithm>

using namespace takt;
using rt::ExitCode;

const char *takt::memoryPolicy(const ScheduleFile &file) {
  for (const std::vector<Action> &row : computeSchedule(file).roles) {
    const int32_t held =
        std::min(file.microBatches, file.stages - row.front().stage);
    if (peakInFlight(row) > held)
      return "gpipe";
  }
  return "1f1b";
}

ExitCode Compiler::readSchedule() {
  const std::string &path = schedule;
  std::optional<std::string> text = readTextFile(path, diags);
  if (!text)
    return ExitCode::BadInput;
  scheduleFile = parseScheduleCsv(path, *text, diags);
  if (!scheduleFile || !verifyFile(*scheduleFile, diags))
    return ExitCode::BadInput;

  const ScheduleFile &file = *scheduleFile;
  if (file.microBatches != model.training.microBatches) {
    Diagnostic &error = diags.error(
        {path, 1, 1},
        fmt::format("the schedule runs {} micro-batches a step, the model "
                    "trains with {}",
                    file.microBatches, model.training.microBatches));
    auto place = model.places.find("training.micro_batches");
    if (place != model.places.end())
      error.note(
          place->second,
          fmt::format("'micro_batches: {}' here would fit", file.microBatches));
    return ExitCode::BadInput;
  }
  if (options.stages != 0 && options.stages != file.stages) {
    diags.error({path, 1, 1}, fmt::format("the schedule has {} stages, "
                                          "'--stages' asks for {}",
                                          file.stages, options.stages));
    return ExitCode::BadInput;
  }
  const Schedule schedule = computeSchedule(file);
  const std::vector<int32_t> rankOf = rankOfStage(schedule, file.stages);
  if (std::optional<Action> late = firstOutOfTurn(schedule))
    diags.warning({path, rankOf[late->stage] + 1, 1},
                  fmt::format("'{}' does not come in the order of "
                              "micro-batches: gradients add up in another "
                              "order, so losses differ in their last bits from "
                              "those of other schedules",
                              toText(*late)));
  return ExitCode::Done;
}
