//===- Clash.cpp - which demands contradict each other --------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// A proof of the constraint solver names the constraints it used; dropping them
// one by one under the exact feasibility program leaves a core that is minimal.
// Every way out must give up a member of every core (Reiter 1987, hitting
// sets), so the members are tried, and where one is not enough the members of
// the core that is left.
//
// All of it draws on one budget. Where that ends, what is known by then is
// reported: a core is one at any time while it shrinks.
//
//===----------------------------------------------------------------------===//
#include "takt/Partition/Relief.h"

#include "takt/Support/Quantity.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

using namespace takt;

namespace {

constexpr size_t kMostReliefs = 4;
constexpr size_t kMostTried = 64; ///< sets of each size

/// In units of the budget: one of the constraint solver's, a clause to write
/// down for it, and a segment to make a problem of.
constexpr int64_t kSolverUnit = 50, kClauseCost = 2000, kSegmentCost = 500;

using Set = std::set<int32_t>; ///< of constraints

class Explanation {
public:
  Explanation(const PartitionProblem &base,
              const std::vector<SideConstraint> &constraints,
              const solver::Settings &settings, int64_t workLimit)
      : base(base), constraints(constraints), settings(settings),
        left(workLimit) {
    for (size_t c = 0; c < constraints.size(); ++c)
      all.insert(int32_t(c));
  }

  ClashReport run() {
    const Set &first = coreWithout({});
    if (first.empty())
      return std::move(report);
    report.minimal = !report.outOfWork;
    report.facts = factsOf(first);
    const std::optional<Set> removed = cheapest();
    // The cores on the way to the answer, or the first alone.
    Set sofar;
    report.cores.push_back({first.begin(), first.end()});
    if (!removed)
      return std::move(report);
    for (const int32_t c : pathTo.at(*removed)) {
      sofar.insert(c);
      if (sofar.size() < removed->size()) {
        const Set &core = coreWithout(sofar);
        report.cores.push_back({core.begin(), core.end()});
      }
    }
    for (const int32_t c : *removed)
      report.reliefs.push_back({c, loosened(base, constraints[c], *best)});
    report.objective = best->objective;
    return std::move(report);
  }

private:
  std::vector<SideConstraint> chosen(const Set &set) const {
    std::vector<SideConstraint> result;
    for (const int32_t c : set)
      result.push_back(constraints[c]);
    return result;
  }

  void spend(int64_t work) {
    left -= work;
    report.outOfWork |= left <= 0;
  }

  Feasibility feasibility(const PartitionProblem &problem, const Set &set) {
    const auto constrained = constrain(problem, chosen(set));
    if (!constrained)
      return Feasibility::No;
    if (left <= 0)
      return Feasibility::Unknown;
    int64_t spent = 0;
    const Feasibility answer = partitionFeasible(*constrained, left, &spent);
    spend(spent + kSegmentCost * int64_t(base.segments.size()));
    return answer;
  }

  /// Proven infeasible; neither this nor `keepable` where the work ran out.
  bool clashes(const PartitionProblem &problem, const Set &set) {
    return feasibility(problem, set) == Feasibility::No;
  }

  /// Proven feasible.
  bool keepable(const PartitionProblem &problem, const Set &set) {
    return feasibility(problem, set) == Feasibility::Yes;
  }

  Set without(const Set &removed) const {
    Set rest;
    std::set_difference(all.begin(), all.end(), removed.begin(), removed.end(),
                        std::inserter(rest, rest.end()));
    return rest;
  }

  /// A minimal core of what is left.
  const Set &coreWithout(const Set &removed) {
    auto [entry, isNew] = cores.emplace(removed, Set());
    if (isNew)
      entry->second = shrink(firstCore(without(removed)));
    return entry->second;
  }

  /// The question with what it costs to pose it in bounds.
  std::optional<solver::Problem> questionOf(const Set &set) const {
    for (const bool memory : {true, false}) {
      auto question = sideConstraintQuestion(base, chosen(set), memory);
      if (question &&
          kClauseCost * int64_t(question->constraints.size()) < left / 8)
        return question;
    }
    return std::nullopt;
  }

  Set firstCore(const Set &set) {
    const auto question = questionOf(set);
    if (!question)
      return set;
    solver::Settings limited = settings;
    limited.workLimit =
        std::clamp<int64_t>(left / kSolverUnit / 4, 1, settings.workLimit);
    const solver::Answer answer = solver::decide(*question, limited);
    spend(kSolverUnit * answer.work +
          kClauseCost * int64_t(question->constraints.size()));
    if (answer.failure)
      report.failure = answer.failure;
    if (answer.verdict != solver::Verdict::Unsatisfiable)
      return set;
    const std::vector<int32_t> members(set.begin(), set.end());
    Set core;
    for (const int32_t rule : answer.core)
      core.insert(members[rule]);
    return clashes(base, core) ? core : set;
  }

  Set shrink(Set core) {
    const std::vector<int32_t> members(core.begin(), core.end());
    for (auto c = members.rbegin(); c != members.rend() && left > 0; ++c) {
      Set fewer = core;
      fewer.erase(*c);
      if (clashes(base, fewer))
        core = std::move(fewer);
    }
    return core;
  }

