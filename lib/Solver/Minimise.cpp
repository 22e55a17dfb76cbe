//===- Minimise.cpp - least value by probes -------------------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Bound search. The lower bound itself is probed first: analytic bounds are
// often met, and then one probe is a whole proof. Afterwards the interval is
// halved. A probe that runs out of work leaves the upper part to search with
// what work is left; the bound then stays below it.
//
//===----------------------------------------------------------------------===//
#include "takt/Solver/Solver.h"

#include <algorithm>

using namespace takt::solver;

namespace {

class Search {
public:
  Search(const Problem &problem, Integer objective, const Settings &settings)
      : problem(problem), objective(objective), settings(settings) {}

  Optimum run(int64_t lowerBound, const std::optional<Values> &incumbent) {
    best.bound = lowerBound;
    if (incumbent && !verify(problem, *incumbent))
      keep(*incumbent);
    else if (probe(std::nullopt) == Verdict::Unsatisfiable)
      best.infeasible = true;
    if (!best.values)
      return best;
    best.bound = std::min(lowerBound, best.value);
    if (best.value > best.bound)
      narrow(best.bound);
    while (best.value > best.bound && !exhausted())
      narrow(best.bound + (best.value - best.bound - 1) / 2);
    return best;
  }

private:
  bool exhausted() const { return gaveUp || best.work >= settings.workLimit; }

  void keep(const Values &values) {
    best.values = values;
    best.value = values.integers[objective.id];
  }

  /// Asks for an objective of at most `limit`.
  void narrow(int64_t limit) {
    const Verdict verdict = probe(limit);
    if (verdict == Verdict::Unsatisfiable)
      best.bound = limit + 1;
    else if (verdict == Verdict::Unknown)
      gaveUp = true;
  }

  Verdict probe(std::optional<int64_t> limit) {
    Problem limited = problem;
    if (limit)
      limited.require({atMost(objective, kOrigin, *limit)});
    Settings rest = settings;
    rest.workLimit = settings.workLimit - best.work;
    rest.name += "-" + std::to_string(++best.probes);
    const Answer answer = decide(limited, rest);
    best.work += answer.work;
    if (answer.verdict == Verdict::Satisfiable)
      keep(answer.values);
    return answer.verdict;
  }

  const Problem &problem;
  const Integer objective;
  const Settings &settings;
  Optimum best;
  bool gaveUp = false;
};

} // namespace

Optimum takt::solver::minimise(const Problem &problem, Integer objective,
                               int64_t lowerBound,
                               const std::optional<Values> &incumbent,
                               const Settings &settings) {
  return Search(problem, objective, settings).run(lowerBound, incumbent);
}
