//===- check.h - shared pieces of the structural check ----------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// A plan under check may hold anything: every number is looked at before it is
// used. Faults are collected up to a limit, so that a wholly damaged plan gives
// a report that can be read.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "takt-rt/core/plan.h"

#include <fmt/format.h>

#include <string>
#include <vector>

namespace takt::rt {

/// Sizes stay below this, so that sums of a few of them cannot overflow.
constexpr Bytes kMostBytes = Bytes(1) << 56;

/// An instruction that a fault is about; all three are in range.
struct FaultPlace {
  size_t role = 0, lane = 0, instr = 0;
};

class Faults {
public:
  template <typename... Args>
  void add(const std::string &where, fmt::format_string<Args...> text,
           Args &&...args) {
    if (!full())
      list.push_back(where + fmt::format(text, std::forward<Args>(args)...));
  }
  bool full() const { return list.size() >= 50; }
  /// Names an instruction for the report; those of the first fault are kept.
  void blame(FaultPlace place) {
    if (list.size() <= 1)
      places.push_back(place);
  }
  std::vector<std::string> list;
  std::vector<FaultPlace> places;
};

/// The name in single quotes, shortened, with anything unprintable replaced.
std::string quoted(const std::string &name);

/// Well-formed UTF-8 without control characters.
bool isText(const std::string &text);

/// Checks one role on its own: pools, procedures, lanes, endpoints, parameters.
/// `plan` has passed the checks of its training, channels and groups.
void checkRole(const Plan &plan, size_t index, Faults &faults);
void checkLanes(const Plan &plan, size_t index, Faults &faults);

/// `checkStructure` with the instructions that the first fault is about.
Faults findFaults(const Plan &plan);

/// Throws `Error(BadInput)` with the first fault and the number of the others.
void requireSound(const Plan &plan, const std::string &name);

} // namespace takt::rt
