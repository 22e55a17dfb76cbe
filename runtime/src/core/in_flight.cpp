//===- in_flight.cpp - when activations are held ----------------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Backward work is one call (B), two (I, then W), or only one of the two when
// part of a stage is frozen; the last one of a micro-batch ends the flight.
//
//===----------------------------------------------------------------------===//
#include "takt-rt/core/in_flight.h"

#include <map>
#include <utility>

namespace takt::rt {

std::vector<std::vector<FlightEdge>> flightEdges(const Role &role) {
  std::vector<std::vector<FlightEdge>> edges(role.lanes.size());
  std::map<std::pair<int32_t, int32_t>, FlightEdge *> lastBackward;
  std::map<std::pair<int32_t, int32_t>, FlightEdge *> forward;
  for (size_t l = 0; l < role.lanes.size(); ++l) {
    const Lane &lane = role.lanes[l];
    edges[l].resize(lane.instrs.size(), FlightEdge::None);
    for (size_t i = 0; i < lane.instrs.size(); ++i) {
      const Instr &instr = lane.instrs[i];
      if (instr.kind != InstrKind::Call || instr.microBatch < 0)
        continue;
      const Procedure &procedure = role.procedures[instr.target];
      auto key = std::make_pair(procedure.stage, instr.microBatch);
      if (procedure.phase == Phase::Forward)
        forward[key] = &edges[l][i];
      else if (procedure.phase != Phase::Update)
        lastBackward[key] = &edges[l][i];
    }
  }
  // A forward without backward work (inference) holds nothing.
  for (auto &[key, edge] : forward) {
    auto backward = lastBackward.find(key);
    if (backward == lastBackward.end())
      continue;
    *edge = FlightEdge::Begin;
    *backward->second = FlightEdge::End;
  }
  return edges;
}

} // namespace takt::rt
