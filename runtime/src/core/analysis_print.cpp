//===- analysis_print.cpp - a simulated step as text and JSON ---*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// The text keeps to what a person acts on: shares, the largest causes, the
// critical path summed by what it passes through. The JSON holds everything.
//
//===----------------------------------------------------------------------===//
#include "takt-rt/core/analysis.h"
#include "takt-rt/core/units.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>

namespace takt::rt {

namespace {

constexpr size_t kTextCauses = 3; ///< of a rank, the largest
constexpr size_t kTextRanks = 64; ///< before the text says "and more"

std::string causeText(const IdlePart &part) {
  std::string text = nameOf(part.cause);
  if (part.stage < 0)
    return text;
  bool toPeer = part.cause == IdleCause::SlotCredit;
  return fmt::format("{} {} stage {}", text, toPeer ? "towards" : "from",
                     part.stage);
}

std::string idleText(const RankTimes &times) {
  std::vector<IdlePart> parts = times.parts;
  auto total = [](const IdlePart &part) { return part.waiting + part.moving; };
  std::stable_sort(parts.begin(), parts.end(),
                   [&](const IdlePart &a, const IdlePart &b) {
                     return total(a) > total(b);
                   });
  std::string text;
  for (size_t i = 0; i < parts.size() && i < kTextCauses; ++i)
    text += fmt::format("{}{} {}", i == 0 ? ": " : ", ", causeText(parts[i]),
                        formatNanos(total(parts[i])));
  return text;
}

/// What the critical path passes through.
struct PathSums {
  Nanos calls = 0, transfers = 0, reductions = 0;
};

PathSums sumPath(const Plan &plan, const Simulation &run,
                 const Analysis &analysis) {
  PathSums sums;
  for (const PathStep &step : analysis.criticalPath) {
    const Record &record = run.records[step.record];
    const Role &role = plan.roles[plan.roleOf(record.rank)];
    Nanos time = record.end - step.begin;
    switch (role.lanes[record.lane].instrs[record.instr].kind) {
    case InstrKind::Call:
    case InstrKind::Load:
      sums.calls += time;
      break;
    case InstrKind::Send:
    case InstrKind::Recv:
      sums.transfers += time;
      break;
    case InstrKind::AllReduce:
      sums.reductions += time;
      break;
    }
  }
  return sums;
}

std::string actionOf(const Plan &plan, const Record &record) {
  const Role &role = plan.roles[plan.roleOf(record.rank)];
  return actionText(plan, role, role.lanes[record.lane].instrs[record.instr]);
}

} // namespace

std::string printText(const Plan &plan, const Simulation &run,
                      const Analysis &analysis) {
  std::string text =
      fmt::format("step {}, bubble {}\n", formatNanos(run.makespan),
                  formatShare(analysis.bubbleShare()));
  PathSums path = sumPath(plan, run, analysis);
  text +=
      fmt::format("critical path of {} instructions: calls {}, transfers "
                  "{}, reductions {}\n",
                  analysis.criticalPath.size(), formatNanos(path.calls),
                  formatNanos(path.transfers), formatNanos(path.reductions));
  size_t shown = std::min(analysis.ranks.size(), kTextRanks);
  for (size_t rank = 0; rank < shown; ++rank) {
    const RankTimes &times = analysis.ranks[rank];
    const MemoryCurve &memory = analysis.memory[rank];
    Nanos all = times.busy + times.bubble + times.exposed;
    double share =
        all > 0 ? static_cast<double>(times.busy) / static_cast<double>(all)
                : 0;
    text += fmt::format(
        "rank {} ({}): busy {} ({}), {} in flight, peak {} at {}\n", rank,
        plan.roles[plan.roleOf(int32_t(rank))].name, formatNanos(times.busy),
        formatShare(share), run.peakInFlight[rank], formatBytes(memory.peak),
        formatNanos(memory.peakAt));
    text += fmt::format("  idle {}, of that {} for data on its way{}\n",
                        formatNanos(times.bubble + times.exposed),
                        formatNanos(times.exposed), idleText(times));
    if (times.slowed + times.delayed > 0)
      text +=
          fmt::format("  shared: calls {} longer (cores, memory, SMs), "
                      "data waited for {} later (ports, memory)\n",
                      formatNanos(times.slowed), formatNanos(times.delayed));
  }
  if (shown < analysis.ranks.size())
    text += fmt::format("and {} more ranks; '--format=json' has all\n",
                        analysis.ranks.size() - shown);
  return text;
}

std::string toJson(const Plan &plan, const Simulation &run,
                   const Analysis &analysis) {
  using Json = nlohmann::ordered_json;
  Json json;
  json["step_time_ns"] = run.makespan;
  json["bubble"] = analysis.bubbleShare();
  json["ranks"] = Json::array();
  for (size_t rank = 0; rank < analysis.ranks.size(); ++rank) {
    const RankTimes &times = analysis.ranks[rank];
    Json entry;
    entry["rank"] = rank;
    entry["role"] = plan.roles[plan.roleOf(int32_t(rank))].name;
    entry["busy_ns"] = times.busy;
    entry["bubble_ns"] = times.bubble;
    entry["exposed_ns"] = times.exposed;
    entry["slowed_ns"] = times.slowed;
    entry["delayed_ns"] = times.delayed;
    entry["in_flight"] = run.peakInFlight[rank];
    entry["idle"] = Json::array();
    for (const IdlePart &part : times.parts) {
      Json cause;
      cause["cause"] = nameOf(part.cause);
      if (part.stage >= 0)
        cause["stage"] = part.stage;
      cause["waiting_ns"] = part.waiting;
      cause["moving_ns"] = part.moving;
      cause["delayed_ns"] = part.delayed;
      entry["idle"].push_back(std::move(cause));
    }
    const MemoryCurve &memory = analysis.memory[rank];
    Json points = Json::array();
    for (const MemoryPoint &point : memory.points)
      points.push_back({point.time, point.bytes});
    entry["memory"] = {{"base_bytes", memory.base},
                       {"peak_bytes", memory.peak},
                       {"peak_at_ns", memory.peakAt},
                       {"curve", std::move(points)}};
    json["ranks"].push_back(std::move(entry));
  }
  json["critical_path"] = Json::array();
  for (const PathStep &step : analysis.criticalPath) {
    const Record &record = run.records[step.record];
    json["critical_path"].push_back({{"rank", record.rank},
                                     {"action", actionOf(plan, record)},
                                     {"begin_ns", step.begin},
                                     {"end_ns", record.end}});
  }
  // How far from critical each rank's instructions are at least.
  std::vector<Nanos> least(analysis.ranks.size(), run.makespan);
  for (size_t i = 0; i < run.records.size(); ++i)
    least[run.records[i].rank] =
        std::min(least[run.records[i].rank], analysis.slack[i]);
  for (size_t rank = 0; rank < least.size(); ++rank)
    json["ranks"][rank]["slack_ns"] = least[rank];
  return json.dump(1) + "\n";
}

} // namespace takt::rt
