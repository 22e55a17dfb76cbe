//===- InsertTransfers.cpp - sends and receives for a compute schedule
//------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Plays all rows in turn and notes each transfer at both ends when its value is
// made.
//
//===----------------------------------------------------------------------===//
#include "TransferActions.h"

#include <algorithm>
#include <set>
#include <utility>

using namespace takt;
using Kind = FileActionKind;

ScheduleFile takt::insertTransfers(const ScheduleFile &file) {
  const Schedule schedule = computeSchedule(file);
  const std::vector<int32_t> rankOf = rankOfStage(schedule, file.stages);
  ScheduleFile out;
  out.name = file.name;
  out.stages = file.stages;
  out.microBatches = file.microBatches;
  out.rows.resize(file.rows.size());
  std::vector<size_t> heads(file.rows.size(), 0);
  // Stages that have passed a micro-batch on: forward, backward.
  std::set<std::pair<int32_t, int32_t>> forward, backward;

  auto ready = [&](const FileAction &a) {
    if (a.kind == Kind::F)
      return a.stage == 0 || forward.count({a.stage - 1, a.microBatch}) != 0;
    if (a.kind == Kind::W || a.stage + 1 == file.stages)
      return true;
    return backward.count({a.stage + 1, a.microBatch}) != 0;
  };
  auto transfer = [&](Kind kind, const FileAction &a) {
    const FileAction send = make(kind, a.stage, a.microBatch);
    const FileAction receive = otherEnd(send);
    if (receive.stage < 0 || receive.stage >= file.stages ||
        rankOf[receive.stage] == rankOf[a.stage])
      return;
    out.rows[rankOf[a.stage]].push_back(send);
    out.rows[rankOf[receive.stage]].push_back(receive);
  };
  // Turns without progress happen only where a pair holds what one half of it
  // must finish before the other can begin: such a pair is taken apart.
  for (bool moved = true, apart = false; moved || !apart;) {
    apart = !moved;
    moved = false;
    for (size_t r = 0; r < file.rows.size(); ++r) {
      if (heads[r] == file.rows[r].size())
        continue;
      // Actions issued together go together, their transfers after both.
      const std::vector<FileAction> &row = file.rows[r];
      size_t end = heads[r] + 1;
      while (end < row.size() && row[end - 1].withNext && !apart)
        ++end;
      if (!std::all_of(row.begin() + heads[r], row.begin() + end, ready))
        continue;
      const size_t begin = heads[r];
      heads[r] = end;
      moved = true;
      out.rows[r].insert(out.rows[r].end(), row.begin() + begin,
                         row.begin() + end);
      if (end == begin + 1)
        out.rows[r].back().withNext = false;
      for (size_t i = begin; i < end; ++i) {
        if (row[i].kind == Kind::F) {
          forward.insert({row[i].stage, row[i].microBatch});
          transfer(Kind::SendF, row[i]);
        } else if (row[i].kind == Kind::I || row[i].kind == Kind::B) {
          backward.insert({row[i].stage, row[i].microBatch});
          transfer(Kind::SendB, row[i]);
        }
      }
    }
  }
  return out;
}

ScheduleFile takt::insertSendWaits(const ScheduleFile &file) {
  ScheduleFile out;
  out.name = file.name;
  out.stages = file.stages;
  out.microBatches = file.microBatches;
  for (const std::vector<FileAction> &row : file.rows) {
    std::vector<FileAction> &to = out.rows.emplace_back();
    std::set<std::pair<int32_t, int32_t>> sent; // activations not waited for
    std::vector<FileAction> atEnd;
    for (size_t i = 0; i < row.size(); ++i) {
      // Both halves of a pair begin at once: what is over before it stands
      // before both.
      const bool second = i > 0 && row[i - 1].withNext;
      for (size_t j = i; !second && j < row.size(); ++j) {
        const FileAction &a = row[j];
        if ((a.kind == Kind::I || a.kind == Kind::B) &&
            sent.erase({a.stage, a.microBatch}))
          to.push_back(make(Kind::WaitSendF, a.stage, a.microBatch));
        if (!a.withNext)
          break;
      }
      to.push_back(row[i]);
      if (row[i].kind == Kind::SendF)
        sent.insert({row[i].stage, row[i].microBatch});
      if (row[i].kind == Kind::SendB)
        atEnd.push_back(make(Kind::WaitSendB, row[i].stage, row[i].microBatch));
    }
    for (auto [stage, microBatch] : sent)
      to.push_back(make(Kind::WaitSendF, stage, microBatch));
    to.insert(to.end(), atEnd.begin(), atEnd.end());
  }
  return out;
}
