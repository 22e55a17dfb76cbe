//===- Z3.cpp - the one place that knows Z3 -------------------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// A fresh context and a QF_IDL solver for every question (Z3's difference logic
// engine beats its optimizer and its incremental mode on scheduling problems);
// QF_FD for weighted sums without integers, which it propagates.
// Kept to the API of Z3 4.8.12. Its C++ header reports a mismatch of sorts by
// `assert`, so only integers meet integers here and every variable is declared
// in one place.
//
//===----------------------------------------------------------------------===//
#include "takt/Solver/Solver.h"

#include <fmt/format.h>
#include <z3++.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <limits>

using namespace takt::solver;

namespace {

/// Z3's rlimit is an unsigned 32-bit number, and 0 means none.
unsigned clampWork(int64_t work) {
  return unsigned(std::clamp<int64_t>(
      work, 1, std::numeric_limits<unsigned>::max()));
}

class Question {
public:
  Question(const Problem &problem, const Settings &settings)
      : problem(problem), settings(settings),
        solver(context, logicOf(problem)) {
    z3::params params(context);
    params.set("random_seed", 0u);
    params.set("threads", 1u);
    params.set("rlimit", clampWork(settings.workLimit));
    solver.set(params);
    declare();
    assertAll();
  }

  Answer ask() {
    dump();
    Answer answer;
    const z3::check_result result = solver.check();
    answer.work = workSpent();
    switch (result) {
    case z3::sat:
      answer.values = readModel();
      answer.verdict = Verdict::Satisfiable;
      break;
    case z3::unsat:
      answer.core = readCore();
      answer.verdict = Verdict::Unsatisfiable;
      break;
    case z3::unknown:
      answer.message = "Z3 gave up: " + solver.reason_unknown();
      break;
    }
    return answer;
  }

private:
  static const char *logicOf(const Problem &problem) {
    const bool sumsOnly =
        !problem.weightLimits.empty() && problem.integers.size() == 1;
    return sumsOnly ? "QF_FD" : "QF_IDL";
  }

  void declare() {
    // Numbered names: those of the problem need not be unique.
    for (size_t i = 0; i < problem.integers.size(); ++i)
      integers.push_back(
          i == size_t(kOrigin.id)
              ? context.int_val(0)
              : context.int_const(
                    fmt::format("{}:{}", problem.integers[i], i).c_str()));
    for (size_t t = 0; t < problem.truths.size(); ++t)
      truths.push_back(context.bool_const(
          fmt::format("{}:{}", problem.truths[t], t).c_str()));
    for (size_t r = 0; r < problem.rules.size(); ++r)
      rules.push_back(
          context.bool_const(fmt::format("{}!{}", problem.rules[r], r).c_str()));
  }

  z3::expr literal(const Literal &l) {
    switch (l.kind) {
    case Literal::Kind::Holds:
      return truths[l.x];
    case Literal::Kind::Fails:
      return !truths[l.x];
    case Literal::Kind::AtLeast:
      break;
    }
    const z3::expr gap = context.int_val(l.gap);
    if (l.y == kOrigin.id)
      return integers[l.x] >= gap;
    if (l.x == kOrigin.id)
      return integers[l.y] <= context.int_val(-l.gap);
    return integers[l.x] - integers[l.y] >= gap;
  }

  z3::expr clause(const Clause &alternatives) {
    z3::expr_vector parts(context);
    for (const Literal &l : alternatives)
      parts.push_back(literal(l));
    return parts.size() == 1 ? parts[0] : z3::mk_or(parts);
  }

  /// Facts are asserted plainly; the clauses of a rule as one tracked formula.
  void assertAll() {
    std::vector<z3::expr_vector> ofRule(rules.size(), z3::expr_vector(context));
    for (size_t r = 0; r < rules.size(); ++r)
      ofRule[r] = z3::expr_vector(context);
    for (const Problem::Constraint &constraint : problem.constraints) {
      const z3::expr formula = clause(constraint.clause);
      if (constraint.rule == kNoRule)
        solver.add(formula);
      else
        ofRule[constraint.rule].push_back(formula);
    }
    for (const WeightLimit &limit : problem.weightLimits)
      limitWeight(limit);
    for (size_t r = 0; r < rules.size(); ++r)
      if (!ofRule[r].empty())
        solver.add(z3::mk_and(ofRule[r]), rules[r]);
  }

  void limitWeight(const WeightLimit &limit) {
    z3::expr_vector terms(context);
    std::vector<int> weights;
    for (const Term &term : limit.terms)
      if (term.weight > 0) {
        terms.push_back(literal(term.literal));
        weights.push_back(int(term.weight));
      }
    if (!terms.empty())
      solver.add(z3::pble(terms, weights.data(), int(limit.limit)));
  }

  void dump() {
    if (settings.dumpFolder.empty())
      return;
    namespace fs = std::filesystem;
    fs::create_directories(settings.dumpFolder);
    const fs::path path =
        fs::path(settings.dumpFolder) / (settings.name + ".smt2");
    std::ofstream file(path, std::ios::binary);
    file << solver.to_smt2();
    if (!file.flush())
      throw std::runtime_error(fmt::format("cannot write '{}'", path.string()));
  }

  Values readModel() {
    const z3::model model = solver.get_model();
    Values values;
    for (const z3::expr &integer : integers)
      values.integers.push_back(
          model.eval(integer, /*model_completion=*/true).get_numeral_int64());
    for (const z3::expr &truth : truths)
      values.truths.push_back(model.eval(truth, true).is_true());
    return values;
  }

  std::vector<int32_t> readCore() {
    std::vector<int32_t> core;
    const z3::expr_vector found = solver.unsat_core();
    for (unsigned i = 0; i < found.size(); ++i)
      for (size_t r = 0; r < rules.size(); ++r)
        if (z3::eq(found[i], rules[r]))
          core.push_back(int32_t(r));
    std::sort(core.begin(), core.end());
    return core;
  }

  int64_t workSpent() {
    const z3::stats stats = solver.statistics();
    for (unsigned i = 0; i < stats.size(); ++i)
      if (stats.key(i) == "rlimit count")
        return stats.is_uint(i) ? int64_t(stats.uint_value(i))
                                : int64_t(stats.double_value(i));
    return 0;
  }

  const Problem &problem;
  const Settings &settings;
  z3::context context;
  z3::solver solver;
  std::vector<z3::expr> integers, truths, rules;
};

} // namespace

bool takt::solver::available() { return true; }

std::string takt::solver::description() {
  unsigned major = 0, minor = 0, build = 0, revision = 0;
  Z3_get_version(&major, &minor, &build, &revision);
  return fmt::format("Z3 {}.{}.{}", major, minor, build);
}

Answer takt::solver::decide(const Problem &problem, const Settings &settings) {
  Answer answer;
  if (auto fault = problem.check()) {
    answer.message = *fault;
    return answer;
  }
  try {
    answer = Question(problem, settings).ask();
  } catch (const z3::exception &error) {
    answer.message = std::string("Z3: ") + error.msg();
  } catch (const std::exception &error) {
    answer.message = error.what();
  }
  if (answer.verdict != Verdict::Satisfiable)
    return answer;
  // Nothing that Z3 says is taken on trust where it can be checked.
  if (auto fault = verify(problem, answer.values)) {
    answer.verdict = Verdict::Unknown;
    answer.message = "Z3's answer is wrong: " + *fault;
  }
  return answer;
}
