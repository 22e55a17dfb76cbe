//===- GraphExplain.cpp - clashes of constraints on a graph ---------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// As for chains: a minimal list of constraints that cannot be kept together is
// proven by the solver, then as few as possible are given up, and of equally
// many those with the best answer. Lists found on the way are reported, too.
//
//===----------------------------------------------------------------------===//
#include "GraphClash.h"

#include "takt/Partition/Relief.h"
#include "takt/Support/Quantity.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

using namespace takt;

namespace {

constexpr size_t kMostReliefs = 3;
constexpr size_t kMostSolved = 24; ///< sets that are solved without

using Set = std::set<int32_t>; ///< of constraints

class Explanation {
public:
  Explanation(const GraphClashInput &input, const AssignWithout &assign)
      : input(input), assign(assign) {
    for (size_t c = 0; c < input.specs.size(); ++c)
      all.insert(int32_t(c));
  }

  ClashReport run() {
    const std::optional<Set> core = coreOf(input.base, all);
    if (!core || core->empty())
      return std::move(report);
    report.cores.push_back({core->begin(), core->end()});
    report.facts = factsOf(*core);
    giveUp(*core);
    return std::move(report);
  }

private:
  solver::Verdict ask(const PartitionProblem &base, const Set &kept) {
    const GraphQuestion question(input.graph, input.relaxed, base, input.edges,
                                 input.specs);
    if (!question.fits() || report.failure)
      return solver::Verdict::Unknown;
    solver::Settings settings = input.settings;
    settings.name += "-graph-" + std::to_string(++asked);
    const solver::Answer answer =
        decide(question.pose({kept.begin(), kept.end()}), settings);
    report.failure = answer.failure;
    return answer.verdict;
  }

  /// A minimal list that is proven to clash; nothing if none is.
  std::optional<Set> coreOf(const PartitionProblem &base, Set core) {
    if (ask(base, core) != solver::Verdict::Unsatisfiable)
      return std::nullopt;
    const std::vector<int32_t> members(core.begin(), core.end());
    for (auto c = members.rbegin(); c != members.rend(); ++c) {
      Set fewer = core;
      fewer.erase(*c);
      const solver::Verdict verdict = ask(base, fewer);
      if (verdict == solver::Verdict::Unsatisfiable)
        core = std::move(fewer);
      else if (verdict == solver::Verdict::Unknown)
        report.minimal = false;
    }
    return core;
  }

  Set without(const Set &removed) const {
    Set rest;
    std::set_difference(all.begin(), all.end(), removed.begin(), removed.end(),
                        std::inserter(rest, rest.end()));
    return rest;
  }

  /// Facts without which the list could be kept.
  std::vector<std::string> factsOf(const Set &core) {
    std::vector<std::string> facts;
    const PartitionProblem &base = input.base;
    auto tryFact = [&](bool present, const std::string &text, auto change) {
      PartitionProblem changed = base;
      change(changed);
      if (present && ask(changed, core) == solver::Verdict::Satisfiable)
        facts.push_back(text);
    };
    tryFact(base.stages != 0, fmt::format("'--stages={}'", base.stages),
            [](PartitionProblem &p) { p.stages = 0; });
    tryFact(base.maxStages != 0,
            fmt::format("'--max-stages={}'", base.maxStages),
            [](PartitionProblem &p) { p.maxStages = 0; });
    tryFact(base.cluster.memory != 0,
            formatBytes(base.cluster.memory) + " a device",
            [](PartitionProblem &p) { p.cluster.memory = 0; });
    const int64_t devices = base.cluster.devices;
    tryFact(base.stages == 0,
            fmt::format("{} device{}", devices, devices == 1 ? "" : "s"),
            [](PartitionProblem &p) {
              p.cluster.devices = int64_t(p.segments.size());
            });
    return facts;
  }

  void giveUp(const Set &core) {
    std::vector<Set> frontier{{}};
    std::map<Set, Set> cores{{{}, core}}, parents;
    for (size_t size = 1; size <= kMostReliefs; ++size) {
      std::vector<Set> next;
      std::optional<Set> answer;
      std::optional<GraphStages> best;
      for (const Set &removed : frontier)
        for (const int32_t c : cores[removed]) {
          Set more = removed;
          more.insert(c);
          if (!parents.emplace(more, removed).second)
            continue;
          if (++solved > kMostSolved || search::interrupted()) {
            report.outOfWork = true;
            break;
          }
          if (const std::optional<Set> rest =
                  coreOf(input.base, without(more))) {
            cores[more] = *rest;
            next.push_back(more);
            continue;
          }
          GraphStages found = assign(without(more));
          report.outOfWork |= found.result.outOfWork;
          if (found.result.partition &&
              (!best || found.result.partition->objective <
                            best->result.partition->objective)) {
            best = std::move(found);
            answer = more;
          }
        }
      if (!answer) {
        frontier = std::move(next);
        continue;
      }
      for (Set at = parents[*answer]; !at.empty(); at = parents[at])
        report.cores.insert(report.cores.begin() + 1,
                            {cores[at].begin(), cores[at].end()});
      for (const int32_t c : *answer)
        report.reliefs.push_back({c, keptOf(c, *best)});
      report.objective = best->result.partition->objective;
      return;
    }
  }

  std::optional<SideConstraint> keptOf(int32_t c, const GraphStages &found) {
    std::string ignored;
    const auto one =
        sideConstraints(found.staged.graph, layerSegments(found.staged.graph),
                        {input.specs[c]}, ignored);
    if (!one)
      return std::nullopt;
    return loosened(found.problem, one->front(), *found.result.partition);
  }

  const GraphClashInput &input;
  const AssignWithout &assign;
  Set all;
  int64_t asked = 0;
  size_t solved = 0;
  ClashReport report;
};

} // namespace

ClashReport takt::explainGraphClash(const GraphClashInput &input,
                                    const AssignWithout &assign) {
  return Explanation(input, assign).run();
}
