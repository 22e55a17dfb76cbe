//===- Registry.cpp - schedules by name -----------------------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// The names users write and the generators behind them. A new schedule is a
// file in Generators/ and a line here.
//
//===----------------------------------------------------------------------===//

#include "takt/Schedule/Schedule.h"

namespace takt {

namespace {

struct Entry {
  const char *name;
  Schedule (*generate)(const ScheduleProblem &problem);
  bool forwardOnly = false;
};

constexpr Entry kGenerators[] = {
    {"gpipe", generateGPipe},
    {"1f1b", generateOneFOneB},
    {"forward", generateForward, true},
};

} // namespace

std::optional<Schedule> generateSchedule(const std::string &name,
                                         const ScheduleProblem &problem) {
  for (const Entry &entry : kGenerators)
    if (name == entry.name && entry.forwardOnly == problem.forwardOnly &&
        !problem.check())
      return entry.generate(problem);
  return std::nullopt;
}

std::vector<std::string> scheduleNames(bool forwardOnly) {
  std::vector<std::string> names;
  for (const Entry &entry : kGenerators)
    if (entry.forwardOnly == forwardOnly)
      names.push_back(entry.name);
  return names;
}

} // namespace takt
