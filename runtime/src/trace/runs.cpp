//===- runs.cpp - figures of a run ------------------------------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// What both the trace and the timeline say about a run as a whole.
//
//===----------------------------------------------------------------------===//
#include "takt-rt/trace/runs.h"

#include "takt-rt/core/error.h"

#include <fmt/format.h>

#include <algorithm>

namespace takt::rt {

Nanos stepTime(const std::vector<Record> &run) {
  Nanos end = 0;
  for (const Record &record : run)
    end = std::max(end, record.end);
  return end;
}

double bubbleShare(const Plan &plan, const std::vector<Record> &run) {
  double busy = 0;
  for (const Record &record : run) {
    const Role &role = plan.roles[plan.roleOf(record.rank)];
    if (role.lanes[record.lane].kind == LaneKind::Compute)
      busy += static_cast<double>(record.end - record.begin);
  }
  double all = static_cast<double>(stepTime(run)) * plan.numRanks();
  return all > 0 ? 1 - busy / all : 0;
}

void checkRecords(const Plan &plan, const std::vector<Record> &run) {
  for (const Record &record : run) {
    bool known = record.rank >= 0 && record.rank < plan.numRanks();
    if (known) {
      const Role &role = plan.roles[plan.roleOf(record.rank)];
      known = record.lane < role.lanes.size() &&
              record.instr < role.lanes[record.lane].instrs.size();
    }
    if (!known)
      throw Error(fmt::format(
          "a record names rank {}, lane {}, instruction {}, which the plan "
          "does not have",
          record.rank, record.lane, record.instr));
    if (record.begin < 0 || record.end < record.begin)
      throw Error(fmt::format("a record runs from {} ns to {} ns", record.begin,
                              record.end));
  }
}

} // namespace takt::rt
