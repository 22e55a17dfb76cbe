//===- Faults.h - one fault in a correct plan -------------------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Each kind of fault changes one thing of a plan at random and says which
// instructions a report may blame for it.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "takt-rt/core/plan.h"
#include "takt-rt/core/proof.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace takt::test {

enum class Fault {
  Swap,         ///< two neighbours of a lane; waits keep their places
  Drop,         ///< one instruction gone
  Double,       ///< one instruction twice
  Early,        ///< one instruction moved forward; waits follow what they meant
  Shifted,      ///< likewise, and waits keep their places
  WrongChannel, ///< a transfer with another peer
  WrongSize,    ///< four bytes less at one end of a channel
  StaleSlot,    ///< a micro-batch in another slot of a pool
  Overlap,      ///< an operand of a kernel at another place
  NoWait,       ///< a wait for data taken away
  NoCredit,     ///< a wait for the reader of what is overwritten taken away
  ExtraWait,    ///< a wait for what comes later on another lane
};
constexpr int kFaults = 12;
const char *nameOf(Fault fault);

/// An instruction by its place.
struct Place {
  size_t role = 0, lane = 0, instr = 0;
};

struct Culprit {
  /// Of the broken plan: the instruction that was changed. Where one was taken
  /// away, those that wait for it, read its data or meet it in a message.
  std::vector<Place> places;
  std::string missing; ///< of an instruction taken away: its action
  std::string what;    ///< the fault in words
};

/// Puts a fault into the plan; nothing where it has no place for one.
std::optional<Culprit> breakPlan(rt::Plan &plan, Fault fault, uint32_t seed);

/// True if an end of the failure is one of the culprit's places, or the gap
/// that the missing action leaves.
bool blames(const rt::Plan &plan, const rt::ProofFailure &failure,
            const Culprit &culprit);

} // namespace takt::test
