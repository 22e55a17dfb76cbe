//===- why_hang.cpp - why a run stopped -----------------------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Recordings may be of different steps: a rank that ended the step looked at
// counts as through it, one that has not begun it as standing before its first
// instruction.
//
//===----------------------------------------------------------------------===//

#include "takt-rt/trace/why_hang.h"

#include "takt-rt/core/error.h"
#include "takt-rt/core/file.h"
#include "takt-rt/core/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <sstream>

namespace takt::rt {

namespace {

/// Lines of instructions in the text form: lane l of role r begins at [r][l].
std::vector<std::vector<int64_t>> laneLines(const Plan &plan) {
  std::vector<std::vector<int64_t>> lines;
  std::istringstream text(toText(plan));
  int64_t number = 0;
  for (std::string line; std::getline(text, line);) {
    ++number;
    if (line.rfind("role ", 0) == 0)
      lines.emplace_back();
    else if (line.rfind("  lane ", 0) == 0 && !lines.empty())
      lines.back().push_back(number + 1);
  }
  return lines;
}

class Detective {
public:
  Detective(const Plan &plan, const FlightFolder &folder, ProcessProbe probe)
      : plan(plan), folder(folder), probe(probe), lines(laneLines(plan)) {}
  WhyHang explain();

private:
  const Role &role(int32_t rank) const { return plan.roles[plan.roleOf(rank)]; }
  int64_t nextStep(const Flight &flight) const {
    return flight.inStep ? flight.step : flight.step + 1;
  }
  void chooseRun();
  bool suits(const Flight &flight);
  void stand();
  void findStep();
  PlanPlace place(int32_t rank, int32_t lane, uint32_t instr) const;
  std::optional<PlanPlace> heldPlace(int32_t rank) const;
  bool isThrough(int32_t rank) const;
  void follow();
  int32_t endOf(const HangChain &chain) const;
  void accuse();
  template <typename Is>
  std::vector<int32_t> failedWith(Is is) const;
  std::vector<int32_t> withoutWord() const;
  std::vector<int32_t> atEndsOfChains() const;
  void add(int32_t rank, const std::string &why);
  std::string sentence(const Culprit &culprit) const;
  Nanos lastSeen(const Flight &flight) const;

