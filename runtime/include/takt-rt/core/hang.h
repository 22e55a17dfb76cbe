//===- hang.h - who waits for whom ------------------------------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// A run that no longer moves is explained from the lanes' counts alone, so that
// the simulator, a hung run in one process and the recordings of one that is
// over give the same report.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "takt-rt/core/interpreter.h"

#include <string>
#include <vector>

namespace takt::rt {

/// The lanes of a rank in the order of its role; none: nothing is known of it.
using RankProgress = std::vector<LaneProgress>;

/// One lane that does not move.
struct HangLink {
  int32_t rank = 0;
  int32_t lane = 0;
  uint32_t instr = 0; ///< under way, or next
  std::string text;   ///< "rank 1, lane 'recv' at '1RECV_F0' waits for ..."
};

struct HangChain {
  std::vector<HangLink> links; ///< each waits for the next
  bool isCircle = false;       ///< the last waits for the first
  /// A rank of which nothing is known that the last waits for; -1: none.
  int32_t unknown = -1;
};

/// From a lane of a rank that is not finished to an end or until it closes a
/// circle; of a circle, only the circle. `ranks[r]` is the progress of rank r.
HangChain followHang(const Plan &plan, const std::vector<RankProgress> &ranks,
                     int32_t rank, int32_t lane);

/// The lane by which a rank is best followed: of those that are not finished
/// the computing one, else the first; -1 when all are finished.
int32_t heldLane(const Role &role, const RankProgress &rank);

/// The chain from the first rank that is not finished, in one line. Empty if
/// all finished. `ranks[r]` is the interpreter of rank r.
std::string explainHang(const Plan &plan,
                        const std::vector<const Interpreter *> &ranks);

} // namespace takt::rt
