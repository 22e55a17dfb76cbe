//===- in_flight.h - when activations are held ------------------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// A micro-batch of a stage is in flight from the start of its forward call to
// the end of the last call of its backward work.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "takt-rt/core/plan.h"

#include <vector>

namespace takt::rt {

enum class FlightEdge : uint8_t {
  None,
  Begin, ///< one more from the instruction's start
  End,   ///< one fewer from the instruction's end
};

/// The edge of each instruction, by lane of the role.
std::vector<std::vector<FlightEdge>> flightEdges(const Role &role);

} // namespace takt::rt
