//===- Minimise.cpp - least value by probes -------------------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Bound search. The lower bound itself is probed first: analytic bounds are
// often met, and then one probe is a whole proof. Afterwards the interval is
// halved. A probe stays open when it has used half of the work left: the search
// goes on above its limit, where better values may still be found, and the
// bound stays below it.
//
//===----------------------------------------------------------------------===//
#include "takt/Solver/Solver.h"

#include "takt/Support/Search.h"

#include <algorithm>

using namespace takt::solver;

namespace {

class Search {
public:
  Search(const Problem &problem, Integer objective, const Settings &settings)
      : problem(problem), objective(objective), settings(settings),
        running(settings.name + ": constraint solver") {}

  Optimum run(int64_t lowerBound, const std::optional<Values> &incumbent) {
    best.bound = lowerBound;
    running.setBound(lowerBound);
    if (incumbent && !verify(problem, *incumbent))
      keep(*incumbent);
    else if (probe(std::nullopt) == Verdict::Unsatisfiable)
      best.infeasible = true;
    if (!best.values)
      return best;
    best.bound = std::min(lowerBound, best.value);
    low = best.bound;
    if (best.value > low)
      narrow(low);
    while (best.value > low && !exhausted())
      narrow(low + (best.value - low - 1) / 2);
    return best;
  }

private:
  /// Probes with less than a 64th of the limit would find nothing.
  bool exhausted() const {
    return best.failure || takt::search::interrupted() ||
           settings.workLimit - best.work <= settings.workLimit / 64;
  }

  void keep(const Values &values) {
    best.values = values;
    best.value = values.integers[objective.id];
    running.setBest(best.value);
  }

  /// Asks for an objective of at most `limit`.
  void narrow(int64_t limit) {
    const Verdict verdict = probe(limit);
    if (verdict == Verdict::Satisfiable)
      return;
    if (verdict == Verdict::Unsatisfiable)
      running.setBound(best.bound = limit + 1);
    low = limit + 1;
  }

  Verdict probe(std::optional<int64_t> limit) {
    Problem limited = problem;
    if (limit)
      limited.require({atMost(objective, kOrigin, *limit)});
    Settings rest = settings;
    rest.workLimit = settings.workLimit - best.work;
    if (best.values)
      rest.workLimit = std::max<int64_t>(1, rest.workLimit / 2);
    rest.name += "-" + std::to_string(++best.probes);
    const Answer answer = decide(limited, rest);
    best.work += answer.work;
    best.failure = answer.failure;
    if (answer.verdict == Verdict::Satisfiable)
      keep(answer.values);
    return answer.verdict;
  }

  const Problem &problem;
  const Integer objective;
  const Settings &settings;
  Optimum best;
  /// Nothing is asked for below: proven, or left open by a probe.
  int64_t low = 0;
  takt::search::Running running;
};

} // namespace

Optimum takt::solver::minimise(const Problem &problem, Integer objective,
                               int64_t lowerBound,
                               const std::optional<Values> &incumbent,
                               const Settings &settings) {
  return Search(problem, objective, settings).run(lowerBound, incumbent);
}