  const Plan &plan;
  const FlightFolder &folder;
  ProcessProbe probe;
  std::vector<std::vector<int64_t>> lines;
  WhyHang report;
  std::vector<RankProgress> progress; ///< in the step looked at
};

PlanPlace Detective::place(int32_t rank, int32_t lane, uint32_t instr) const {
  int32_t index = plan.roleOf(rank);
  const Lane &code = role(rank).lanes[lane];
  return {lane, code.name, instr,
          actionText(plan, role(rank), code.instrs[instr]),
          lines[index][lane] + int64_t(instr)};
}

//===----------------------------------------------------------------------===//
// What there is
//===----------------------------------------------------------------------===//

/// Whether a recording is of this plan; otherwise says why not.
bool Detective::suits(const Flight &flight) {
  const FlightInfo &info = flight.info;
  auto fault = [&](const std::string &why) {
    report.faults.push_back(fmt::format("'{}' {}", flight.file, why));
    return false;
  };
  if (info.run != report.run)
    return fault("is of another run, which began before");
  if (info.planHash != planHash(plan))
    return fault(fmt::format("is of the plan {}, this one is {}",
                             planHashText(info.planHash), report.planHash));
  if (info.ranks != plan.numRanks() || info.rank >= plan.numRanks())
    return fault(fmt::format("is of {} ranks, the plan has {}", info.ranks,
                             plan.numRanks()));
  const Role &own = role(info.rank);
  bool fits = flight.lanes.size() == own.lanes.size();
  for (size_t lane = 0; fits && lane < own.lanes.size(); ++lane)
    fits =
        flight.lanes[lane].completed + (flight.lanes[lane].running ? 1 : 0) <=
        own.lanes[lane].instrs.size();
  if (!fits)
    return fault("is damaged: its lanes do not fit the plan");
  if (flight.damaged > 0)
    report.faults.push_back(
        fmt::format("'{}' has {} damaged events", flight.file, flight.damaged));
  return true;
}

void Detective::chooseRun() {
  report.planHash = planHashText(planHash(plan));
  report.ranks = plan.numRanks();
  report.model = plan.model;
  report.faults = folder.faults;
  const Flight *newest = nullptr;
  for (const Flight &flight : folder.flights)
    if (!newest || flight.info.started > newest->info.started)
      newest = &flight;
  if (newest)
    report.run = newest->info.run;
  report.standing.resize(plan.numRanks());
  size_t known = 0;
  for (int32_t rank = 0; rank < plan.numRanks(); ++rank)
    report.standing[rank].rank = rank;
  for (const Flight &flight : folder.flights)
    if (suits(flight)) {
      report.standing[flight.info.rank].known = true;
      report.standing[flight.info.rank].flight = &flight;
      ++known;
    }
  if (known == 0)
    throw Error(report.faults.empty()
                    ? "there are no recordings ('flight.rankN.bin')"
                    : "no recording can be used: " + report.faults.front());
  for (const Standing &standing : report.standing)
    if (!standing.known)
      report.faults.push_back(
          fmt::format("rank {} left no recording", standing.rank));
}

void Detective::stand() {
  std::vector<std::vector<Nanos>> busy(plan.numRanks());
  for (Standing &standing : report.standing) {
    if (!standing.known)
      continue;
    const Flight &flight = *standing.flight;
    busy[standing.rank] = flight.busy;
    if (std::optional<ProcessState> state = probe(flight.info)) {
      standing.alive = state->exists;
      standing.isStopped = state->isStopped;
    }
    if (flight.inStep)
      for (size_t lane = 0; lane < flight.lanes.size(); ++lane)
        if (flight.lanes[lane].running)
          standing.underWay.push_back(place(standing.rank, int32_t(lane),
                                            flight.lanes[lane].completed));
  }
  report.stragglers = findStragglers(plan, busy);
}

void Detective::findStep() {
  report.endedInOrder = true;
  report.step = -1;
  for (const Standing &standing : report.standing) {
    if (!standing.known) {
      report.endedInOrder = false;
      continue;
    }
    report.endedInOrder &= standing.flight->end == FlightEnd::InOrder;
    int64_t next = nextStep(*standing.flight);
    report.step = report.step < 0 ? next : std::min(report.step, next);
  }
  for (const Standing &standing : report.standing) {
    progress.emplace_back();
    if (!standing.known)
      continue;
    const Flight &flight = *standing.flight;
    RankProgress &own = progress.back();
    own.resize(role(standing.rank).lanes.size());
    if (nextStep(flight) > report.step)
      for (size_t lane = 0; lane < own.size(); ++lane)
        own[lane].completed =
            uint32_t(role(standing.rank).lanes[lane].instrs.size());
    else if (flight.inStep)
      own = flight.lanes;
  }
}

bool Detective::isThrough(int32_t rank) const {
  return heldLane(role(rank), progress[rank]) < 0;
}

/// Where a rank stands: of its lanes the one that the others of it wait for.
std::optional<PlanPlace> Detective::heldPlace(int32_t rank) const {
  const RankProgress &own = progress[rank];
  if (own.empty())
    return std::nullopt;
  const Flight &flight = *report.standing[rank].flight;
  int32_t held = heldLane(role(rank), own);
  if (!flight.inStep || flight.step != report.step || held < 0)
    return std::nullopt;
  for (const HangLink &link : followHang(plan, progress, rank, held).links) {
    if (link.rank != rank)
      break;
    held = link.lane;
  }
  return place(rank, held, own[held].completed);
}

//===----------------------------------------------------------------------===//
// Who waits for whom
//===----------------------------------------------------------------------===//

int32_t Detective::endOf(const HangChain &chain) const {
  if (chain.isCircle || chain.links.empty())
    return -1;
  return chain.unknown >= 0 ? chain.unknown : chain.links.back().rank;
}

void Detective::follow() {
  bool anyBegan = std::any_of(report.standing.begin(), report.standing.end(),
                              [&](const Standing &standing) {
                                return standing.known &&
                                       standing.flight->inStep &&
                                       standing.flight->step == report.step;
                              });
  if (report.endedInOrder || !anyBegan)
    return;
  for (const Standing &standing : report.standing) {
    if (!standing.known || isThrough(standing.rank))
      continue;
    HangChain chain =
        followHang(plan, progress, standing.rank,
                   heldLane(role(standing.rank), progress[standing.rank]));
    int32_t end = endOf(chain);
    report.waiting.push_back({standing.rank, std::move(chain), end});
  }
}

//===----------------------------------------------------------------------===//
// Whose fault it is
//===----------------------------------------------------------------------===//

/// Codes by which a rank says that it suffered from another.
static bool isSecondary(int exitCode) {
  return exitCode == int(ExitCode::Communication) ||
         exitCode == int(ExitCode::Timeout) ||
         exitCode == int(ExitCode::PeerFailed);
}

template <typename Is>
std::vector<int32_t> Detective::failedWith(Is is) const {
  std::vector<int32_t> found;
  for (const Standing &standing : report.standing)
    if (standing.known && standing.flight->end == FlightEnd::Failed &&
        is(standing.flight->exitCode))
      found.push_back(standing.rank);
  return found;
}

std::vector<int32_t> Detective::withoutWord() const {
  std::vector<int32_t> found;
  size_t others = 0;
  for (const Standing &standing : report.standing) {
    if (!standing.known)
      continue;
    bool works = standing.alive.value_or(false) && !standing.isStopped;
    if (standing.flight->end == FlightEnd::None && !works)
      found.push_back(standing.rank);
    else
      ++others;
  }
  // All of them, as when the threads of one process are killed, is no answer.
  return others > 0 ? found : std::vector<int32_t>();
}

std::vector<int32_t> Detective::atEndsOfChains() const {
  // Between two steps nobody waits yet: who is missing may not have ended one.
  if (report.waiting.empty()) {
    std::vector<int32_t> missing;
    for (const Standing &standing : report.standing)
      if (!standing.known)
        missing.push_back(standing.rank);
    return missing;
  }
  std::map<int32_t, size_t> votes;
  for (const WaitingRank &waiting : report.waiting) {
    if (waiting.culprit >= 0)
      ++votes[waiting.culprit];
    for (const HangLink &link : waiting.chain.links)
      if (waiting.chain.isCircle)
        ++votes[link.rank];
  }
  size_t most = 0;
  for (const auto &[rank, count] : votes)
    most = std::max(most, count);
  std::vector<int32_t> found;
  for (const auto &[rank, count] : votes)
    if (count == most)
      found.push_back(rank);
  return found;
}

Nanos Detective::lastSeen(const Flight &flight) const {
  return flight.info.started +
         (flight.events.empty() ? 0 : flight.events.back().time);
}

std::string Detective::sentence(const Culprit &culprit) const {
  const Standing &standing = report.standing[culprit.rank];
  if (!standing.known)
    return fmt::format("rank {} left no recording", culprit.rank);
  std::string text =
      fmt::format("rank {} ({}) ", culprit.rank, role(culprit.rank).name);
  text += culprit.place
              ? fmt::format("stopped in step {} at '{}' (lane '{}', "
                            "instruction {}, plan line {})",
                            report.step + 1, culprit.place->action,
                            culprit.place->laneName, culprit.place->instr + 1,
                            culprit.place->line)
              : fmt::format("stopped before step {}", report.step + 1);
  const FlightInfo &info = standing.flight->info;
  std::string process = fmt::format("process {} on '{}'", info.pid, info.host);
  if (culprit.why == "failed")
    return text + fmt::format(": it failed with code {}: {}",
                              standing.flight->exitCode, culprit.message);
  if (standing.isStopped)
    return text + fmt::format(": {} is stopped by a signal", process);
  if (culprit.why != "silent")
    return text;
  return text + (standing.alive
                     ? fmt::format(": {} is gone without a word", process)
                     : fmt::format(": {} left no word", process));
}

void Detective::add(int32_t rank, const std::string &why) {
  Culprit culprit;
  culprit.rank = rank;
  culprit.why = why;
  culprit.place = heldPlace(rank);
  Nanos last = 0;
  for (const Standing &standing : report.standing)
    if (standing.known)
      last = std::max(last, lastSeen(*standing.flight));
  if (const Flight *flight = report.standing[rank].flight) {
    culprit.message = flight->message;
    culprit.silent = last - lastSeen(*flight);
  }
  culprit.text = sentence(culprit);
  report.culprits.push_back(std::move(culprit));
}

void Detective::accuse() {
  if (report.endedInOrder)
    return;
  std::vector<int32_t> found =
      failedWith([](int code) { return !isSecondary(code); });
  const char *why = "failed";
  if (found.empty()) {
    found = withoutWord();
    why = "silent";
  }
  // Its message names both ends of the connection that was lost or damaged.
  if (found.empty()) {
    found = failedWith(
        [](int code) { return code == int(ExitCode::Communication); });
    why = "failed";
  }
  if (found.empty()) {
    found = atEndsOfChains();
    why = "held up";
  }
  // Between two steps nobody's instruction waits: only words are left, of who
  // waited for whom in vain.
  if (found.empty()) {
    found = failedWith([](int code) { return code == int(ExitCode::Timeout); });
    why = "failed";
  }
  for (int32_t rank : found)
    add(rank, why);
  // Of several that fell silent, the first is the more likely cause.
  std::stable_sort(
      report.culprits.begin(), report.culprits.end(),
      [](const Culprit &a, const Culprit &b) { return a.silent > b.silent; });
  // A chain need not end where it is broken: it may pass through.
  for (WaitingRank &waiting : report.waiting)
    for (const HangLink &link : waiting.chain.links)
      if (std::find(found.begin(), found.end(), link.rank) != found.end()) {
        waiting.culprit = link.rank;
        break;
      }
}

WhyHang Detective::explain() {
  chooseRun();
  stand();
  findStep();
  follow();
  accuse();
  return std::move(report);
}

} // namespace

WhyHang explainFlights(const Plan &plan, const FlightFolder &folder,
                       ProcessProbe probe) {
  return Detective(plan, folder, probe).explain();
}

} // namespace takt::rt
