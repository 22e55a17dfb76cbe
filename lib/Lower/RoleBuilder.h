//===- RoleBuilder.h - a stage becomes a role of the plan --------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Puts pools, procedures, lanes and waits of one stage together.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "MemoryPlan.h"

#include <map>

namespace takt {

/// Plan-level channels and groups by what they carry; -1: there is none.
struct ChannelTable {
  std::vector<int32_t> activation, gradient; ///< by boundary
  std::map<std::array<int32_t, 3>, int32_t> tie; ///< (tie, from, to)
  std::vector<std::vector<int32_t>> group; ///< by stage and bucket; or empty
};

class RoleBuilder {
public:
  RoleBuilder(const LoweringProblem &problem, int32_t index,
              const ChannelTable &channels);
  rt::Role build(int32_t firstRank);

private:
  /// Where each micro-batch's buffer of a pool lies, and what must have
  /// completed before its slot may be written.
  struct SlotPlan {
    int32_t count = 0;
    std::vector<uint16_t> slotOf;
    std::vector<std::vector<rt::Wait>> before; ///< by micro-batch
  };

  // Pools.cpp
  void makePools();
  void placeParams();
  void placeGradients(Bytes &total);
  int32_t addPool(rt::PoolKind kind, const char *name, Bytes slotBytes,
                  int32_t count, std::vector<uint16_t> slotOf = {});
  void layOut();
  void measureLiveness();
  rt::BufferRef locate(const Operand &operand) const;
  rt::BufferRef locateTensor(int32_t tensor) const;

  // Instructions.cpp
  void indexActions();
  void planSlots();
  SlotPlan assignSlots(bool byBackward, int8_t untilPhase, bool sent,
                       int32_t extra) const;
  int32_t positionOf(int8_t phase, int32_t microBatch) const;
  void makeProcedures();
  rt::Procedure procedure(const char *name, rt::Phase phase,
                          const std::vector<const std::vector<AbstractKernel> *>
                              &parts) const;
  rt::Procedure pieceProcedure(ActionKind kind, int32_t part) const;
  rt::Procedure tieProcedure(int32_t tie) const;
  rt::Procedure updateProcedure() const;
  std::vector<rt::Wait> tiedBuckets(int32_t tie) const;
  void makeLanes();
  void makeEndpoints();

  const LoweringProblem &problem;
  const Graph &graph;
  const StageInput &input;
  int32_t index;
  const ChannelTable &channels;
  Stage stage;
  MemoryPlan memory;
  rt::Role role;

  std::map<rt::LaneKind, uint16_t> laneOf;
  /// Position of the action of each phase in the compute lane, by micro-batch.
  std::array<std::vector<int32_t>, kPhases> position;
  std::array<bool, kPhases> hasPhase{};
  int32_t calls = 0; ///< compute actions before the sums and the update
  std::map<std::string, uint32_t> countAfter; ///< action text -> lane count
  SlotPlan savedSlots, inputSlots, batchSlots, outputSlots, outputGradSlots,
      inputGradSlots;
  std::map<rt::PoolKind, uint16_t> poolOf;
  std::map<std::string, uint16_t> procedureOf;
  std::vector<rt::Wait> bucketDone;   ///< by bucket: its all-reduce
  std::vector<rt::BufferRef> buckets; ///< ranges of the pool of gradients
  Bytes tieBytes = 0; ///< accumulators that live in the workspace
};

} // namespace takt