  /// Facts without which the core could be kept.
  std::vector<std::string> factsOf(const Set &core) {
    std::vector<std::string> facts;
    auto tryFact = [&](bool present, const std::string &text, auto change) {
      PartitionProblem changed = base;
      change(changed);
      if (present && keepable(changed, core))
        facts.push_back(text);
    };
    const int64_t devices = base.cluster.devices;
    tryFact(base.stages != 0, fmt::format("'--stages={}'", base.stages),
            [](PartitionProblem &p) { p.stages = 0; });
    tryFact(base.maxStages != 0,
            fmt::format("'--max-stages={}'", base.maxStages),
            [](PartitionProblem &p) { p.maxStages = 0; });
    tryFact(base.cuts.has_value(), "'--cuts'",
            [](PartitionProblem &p) { p.cuts.reset(); });
    tryFact(base.replicas.has_value(),
            fmt::format("'--replicas={}'", base.replicas.value_or(0)),
            [](PartitionProblem &p) { p.replicas.reset(); });
    tryFact(base.cluster.memory != 0,
            formatBytes(base.cluster.memory) + " a device",
            [](PartitionProblem &p) { p.cluster.memory = 0; });
    tryFact(true, fmt::format("{} device{}", devices, devices == 1 ? "" : "s"),
            [](PartitionProblem &p) {
              p.useAllDevices = false;
              p.cluster.devices =
                  std::min<int64_t>(1 << 20, int64_t(p.segments.size()) *
                                                 p.replicaOptions.back());
            });
    return facts;
  }

  /// The best assignment with fewest constraints removed; `best` receives it.
  std::optional<Set> cheapest() {
    std::vector<Set> frontier{{}};
    pathTo[{}] = {};
    for (size_t size = 1; size <= kMostReliefs; ++size) {
      std::optional<Set> answer;
      std::vector<Set> next;
      for (const Set &removed : frontier) {
        if (left <= 0)
          return answer;
        for (const int32_t c : coreWithout(removed)) {
          Set more = removed;
          more.insert(c);
          std::vector<int32_t> path = pathTo[removed];
          path.push_back(c);
          if (!pathTo.emplace(more, path).second)
            continue;
          if (left <= 0)
            return answer;
          // Most sets are not enough, which is cheaper to find out alone.
          if (clashes(base, without(more))) {
            next.push_back(more);
            continue;
          }
          PartitionResult found = takt::solvePartition(
              base, chosen(without(more)), std::max<int64_t>(1, left));
          spend(found.work);
          if (!found.partition)
            next.push_back(more);
          else if (!best || found.partition->objective < best->objective) {
            best = std::move(found.partition);
            answer = more;
          }
        }
      }
      if (answer)
        return answer;
      if (next.size() > kMostTried)
        next.resize(kMostTried);
      frontier = std::move(next);
    }
    return std::nullopt;
  }

  const PartitionProblem &base;
  const std::vector<SideConstraint> &constraints;
  const solver::Settings &settings;
  int64_t left; ///< of the budget
  Set all;
  std::map<Set, Set> cores;                   ///< by what has been removed
  std::map<Set, std::vector<int32_t>> pathTo; ///< order of removal
  std::optional<Partition> best;
  ClashReport report;
};

} // namespace

/// Rounded down to MiB, or tenths of a per cent.
static std::optional<SideConstraint> headroomLeft(const PartitionProblem &base,
                                                  SideConstraint constraint,
                                                  const Partition &partition) {
  Bytes peak = 0;
  for (const StageChoice &stage : partition.stages)
    peak = std::max(peak, stage.memory);
  const Bytes spare = base.cluster.memory - peak;
  constexpr Bytes kMiB = 1 << 20;
  constraint.number =
      constraint.kind == ConstraintKind::HeadroomBytes
          ? spare / kMiB * kMiB
          : int64_t(1000.0 * double(spare) / double(base.cluster.memory)) *
                1000;
  if (constraint.number == 0)
    return std::nullopt;
  return constraint;
}

std::optional<SideConstraint> takt::loosened(const PartitionProblem &base,
                                             SideConstraint constraint,
                                             const Partition &partition) {
  switch (constraint.kind) {
  case ConstraintKind::Stages:
  case ConstraintKind::MaxStages:
    constraint.number = partition.stages.size();
    return constraint;
  case ConstraintKind::Pin:
    for (size_t s = 0; s < partition.stages.size(); ++s) {
      const StageChoice &stage = partition.stages[s];
      const bool holdsAll = std::all_of(
          constraint.parts.begin(), constraint.parts.end(),
          [&](const SegmentRange &part) {
            return part.begin >= stage.begin && part.end <= stage.end;
          });
      constraint.number = int64_t(s);
      if (holdsAll)
        return constraint;
    }
    return std::nullopt;
  case ConstraintKind::HeadroomBytes:
  case ConstraintKind::HeadroomPpm:
    return headroomLeft(base, constraint, partition);
  default:
    return std::nullopt;
  }
}

ClashReport takt::explainClash(const PartitionProblem &base,
                               const std::vector<SideConstraint> &constraints,
                               const solver::Settings &settings,
                               int64_t workLimit) {
  return Explanation(base, constraints, settings, workLimit).run();
}
