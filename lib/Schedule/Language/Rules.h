//===- Rules.h - what the parts of the schedule language share --*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
#pragma once

#include "takt/Frontend/Keys.h"
#include "takt/Schedule/Language.h"

namespace takt {

/// In the order of Placement.
const KeyTable &placementWords();

/// "F", "B1".
std::string toText(const Step &step);
/// "F B"
std::string toText(const std::vector<Step> &steps);

/// Names that every rule has, of one rank.
inline constexpr const char *kGivenNames[] = {"p", "m", "v", "r",
                                              "s", "n", "b"};

/// What one rank may still do: its stages, its micro-batches, and the order of
/// both.
class RankWork {
public:
  /// `own` are the rank's stages; `groups` micro-batches go through each
  /// together.
  RankWork(const ScheduleProblem &shape, int32_t rank, std::vector<int32_t> own,
           int32_t groups);

  int32_t chunks() const { return int32_t(stages.size()); }
  /// How many actions of this step are left, W of an I to come included.
  int64_t left(const Step &step) const;
  /// The action that the step would take; nothing if there is none, or no W
  /// since all I so far have theirs.
  std::optional<Action> next(const Step &step) const;
  /// Takes it.
  void take(const Step &step);
  bool isDone() const;

private:
  struct Order {
    /// Chunk and micro-batch of every pass in the order of the whole rank.
    std::vector<std::pair<int32_t, int32_t>> passes;
    std::vector<bool> taken;
    size_t first = 0; ///< not taken
    /// By chunk: places of its passes, and how many are taken.
    std::vector<std::vector<size_t>> ofChunk;
    std::vector<size_t> takenOf;
    int64_t count = 0; ///< taken
  };
  const Order &orderOf(ActionKind kind) const {
    return kind == ActionKind::F ? forwards : backwards;
  }
  std::optional<size_t> place(const Step &step) const;

  std::vector<int32_t> stages;
  Order forwards, backwards;
  std::vector<Action> inputs; ///< taken I
  size_t weights = 0;         ///< taken W
};

/// Each fills the list of every rank; false after an error.
bool expandPhases(const ScheduleRule &rule, std::vector<RankWork> &ranks,
                  const std::vector<FormulaNames> &names, Diagnostics &diags,
                  Schedule &schedule);
bool expandPreference(const ScheduleRule &rule, const PipelineProblem &problem,
                      const Pipeline &places, std::vector<RankWork> &ranks,
                      const std::vector<FormulaNames> &names,
                      Diagnostics &diags, Schedule &schedule);

/// The value of a formula that the rule gives, reported at its place if it has
/// none.
std::optional<double> valueOf(const Formula &formula, const FormulaNames &names,
                              bool whole, Diagnostics &diags);

} // namespace takt
