//===- CsvWriter.cpp - schedule files to text
//------------------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// The text of actions and files, and files from schedules.
//
//===----------------------------------------------------------------------===//
#include "takt/Schedule/File.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string_view>

using namespace takt;

std::string takt::toText(const FileAction &action) {
  static constexpr const char *words[] = {"F",           "I",
                                          "W",           "B",
                                          "SEND_F",      "RECV_F",
                                          "SEND_B",      "RECV_B",
                                          "WAIT_SEND_F", "WAIT_SEND_B",
                                          "UNSHARD",     "RESHARD",
                                          "REDUCE_GRAD", "WAIT_REDUCE_GRAD"};
  const char *word = words[static_cast<size_t>(action.kind)];
  if (action.microBatch < 0)
    return fmt::format("{}{}", action.stage, word);
  return fmt::format("{}{}{}", action.stage, word, action.microBatch);
}

bool ScheduleFile::hasTransfers() const {
  for (const std::vector<FileAction> &row : rows)
    if (std::any_of(row.begin(), row.end(),
                    [](const FileAction &a) { return a.isTransfer(); }))
      return true;
  return false;
}

Schedule takt::computeSchedule(const ScheduleFile &file) {
  Schedule schedule{file.name, {}};
  for (const std::vector<FileAction> &row : file.rows) {
    std::vector<Action> &role = schedule.roles.emplace_back();
    for (const FileAction &action : row)
      if (action.isCompute())
        role.push_back({action.stage, static_cast<ActionKind>(action.kind),
                        action.microBatch});
  }
  return schedule;
}

bool takt::namesScheduleFile(const std::string &schedule) {
  return schedule.find_first_of("./") != std::string::npos;
}

bool takt::isScheduleRule(const std::string &file) {
  for (const std::string_view end : {".yaml", ".yml"})
    if (file.size() > end.size() &&
        file.compare(file.size() - end.size(), end.size(), end) == 0)
      return true;
  return false;
}

std::string takt::scheduleName(const std::string &file) {
  constexpr size_t kMost = 200;
  std::string name = file.substr(file.find_last_of('/') + 1).substr(0, kMost);
  for (char &c : name)
    if (c < 0x20 || c >= 0x7f)
      c = '?';
  return name;
}

std::optional<Action> takt::firstOutOfTurn(const Schedule &schedule) {
  std::map<int32_t, int32_t> last; // stage -> micro-batch
  for (const std::vector<Action> &role : schedule.roles)
    for (const Action &action : role) {
      if (action.kind != ActionKind::W && action.kind != ActionKind::B)
        continue;
      auto [it, fresh] = last.insert({action.stage, action.microBatch});
      if (!fresh && action.microBatch < it->second)
        return action;
      it->second = action.microBatch;
    }
  return std::nullopt;
}

std::vector<int32_t> takt::rankOfStage(const Schedule &schedule,
                                       int32_t stages) {
  std::vector<int32_t> rank(stages, -1);
  for (size_t r = 0; r < schedule.roles.size(); ++r)
    for (const Action &action : schedule.roles[r])
      if (action.stage >= 0 && action.stage < stages && rank[action.stage] < 0)
        rank[action.stage] = int32_t(r);
  return rank;
}

ScheduleFile takt::toFile(const ScheduleProblem &problem,
                          const Schedule &schedule) {
  ScheduleFile file;
  file.name = schedule.name;
  file.stages = problem.stages;
  file.microBatches = problem.microBatches;
  for (const std::vector<Action> &role : schedule.roles) {
    std::vector<FileAction> &row = file.rows.emplace_back();
    for (const Action &action : role) {
      FileAction made;
      made.kind = static_cast<FileActionKind>(action.kind);
      made.stage = action.stage;
      made.microBatch = action.microBatch;
      row.push_back(made);
    }
  }
  return file;
}

std::string takt::writeScheduleCsv(const ScheduleFile &file) {
  std::string out;
  for (const std::vector<FileAction> &row : file.rows) {
    for (size_t i = 0; i < row.size(); ++i) {
      if (i > 0)
        out += ',';
      // Transfers issued together are equal to one after the other, and a
      // reader of today knows only pairs of compute actions.
      if (row[i].withNext && row[i].isCompute() && i + 1 < row.size()) {
        out += fmt::format("({};{})OVERLAP_F_B", toText(row[i]),
                           toText(row[i + 1]));
        ++i;
      } else {
        out += toText(row[i]);
      }
    }
    out += '\n';
  }
  return out;
}
