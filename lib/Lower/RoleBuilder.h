//===- RoleBuilder.h - stages become a role of the plan ----------*- C++
//-*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Puts pools, procedures, lanes and waits of the stages of one role together.
//
// Where two neighbouring stages are of one role, the output of the first is the
// input of the second: one buffer, written by the one call and read by the
// other. Calls of a rank follow one another, so the order of the compute lane
// is all that protects it.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "MemoryPlan.h"

#include <map>
#include <tuple>

namespace takt {

/// Plan-level channels and groups by what they carry; -1: there is none.
struct ChannelTable {
  /// By boundary and value that crosses it; of a boundary within a role
  /// nothing.
  std::vector<std::vector<int32_t>> activation, gradient;
  /// (tie, from, to): first stages of the runs at its ends.
  std::map<std::array<int32_t, 3>, int32_t> tie;
  std::vector<std::vector<int32_t>> group; ///< by stage and bucket; or empty
};

/// A run of the compute lists of all roles in which every message is taken as
/// soon as it is made: when each action of a role has its turn.
struct Turns {
  /// By role, then place on the compute lane.
  std::vector<std::vector<int32_t>> ofLane;
  /// Of the call that makes a stage's output, or the gradient of its input, by
  /// stage and micro-batch.
  std::vector<std::vector<int32_t>> forward, backward;
};
Turns takeTurns(const LoweringProblem &problem);

/// Where each micro-batch's buffer of a pool lies, and what must have completed
/// before its slot may be written.
struct SlotPlan {
  int32_t count = 0;
  std::vector<uint16_t> slotOf;
  std::vector<std::vector<rt::Wait>> before; ///< by micro-batch
};

/// One stage of the role.
struct StagePart {
  int32_t index = 0; ///< of the stage
  Stage stage;
  MemoryPlan memory;
  /// Position of the action of each phase in the compute lane, by micro-batch.
  std::array<std::vector<int32_t>, kPhases> position;
  SlotPlan savedSlots, inputSlots, batchSlots, outputSlots, outputGradSlots,
      inputGradSlots;
  std::map<TensorRole, uint16_t> poolOf;
  /// Of each of the stage's parameters: its place in the role, and how many
  /// uses earlier stages of the role have.
  std::vector<int32_t> roleParam, earlierUses;
  /// Of profiled layers with parameters, by layer: what stands for them.
  std::map<int32_t, rt::BufferRef> weights, gradients, states;
  std::vector<rt::Wait> bucketDone;   ///< by bucket: its all-reduce
  std::vector<rt::BufferRef> buckets; ///< ranges of the pool of gradients
};

/// A parameter of the role.
struct RoleParamInfo {
  int32_t param = -1; ///< index into Graph::params
  int32_t owner = 0;  ///< the stage of its first use, which updates it
  int32_t uses = 0;
  bool trainable = true;
  int32_t firstLayer = -1;
  Bytes bytes = 0;
  int32_t tie = -1;            ///< index into LoweringProblem::ties
  bool tieAccumulator = false; ///< an earlier role holds an earlier use
};

class RoleBuilder {
public:
  /// With `turns`, buffers of received messages are as many as that run needs;
  /// without, as few as the role's own calls do.
  RoleBuilder(const LoweringProblem &problem, int32_t index,
              const ChannelTable &channels, const Turns *turns);
  rt::Role build(int32_t firstRank);

private:
  // Params.cpp
  void collectParams();
  void placeParams();
  void placeGradients(StagePart &part, Bytes &total);

  // Pools.cpp
  void makePools();
  void makePassingPools(StagePart &part);
  int32_t addPool(rt::PoolKind kind, std::string name, Bytes slotBytes,
                  int32_t count, std::vector<uint16_t> slotOf = {});
  void layOut();
  void measureLiveness();
  rt::BufferRef locate(const StagePart &part, const Operand &operand) const;
  rt::BufferRef locateTensor(const StagePart &part, int32_t tensor) const;

  // Slots.cpp
  void planSlots();
  void planHandover(StagePart &from, StagePart &to);
  void planLoads();
  SlotPlan assignSlots(const std::vector<int32_t> &begins,
                       const std::vector<int32_t> &ends,
                       const std::vector<int32_t> &order, int32_t extra,
                       std::vector<int32_t> &earlier) const;
  SlotPlan ownSlots(const StagePart &part, bool byBackward, int8_t untilPhase,
                    bool sent, int32_t extra) const;
  SlotPlan receivedSlots(const StagePart &part, bool byBackward,
                         int8_t untilPhase) const;
  std::vector<int32_t> givenBack(const StagePart &part, int8_t phase,
                                 int8_t untilPhase) const;

  // Procedures.cpp
  void makeProcedures();
  rt::Kernel kernelOf(const StagePart &part,
                      const AbstractKernel &kernel) const;
  rt::Procedure procedure(
      const StagePart &part, const char *name, rt::Phase phase,
      const std::vector<const std::vector<AbstractKernel> *> &parts) const;
  rt::Procedure pieceProcedure(const StagePart &part, ActionKind kind,
                               int32_t piece) const;
  rt::Procedure tieProcedure(const TieRun &run, int32_t tie) const;
  rt::Procedure updateProcedure(const StagePart &part) const;

  // Instructions.cpp
  void indexActions();
  std::vector<rt::Wait> tiedBuckets(const TieRun &run, int32_t tie) const;
  std::vector<rt::Wait> waitsOf(const CommAction &action);
  std::vector<uint16_t> channelsOf(const CommAction &action) const;
  /// Of a message the instruction of its first value.
  rt::Instr instrOf(const CommAction &action) const;
  void makeLanes();
  void makeEndpoints();

  StagePart &partOf(int32_t stage);
  const StagePart &partOf(int32_t stage) const;
  const StageInput &inputOf(const StagePart &part) const {
    return problem.stages[part.index];
  }
  /// Whether the boundary is between two stages of this role.
  bool isHandover(int32_t boundary) const;
  bool isMany() const { return parts.size() > 1; }
  /// The lane of transfers of a stage, or of the whole role (-1); -1: none.
  int32_t laneOf(rt::LaneKind kind, int32_t stage = -1) const;
  /// "Not before this action has completed".
  rt::Wait after(const CommAction &action) const;

  const LoweringProblem &problem;
  const Graph &graph;
  const RoleInput &input;
  const int32_t index;
  const ChannelTable &channels;
  const Turns *turns;
  std::vector<int32_t> roleOf; ///< by stage
  std::vector<StagePart> parts;
  std::vector<RoleParamInfo> params;
  rt::Role role;

  std::map<std::pair<rt::LaneKind, int32_t>, uint16_t> lanes;
  int32_t calls = 0; ///< compute actions before the sums and the updates
  using ActionKey = std::tuple<CommKind, int32_t, ActionKind, int32_t, int32_t,
                               int32_t, int32_t>;
  static ActionKey keyOf(const CommAction &action);
  std::map<ActionKey, rt::Wait> done;      ///< when an action has completed
  std::map<rt::PoolKind, uint16_t> poolOf; ///< of the role as a whole
  /// A buffer between two stages: the one that reads it, and by micro-batch
  /// the positions between which it lives.
  struct Handover {
    int32_t stage;
    TensorRole what;
    Bytes bytes;
    std::vector<int32_t> begins, ends;
  };
  std::vector<Handover> handovers;
  std::map<std::pair<int32_t, std::string>, uint16_t> procedureOf;
  Bytes tieBytes = 0; ///< accumulators that live in the workspace
};

} // namespace takt
