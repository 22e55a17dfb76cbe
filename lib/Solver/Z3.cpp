//===- Z3.cpp - the one place that knows Z3 -------------------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// A fresh context and solver for every question: a plain one with Z3's sparse
// difference logic engine, which on scheduling problems beats the optimizer,
// the incremental mode and the dense engine that "QF_IDL" would choose; QF_FD
// for weighted sums without integers, which it propagates. Kept to the API of
// Z3 4.8.12. Its C++ header reports a mismatch of sorts by `assert`, so only
// integers meet integers here and every variable is declared in one place.
//
//===----------------------------------------------------------------------===//
#include "takt/Solver/Solver.h"

#include "takt/Support/Search.h"

#include <fmt/format.h>
#include <z3++.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <limits>

using namespace takt::solver;

namespace {

/// Z3's limits are unsigned 32-bit numbers, and 0 means none.
unsigned clampWork(int64_t work) {
  return unsigned(
      std::clamp<int64_t>(work, 1, std::numeric_limits<unsigned>::max()));
}

bool sumsOnly(const Problem &problem) {
  return !problem.weightLimits.empty() && problem.integers.size() == 1;
}

/// Z3's `rlimit` counts steps of the preprocessing fairly but nearly nothing of
/// what the difference logic engine does to explain a conflict, which grows
/// with the integers. This makes a second of either cost the same.
int64_t workOfConflict(const Problem &problem) {
  return 5 * int64_t(problem.integers.size());
}

struct DumpError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

class Question {
public:
  Question(const Problem &problem, const Settings &settings)
      : problem(problem), settings(settings),
        solver(sumsOnly(problem) ? z3::solver(context, "QF_FD")
                                 : z3::solver(context, z3::solver::simple())) {
    z3::params params(context);
    params.set("random_seed", 0u);
    params.set("threads", 1u);
    // Its own handler of SIGINT would hide the signal from whoever waits for
    // it.
    params.set("ctrl_c", false);
    params.set("rlimit", clampWork(settings.workLimit));
    if (!sumsOnly(problem)) {
      params.set("arith.solver", 1u);
      params.set("max_conflicts",
                 clampWork(settings.workLimit / workOfConflict(problem)));
    }
    solver.set(params);
    declare();
    assertAll();
  }

  Answer ask() {
    dump();
    Answer answer;
    const z3::check_result result = check();
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
  z3::check_result check() {
    const takt::search::Breaker breaker([this] { context.interrupt(); });
    return solver.check();
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
      rules.push_back(context.bool_const(
          fmt::format("{}!{}", problem.rules[r], r).c_str()));
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
    std::error_code error;
    fs::create_directories(settings.dumpFolder, error);
    if (error)
      throw DumpError(fmt::format("cannot create the folder '{}': {}",
                                  settings.dumpFolder, error.message()));
    const fs::path path =
        fs::path(settings.dumpFolder) / (settings.name + ".smt2");
    std::ofstream file(path, std::ios::binary);
    file << solver.to_smt2();
    if (!file.flush())
      throw DumpError(fmt::format("cannot write '{}'", path.string()));
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
    auto count = [&](const char *key) -> int64_t {
      for (unsigned i = 0; i < stats.size(); ++i)
        if (stats.key(i) == key)
          return stats.is_uint(i) ? int64_t(stats.uint_value(i))
                                  : int64_t(stats.double_value(i));
      return 0;
    };
    const int64_t steps = count("rlimit count");
    return sumsOnly(problem)
               ? steps
               : steps + count("conflicts") * workOfConflict(problem);
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
    answer.failure = {Failure::Kind::Solver, *fault};
    return answer;
  }
  if (takt::search::interrupted()) {
    answer.message = "interrupted";
    return answer;
  }
  try {
    answer = Question(problem, settings).ask();
  } catch (const DumpError &error) {
    answer.failure = {Failure::Kind::Dump, error.what()};
  } catch (const z3::exception &error) {
    if (takt::search::interrupted()) { // as it says it in some places
      answer.message = "interrupted";
      return answer;
    }
    answer.failure = {Failure::Kind::Solver, std::string("Z3: ") + error.msg()};
  } catch (const std::exception &error) {
    answer.failure = {Failure::Kind::Solver, error.what()};
  }
  if (answer.verdict != Verdict::Satisfiable)
    return answer;
  // Nothing that Z3 says is taken on trust where it can be checked.
  if (auto fault = verify(problem, answer.values)) {
    answer.verdict = Verdict::Unknown;
    answer.failure = {Failure::Kind::Solver, "Z3's answer is wrong: " + *fault};
  }
  return answer;
}
