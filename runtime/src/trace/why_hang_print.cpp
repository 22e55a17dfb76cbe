//===- why_hang_print.cpp - why a run stopped, for people and scripts -----===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Everything of the text is in the JSON.
//
//===----------------------------------------------------------------------===//

#include "takt-rt/core/units.h"
#include "takt-rt/trace/why_hang.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>

namespace takt::rt {

using nlohmann::ordered_json;

static const char *nameOf(FlightEnd end) {
  switch (end) {
  case FlightEnd::None:
    return "none";
  case FlightEnd::InOrder:
    return "in_order";
  case FlightEnd::Failed:
    return "failed";
  }
  return "none";
}

//===----------------------------------------------------------------------===//
// Text
//===----------------------------------------------------------------------===//

static std::string printWaiting(const WhyHang &report) {
  std::vector<int32_t> ranks;
  const WaitingRank *longest = nullptr;
  for (const WaitingRank &waiting : report.waiting) {
    bool isCulprit = std::any_of(
        report.culprits.begin(), report.culprits.end(),
        [&](const Culprit &culprit) { return culprit.rank == waiting.rank; });
    if (isCulprit && !waiting.chain.isCircle)
      continue;
    ranks.push_back(waiting.rank);
    if (!longest || waiting.chain.links.size() > longest->chain.links.size())
      longest = &waiting;
  }
  if (!longest)
    return "";
  std::string text =
      fmt::format("\nheld up: rank{} {}; the longest chain:\n",
                  ranks.size() > 1 ? "s" : "", formatRanges(ranks));
  for (const HangLink &link : longest->chain.links)
    text += fmt::format("  {}\n", link.text);
  if (longest->chain.isCircle)
    text += "  which closes the circle\n";
  return text;
}

static std::string printStanding(const Standing &standing, const Plan &plan) {
  const std::string &role = plan.roles[plan.roleOf(standing.rank)].name;
  if (!standing.known)
    return fmt::format("  {:>4}  {:<10}  no recording\n", standing.rank, role);
  const Flight &flight = *standing.flight;
  std::string where;
  for (const PlanPlace &place : standing.underWay)
    where += fmt::format("{}'{}' of {}", where.empty() ? "at " : ", ",
                         place.action, place.laneName);
  std::string end;
  if (flight.end == FlightEnd::Failed)
    end = fmt::format("; code {}", flight.exitCode);
  else if (flight.end == FlightEnd::InOrder)
    end = "; ended in order";
  else if (standing.isStopped)
    end = "; its process is stopped";
  else if (standing.alive)
    end = *standing.alive ? "; its process runs" : "; its process is gone";
  return fmt::format("  {:>4}  {:<10}  step {} {}{}{}\n", standing.rank, role,
                     flight.step + 1, flight.inStep ? "under way" : "ended",
                     where.empty() ? "" : ": " + where, end);
}

/// What is said of a culprit already is no note.
static std::string printFaults(const WhyHang &report) {
  std::string text;
  for (const std::string &fault : report.faults)
    if (std::none_of(
            report.culprits.begin(), report.culprits.end(),
            [&](const Culprit &culprit) { return culprit.text == fault; }))
      text += fmt::format("{}note: {}\n", text.empty() ? "\n" : "", fault);
  return text;
}

std::string printText(const Plan &plan, const WhyHang &report) {
  std::string text = fmt::format("model {} on {} ranks, plan {}\n\n",
                                 report.model, report.ranks, report.planHash);
  if (report.endedInOrder)
    text +=
        fmt::format("every rank ended in order after step {}\n", report.step);
  else if (report.culprits.empty())
    text += fmt::format("every rank with a recording is through step {}\n",
                        report.step);
  for (const Culprit &culprit : report.culprits) {
    text += culprit.text + '\n';
    if (culprit.silent > 0)
      text += fmt::format("  it fell silent {} before the last rank\n",
                          formatNanos(culprit.silent));
  }
  text += printWaiting(report);
  text += "\nranks\n";
  for (const Standing &standing : report.standing)
    text += printStanding(standing, plan);
  for (const Straggler &slow : report.stragglers)
    text += fmt::format("\nrank {} is a straggler: {} in calls of a step where "
                        "the pace of the others makes {}\n",
                        slow.rank, formatNanos(slow.busy),
                        formatNanos(slow.expected));
  return text + printFaults(report);
}

//===----------------------------------------------------------------------===//
// JSON
//===----------------------------------------------------------------------===//

static void addPlace(ordered_json &object,
                     const std::optional<PlanPlace> &place) {
  for (const char *key : {"lane", "instruction", "action", "line"})
    object[key] = nullptr;
  if (!place)
    return;
  object["lane"] = place->laneName;
  object["instruction"] = place->instr;
  object["action"] = place->action;
  object["line"] = place->line;
}

static ordered_json waitingJson(const Plan &plan, const WaitingRank &waiting) {
  ordered_json chain = ordered_json::array();
  for (const HangLink &link : waiting.chain.links) {
    const Role &role = plan.roles[plan.roleOf(link.rank)];
    const Lane &lane = role.lanes[link.lane];
    chain.push_back(
        {{"rank", link.rank},
         {"lane", lane.name},
         {"instruction", link.instr},
         {"action", actionText(plan, role, lane.instrs[link.instr])},
         {"text", link.text}});
  }
  ordered_json object = {{"rank", waiting.rank}, {"chain", chain}};
  object["culprit"] = nullptr;
  if (waiting.culprit >= 0)
    object["culprit"] = waiting.culprit;
  return object;
}

static ordered_json standingJson(const Plan &plan, const Standing &standing) {
  ordered_json object = {{"rank", standing.rank},
                         {"role", plan.roles[plan.roleOf(standing.rank)].name},
                         {"known", standing.known}};
  if (!standing.known)
    return object;
  const Flight &flight = *standing.flight;
  object["step"] = flight.step + 1;
  object["in_step"] = flight.inStep;
  object["end"] = nameOf(flight.end);
  object["exit_code"] = flight.exitCode;
  object["message"] = flight.message;
  object["pid"] = flight.info.pid;
  object["host"] = flight.info.host;
  object["alive"] = nullptr;
  if (standing.alive)
    object["alive"] = *standing.alive;
  object["lanes"] = ordered_json::array();
  for (const PlanPlace &place : standing.underWay) {
    ordered_json lane;
    addPlace(lane, place);
    object["lanes"].push_back(lane);
  }
  return object;
}

std::string toJson(const Plan &plan, const WhyHang &report) {
  ordered_json object;
  object["model"] = report.model;
  object["run"] = report.run;
  object["plan_hash"] = report.planHash;
  object["ranks"] = report.ranks;
  object["step"] = report.step + 1;
  object["ended_in_order"] = report.endedInOrder;
  for (const char *key :
       {"culprits", "waiting", "standing", "stragglers", "faults"})
    object[key] = ordered_json::array();
  for (const Culprit &culprit : report.culprits) {
    ordered_json item = {{"rank", culprit.rank},
                         {"role", plan.roles[plan.roleOf(culprit.rank)].name},
                         {"why", culprit.why},
                         {"text", culprit.text}};
    addPlace(item, culprit.place);
    item["message"] = culprit.message;
    item["silent_ns"] = culprit.silent;
    object["culprits"].push_back(item);
  }
  for (const WaitingRank &waiting : report.waiting)
    object["waiting"].push_back(waitingJson(plan, waiting));
  for (const Standing &standing : report.standing)
    object["standing"].push_back(standingJson(plan, standing));
  for (const Straggler &slow : report.stragglers)
    object["stragglers"].push_back({{"rank", slow.rank},
                                    {"busy_ns", slow.busy},
                                    {"expected_ns", slow.expected},
                                    {"ratio", slow.ratio()}});
  for (const std::string &fault : report.faults)
    object["faults"].push_back(fault);
  return object.dump(2, ' ', false, ordered_json::error_handler_t::replace) +
         '\n';
}

} // namespace takt::rt
