//===- schedules.cpp - taktc schedules ------------------------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
#include "schedules.h"

#include "takt/Driver/Compile.h"
#include "takt/Schedule/Pipeline.h"

#include "takt-rt/core/error.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <iostream>
#include <limits>

using namespace takt;
using rt::ExitCode;

namespace {

std::string stagesARank(const ScheduleFamily &family) {
  if (family.leastChunks == family.mostChunks)
    return fmt::to_string(family.leastChunks);
  return family.mostChunks == std::numeric_limits<int32_t>::max()
             ? fmt::format("{} or more", family.leastChunks)
             : fmt::format("{} to {}", family.leastChunks, family.mostChunks);
}

void printTable() {
  size_t width = 0;
  for (const ScheduleFamily &family : scheduleFamilies())
    width = std::max(width, family.name.size());
  std::cout << fmt::format("{:<{}}  stages a rank  backward  plan\n", "schedule",
                           width);
  for (const ScheduleFamily &family : scheduleFamilies())
    std::cout << fmt::format("{:<{}}  {:<13}  {:<8}  {:<4}  {}\n", family.name,
                             width, stagesARank(family),
                             family.splitsBackward ? "I, W" : "B",
                             whyNoPlan(family).empty() ? "yes" : "no",
                             family.about);
}

void printJson() {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const ScheduleFamily &family : scheduleFamilies()) {
    const std::string why = whyNoPlan(family);
    nlohmann::ordered_json entry{{"name", family.name},
                                 {"about", family.about},
                                 {"least_chunks", family.leastChunks}};
    const bool any = family.mostChunks == std::numeric_limits<int32_t>::max();
    entry["most_chunks"] =
        any ? nlohmann::ordered_json() : nlohmann::ordered_json(family.mostChunks);
    entry["splits_backward"] = family.splitsBackward;
    entry["why_no_plan"] =
        why.empty() ? nlohmann::ordered_json() : nlohmann::ordered_json(why);
    list.push_back(std::move(entry));
  }
  std::cout << list.dump(2) << '\n';
}

} // namespace

int takt::listSchedules(bool json) {
  json ? printJson() : printTable();
  if (std::cout.flush())
    return int(ExitCode::Done);
  std::cerr << "taktc: error: cannot write to standard output\n";
  return int(ExitCode::BadInput);
}
