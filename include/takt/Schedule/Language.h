//===- Language.h - schedules as rules ---------------------------*- C++
//-*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// A schedule that a person writes in a few lines of YAML and that expands to
// the lists of any number of ranks and micro-batches:
//
//   schema_version: 1
//   schedule: zb-h1
//   hold: p - r + r / 2
//   phases: [F: p - r, I F: r, I W F: rest, I W: rest, W: rest]
//
// Two forms. *Phases* say how often a rank repeats a row of actions, at most: a
// row that has nothing left for one of its actions is not begun. A *preference*
// says which kind goes first; the lists come out of running the ranks in time,
// each always with the first kind of which an action can start.
//
// Actions: F, B, I, W, each the next one of its kind on the rank: forwards in
// the order of micro-batches, or of groups through several stages (`groups`);
// backwards in the same order from the last stage of the rank to the first; W
// in the order of their I. A number names one stage of the rank, 0 being the
// nearest to the start of its chain.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "takt/Schedule/Pipeline.h"
#include "takt/Support/Diagnostic.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace takt {

/// An arithmetic expression in postfix: + - * / %, min, max, whole numbers and
/// names. At most kMostTerms terms.
struct Formula {
  enum class Op : uint8_t {
    Number,
    Name,
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
    Min,
    Max,
  };
  struct Term {
    Op op = Op::Number;
    int32_t number = 0;
    std::string name = {};
    bool operator==(const Term &o) const {
      return op == o.op && number == o.number && name == o.name;
    }
  };
  static constexpr size_t kMostTerms = 64;

  std::vector<Term> terms;
  SourceLoc loc = {}; ///< of the text; no part of what it says

  bool empty() const { return terms.empty(); }
  bool operator==(const Formula &o) const { return terms == o.terms; }
};

/// Values of names.
using FormulaNames = std::map<std::string, double>;

/// Nothing if the text is no formula; then `why` says what is wrong.
std::optional<Formula> parseFormula(const std::string &text, std::string &why);
/// Canonical text with the fewest parentheses; reads back as the same formula.
std::string toText(const Formula &formula);
/// Value with division rounded down (`whole`) or exact. Nothing for an unknown
/// name, a division by zero, or a number beyond 1e9; `why` says which.
std::optional<double> evaluate(const Formula &formula,
                               const FormulaNames &names, bool whole,
                               std::string &why);

/// The next action of a kind, on one stage of the rank or (-1) in the rank's
/// order.
struct Step {
  ActionKind kind = ActionKind::F;
  int32_t chunk = -1;
  bool operator==(const Step &o) const {
    return kind == o.kind && chunk == o.chunk;
  }
};

/// Steps repeated at most so often; `times` empty: as long as all have actions
/// left. What B and I have still to do counts as left for W.
struct Phase {
  std::vector<Step> steps;
  Formula times;
  bool operator==(const Phase &o) const {
    return steps == o.steps && times == o.times;
  }
};

/// Names in formulas: p ranks, m micro-batches, v stages a rank, r this rank, s
/// the stage of this rank (its first), n the replicas of that stage, b the
/// ranks of earlier stages, and those that `let` defines in turn.
struct ScheduleRule {
  std::string name;
  Placement placement = Placement::Linear;
  int32_t chunks = 0; ///< stages a rank it is made for; 0: any
  int32_t chains = 1;
  std::vector<std::pair<std::string, Formula>> let;
  Formula
      groups;   ///< micro-batches that go through a stage together; empty: all
  Formula hold; ///< most that a rank holds, in stages' worth; empty: no limit
  /// One of the two is given.
  std::vector<Phase> phases;
  std::vector<Step> prefer;
  /// Of `prefer`: micro-batches whose backwards are one; empty: each alone.
  Formula together;
  SourceLoc loc = {}; ///< of `phases` or `prefer`; no part of what it says

  bool operator==(const ScheduleRule &o) const;
};

/// Reads a rule. Every fault goes to `diags` with its line; nothing is returned
/// if there was one.
std::optional<ScheduleRule> parseScheduleRule(const std::string &file,
                                              std::string text,
                                              Diagnostics &diags);

/// YAML of at most ten lines that reads back as the same rule.
std::string writeScheduleRule(const ScheduleRule &rule);

/// The lists for this problem, verified. Faults (a problem of other sizes, a
/// formula without a value, actions left over, lists that wait for each other,
/// more held than `hold`) go to `diags` at the line that causes them.
std::optional<Pipeline> expandSchedule(const ScheduleRule &rule,
                                       const PipelineProblem &problem,
                                       Diagnostics &diags);

} // namespace takt
