//===- why_hang.h - why a run stopped ---------------------------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Joins the recordings of a run with its plan. Of the ranks that did not get
// through the earliest step that some rank did not end, one or more are at
// fault:
//
//   1. those that left word of an error of their own;
//   2. else those that left no word while others did: killed, stopped or cut
//   off;
//   3. else those to which the chains of who waits for whom lead.
//
// Keys of the JSON object; they stay as they are, and new ones are appended:
//
//   model, run, plan_hash, ranks
//   step               where it stopped, counted from 1; null without a
//   recording ended_in_order     every rank did what was asked for culprits[]
//   rank, role, why, text, lane, instruction, action, line
//                      (place in the plan's text form; the last four null when
//                      it stands between two steps), message, silent_ns
//   waiting[]          rank, chain[]: rank, lane, instruction, action, text;
//                      culprit: where the chain leads (null: a circle or
//                      nowhere)
//   standing[]         rank, role, known, step, in_step, end ("none",
//   "in_order",
//                      "failed"), exit_code, message, pid, host, alive (null:
//                      not known), lanes[]: lane, instruction, action, line,
//                      under way
//   stragglers[]       rank, busy_ns, expected_ns, ratio
//   faults[]           recordings that are missing, damaged or of another run
//
//===----------------------------------------------------------------------===//
#pragma once

#include "takt-rt/core/plan.h"
#include "takt-rt/trace/flight.h"

#include <optional>
#include <string>
#include <vector>

namespace takt::rt {

/// An instruction of a rank.
struct PlanPlace {
  int32_t lane = 0;
  std::string laneName;
  uint32_t instr = 0;
  std::string action; ///< "2F0"
  int64_t line = 0;   ///< in the plan's text form, from 1
};

struct Culprit {
  int32_t rank = 0;
  std::string why;                ///< "failed", "silent", "held up"
  std::string text;               ///< one sentence
  std::optional<PlanPlace> place; ///< none between two steps
  std::string message;            ///< its own words
  Nanos silent = 0; ///< from its last event to the last one of any rank
};

struct WaitingRank {
  int32_t rank = 0;
  HangChain chain;
  int32_t culprit = -1; ///< rank that the chain leads to
};

/// A rank as it stood in the end.
struct Standing {
  int32_t rank = 0;
  bool known = false;
  const Flight *flight = nullptr; ///< null unless known
  std::optional<bool> alive;      ///< whether its process still runs, if known
  bool isStopped = false;         ///< by a signal, and not gone
  std::vector<PlanPlace> underWay;
};

/// A rank that takes longer than the others for what it has to do.
struct Straggler {
  int32_t rank = 0;
  Nanos busy = 0;     ///< median time in calls of a step
  Nanos expected = 0; ///< by the plan, at the pace of the median rank
  double ratio() const { return double(busy) / double(expected); }
};

/// Ranks that take at least `factor` times what the others' pace lets expect.
/// `busy[r]` are times in calls of the last steps of rank r; ranks without any
/// and with none expected are left out, and so are differences below a
/// millisecond.
std::vector<Straggler>
findStragglers(const Plan &plan, const std::vector<std::vector<Nanos>> &busy,
               double factor = 2);

struct WhyHang {
  std::string model, run;
  std::string planHash;
  int32_t ranks = 0;
  int64_t step = -1; ///< from 0; -1: no recording
  bool endedInOrder = false;
  std::vector<Culprit> culprits;
  std::vector<WaitingRank> waiting;
  std::vector<Standing> standing; ///< by rank
  std::vector<Straggler> stragglers;
  std::vector<std::string> faults;
};

/// Of a process that a recording names.
struct ProcessState {
  bool exists = false;
  bool isStopped = false;
};
using ProcessProbe = std::optional<ProcessState> (*)(const FlightInfo &info);

/// Of this machine; nothing for a recording of another.
std::optional<ProcessState> processState(const FlightInfo &info);
/// The state of a process of this machine as a letter of proc(5), 'T' for one
/// that a signal stopped; ' ' of one that is gone.
char processLetter(int64_t pid);

/// The folder must outlive the result. `isAlive` tells whether a process of
/// this host runs: see `processState`. Throws `Error` (BadInput) when no
/// recording is of the plan.
WhyHang explainFlights(const Plan &plan, const FlightFolder &folder,
                       ProcessProbe probe = processState);

std::string printText(const Plan &plan, const WhyHang &report);
std::string toJson(const Plan &plan, const WhyHang &report);

} // namespace takt::rt
