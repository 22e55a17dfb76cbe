//===- MemoryPlan.h - where a stage's tensors lie -----------------*- C++
//-*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Lifetimes on the timeline of one micro-batch, forward then backward:
//
//        forward            │ gap: other micro-batches run │    backward
//   x ──────────────────────┼──────────────────────────────┼───────┐ saved
//      t ─────┐             │                              │         temporary
//                           │                              │  dx ───────┐
//
// What crosses a gap lies in a slot that the micro-batch holds; everything else
// fits into the holes of that slot or into a workspace that all calls share.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "StageBuilder.h"

#include <array>

namespace takt {

constexpr int kPhases = 3; ///< forward, input gradient (or all of B), weights

/// First and last kernel that touches a tensor, by position on the timeline of
/// one micro-batch, and the phases they belong to. -1: before the first kernel
/// (received or loaded), or never.
struct Lifetime {
  int32_t first = -1, last = -1;
  int8_t firstPhase = -1, lastPhase = -1;
};

struct MemoryPlan {
  std::vector<Lifetime> lifetimes; ///< by tensor
  /// Of internal tensors: in the slot (saved) or in the workspace.
  std::vector<Bytes> offset;
  std::vector<bool> inWorkspace;
  Bytes savedBytes = 0;     ///< of one slot
  Bytes workspaceBytes = 0; ///< shared by all calls
  int8_t savedUntil = 0;    ///< last phase that reads a saved tensor
  /// Of internal tensors: most bytes live during each phase of a micro-batch,
  /// and bytes held after it.
  std::array<Bytes, kPhases> peak{}, held{};
};

MemoryPlan planMemory(const Stage &stage);

/// Last phase in which a stage needs the values, or the gradients, of a message
/// over one of its ends; at least the one in which they are made or taken. -1:
/// there is no such message.
int8_t lastPhase(const MemoryPlan &plan, const std::vector<Crossing> &end,
                 bool gradients);

} // namespace takt
