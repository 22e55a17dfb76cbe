//===- Solver.h - the door to the constraint solver -------------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Small combinatorial questions as plain data: integers whose differences are
// bounded (times, stage numbers, positions), truth values, and clauses over
// both; and limits on weighted sums of truth values. Differences are decided by
// Z3's difference logic, sums without integers by its solver for finite
// domains, each fast on what it is made for. This library is the only
// place that knows Z3, and no exception leaves it. Without Z3 it answers
// `Verdict::Unknown`, so whoever asks has an answer of his own first.
//
// Every answer depends on the question alone: one thread, a fixed seed, and a
// limit on Z3's count of work instead of time.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace takt::solver {

struct Integer {
  int32_t id = 0;
};
struct Truth {
  int32_t id = 0;
};

/// Integer 0 of every problem has the value 0: differences to it are bounds.
constexpr Integer kOrigin{0};

/// One alternative of a clause.
struct Literal {
  enum class Kind : uint8_t { AtLeast, Holds, Fails };
  Kind kind = Kind::AtLeast;
  int32_t x = 0, y = 0; ///< integers, or the truth value in `x`
  int64_t gap = 0;
};

/// x >= y + gap
inline Literal atLeast(Integer x, Integer y, int64_t gap) {
  return {Literal::Kind::AtLeast, x.id, y.id, gap};
}
/// x <= y + gap
inline Literal atMost(Integer x, Integer y, int64_t gap) {
  return atLeast(y, x, -gap);
}
inline Literal holds(Truth t) { return {Literal::Kind::Holds, t.id, 0, 0}; }
inline Literal fails(Truth t) { return {Literal::Kind::Fails, t.id, 0, 0}; }

/// At least one of the alternatives must be true.
using Clause = std::vector<Literal>;

/// A truth value, as it is or negated, that adds `weight` to a sum.
struct Term {
  Literal literal; ///< Holds or Fails
  int64_t weight = 0;
};

/// The weights of the true terms add up to at most `limit`.
struct WeightLimit {
  std::vector<Term> terms;
  int64_t limit = 0;
};
/// Weights and limits are from 0 to this, and so are sums of all weights.
constexpr int64_t kLargestWeight = (int64_t(1) << 31) - 1;

/// Clauses of one rule are kept or dropped together; a core is a set of rules.
constexpr int32_t kNoRule = -1;

struct Problem {
  /// Names are for dumps and messages only.
  std::vector<std::string> integers{"zero"}, truths, rules;
  struct Constraint {
    Clause clause;
    int32_t rule = kNoRule; ///< kNoRule: a fact, never part of a core
  };
  std::vector<Constraint> constraints;
  std::vector<WeightLimit> weightLimits; ///< facts

  Integer addInteger(std::string name);
  Truth addTruth(std::string name);
  int32_t addRule(std::string name);
  void require(Clause clause, int32_t rule = kNoRule);
  void limitWeight(std::vector<Term> terms, int64_t limit);
  /// First fault (an empty clause, an unknown variable, a gap beyond 2^40, a
  /// weight beyond 2^31 - 1), or nothing.
  std::optional<std::string> check() const;
};

struct Values {
  std::vector<int64_t> integers; ///< of the origin: 0
  std::vector<bool> truths;
};

/// Whether the values make every clause true: the first that they do not, or
/// nothing.
std::optional<std::string> verify(const Problem &problem, const Values &values);

enum class Verdict : uint8_t {
  Satisfiable,
  Unsatisfiable,
  Unknown, ///< work limit, interrupted, or no solver in this build
};

struct Settings {
  /// Most work of one question: roughly 10^7 a CPU second. Counted are Z3's own
  /// steps (`rlimit`) and its conflicts, each by the number of integers. A
  /// search of several probes shares it.
  int64_t workLimit = 20000000;
  /// Folder that receives each question as SMT-LIB 2 (`NAME-1.smt2`, ...);
  /// empty: none. It is made when it is not there.
  std::string dumpFolder;
  std::string name = "question"; ///< of the dumped files
};

/// What keeps a question from being asked or its answer from being used. No
/// matter of the work limit: whoever asks has to say it aloud.
struct Failure {
  enum class Kind : uint8_t {
    None,
    Solver, ///< the solver's: an exception, a wrong answer, a bad problem
    Dump,   ///< a dump that was asked for cannot be written
  };
  Kind kind = Kind::None;
  std::string message;
  explicit operator bool() const { return kind != Kind::None; }
};

struct Answer {
  Verdict verdict = Verdict::Unknown;
  Values values; ///< when Satisfiable; passes `verify`
  std::vector<int32_t>
      core;            ///< when Unsatisfiable: rules that clash, ascending
  int64_t work = 0;    ///< spent, in units of `Settings::workLimit`
  std::string message; ///< when Unknown and no failure: why
  Failure failure;     ///< then Unknown
};

/// One question. The core need not be minimal.
Answer decide(const Problem &problem, const Settings &settings);

struct Optimum {
  std::optional<Values> values; ///< best found; nothing if none was
  int64_t value = 0;            ///< of the objective
  int64_t bound = 0;            ///< proven: nothing lies below
  bool infeasible = false;      ///< proven: nothing keeps the constraints
  int64_t work = 0;             ///< of all probes
  int64_t probes = 0;
  Failure failure; ///< the first; it ends the search
  bool proven() const { return values && value == bound; }
};

/// Least value of `objective`. Probes from `lowerBound`, which the caller
/// proves by other means, up to the value of `incumbent`, an answer he has;
/// each probe is a new solver, which is steadier than an incremental one. No
/// probe takes more than half of the work left, so that one that stays open
/// does not keep the others from finding better values. When the work limit
/// ends the search, what was found and proven so far is returned.
Optimum minimise(const Problem &problem, Integer objective, int64_t lowerBound,
                 const std::optional<Values> &incumbent,
                 const Settings &settings);

/// Whether this build has a solver, and its name: "Z3 4.8.12".
bool available();
std::string description();

} // namespace takt::solver
