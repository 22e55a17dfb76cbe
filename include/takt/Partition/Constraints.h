//===- Constraints.h - side constraints on stage assignment ------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// What users demand of the stages beyond a good time. On a chain all of it can
// be said in the problem itself (`constrain`), so the exact solver keeps it.
// Where nothing keeps all of it, `explainClash` finds which demands contradict
// each other and the cheapest one to give up or loosen.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "takt/Partition/Problem.h"
#include "takt/Solver/Solver.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace takt {

enum class ConstraintKind : uint8_t {
  KeepTogether,  ///< one stage holds all layers named
  KeepApart,     ///< no stage holds layers of two of the names
  NoCutAfter,    ///< no stage ends after the layer
  NoCutBefore,   ///< no stage begins with the layer
  Pin,           ///< the layer lies in stage `number`
  Stages,        ///< exactly `number` stages
  MaxStages,     ///< at most `number` stages
  HeadroomBytes, ///< `number` bytes of every device stay free
  HeadroomPpm,   ///< `number` millionths of every device's memory stay free
};

/// "keep_together", ..., "headroom_ppm": the word in IR.
const char *constraintKindName(ConstraintKind kind);
std::optional<ConstraintKind> parseConstraintKind(const std::string &name);

/// Segments [begin, end).
struct SegmentRange {
  int64_t begin = 0, end = 0;
};

struct SideConstraint {
  ConstraintKind kind = ConstraintKind::KeepTogether;
  std::vector<std::string> names; ///< of layers or blocks, as the user wrote
  /// KeepTogether, KeepApart, Pin: the segments of each name. NoCut...: the two
  /// segments between which the cut would lie, nothing if none can lie there.
  std::vector<SegmentRange> parts;
  int64_t number = 0;
};

/// As in a model file: "keep_apart: [tok, head]", "memory_headroom: 10 %".
std::string toYaml(const SideConstraint &constraint);

/// The problem with the constraints in it; nothing if two of them, or one of
/// them and the cuts given, contradict each other openly.
std::optional<PartitionProblem>
constrain(const PartitionProblem &base,
          const std::vector<SideConstraint> &constraints);

/// The best assignment that keeps the constraints.
PartitionResult solvePartition(const PartitionProblem &base,
                               const std::vector<SideConstraint> &constraints,
                               int64_t workLimit);

/// Independent check: an answer to `base` that keeps every constraint.
std::optional<std::string>
verify(const PartitionProblem &base,
       const std::vector<SideConstraint> &constraints,
       const Partition &partition);

/// "Is there an assignment?" in difference logic, one rule a constraint:
/// complete, so it agrees with the exact solver. Without `memory`, whose clauses
/// grow with the square of the segments, a clash remains a clash. Nothing if it
/// would be larger than what is decided fast.
std::optional<solver::Problem>
sideConstraintQuestion(const PartitionProblem &base,
                       const std::vector<SideConstraint> &constraints,
                       bool memory = true);

/// About 2 CPU seconds.
constexpr int64_t kClashWork = int64_t(1) << 30;

/// A constraint to give up, or what to write in its place.
struct Relief {
  int32_t constraint = 0;
  std::optional<SideConstraint> replacement; ///< nothing: remove it
};

struct ClashReport {
  /// Indices of constraints that cannot be kept together, each list minimal
  /// unless the work ended:
  /// without any of its members the others can be. The second list clashes even
  /// after the first relief, and so on. Empty: without any constraint there is
  /// no assignment either.
  std::vector<std::vector<int32_t>> cores;
  /// What else takes part in the first clash: "2 devices", "80 GiB a device",
  /// "'--cuts'".
  std::vector<std::string> facts;
  /// All of these together make it feasible, at the least objective among the
  /// fewest that do. Empty if none was found within the work.
  std::vector<Relief> reliefs;
  Nanos objective = 0; ///< with them
  bool outOfWork = false; ///< there may be other and cheaper reliefs
  bool minimal = true;    ///< false: the work ended while the first list shrank
  solver::Failure failure;
};

/// For constraints that have no assignment. All questions together take at most
/// about `workLimit`, in units of stage assignment.
ClashReport explainClash(const PartitionProblem &base,
                         const std::vector<SideConstraint> &constraints,
                         const solver::Settings &settings,
                         int64_t workLimit = kClashWork);

} // namespace takt
