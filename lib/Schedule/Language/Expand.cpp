//===- Expand.cpp - from a rule to the lists of a problem -----------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "Rules.h"

#include <fmt/format.h>

#include <algorithm>

namespace takt {

std::optional<double> valueOf(const Formula &formula, const FormulaNames &names,
                              bool whole, Diagnostics &diags) {
  std::string why;
  const auto value = evaluate(formula, names, whole, why);
  if (!value)
    diags.error(formula.loc, why);
  return value;
}

namespace {

class Expander {
public:
  Expander(const ScheduleRule &rule, const PipelineProblem &problem,
           Diagnostics &diags)
      : rule(rule), problem(problem), diags(diags) {}

  std::optional<Pipeline> run() {
    if (!checkSizes())
      return std::nullopt;
    pipeline.schedule.name = rule.name;
    pipeline.schedule.roles.resize(problem.ranks);
    if (problem.replicas.empty()) {
      pipeline.rankOfStage =
          placeStages(rule.placement, problem.ranks, problem.chunks);
    } else {
      int32_t rank = 0;
      for (const int32_t count : problem.replicas) {
        pipeline.rankOfStage.push_back(rank);
        rank += count;
      }
    }
    const ScheduleProblem shape = shapeOf(problem, pipeline);
    stagesOfRank.resize(problem.ranks);
    for (int32_t s = 0; s < shape.stages; ++s) {
      const int32_t copies = shape.replicas.empty() ? 1 : shape.replicas[s];
      for (int32_t i = 0; i < copies; ++i)
        stagesOfRank[pipeline.rankOfStage[s] + i].push_back(s);
    }
    std::vector<RankWork> ranks;
    for (int32_t rank = 0; rank < problem.ranks; ++rank) {
      if (!nameValues(rank))
        return std::nullopt;
      double groups = problem.microBatches;
      if (!rule.groups.empty()) {
        const auto value = valueOf(rule.groups, names[rank], true, diags);
        if (!value)
          return std::nullopt;
        groups = *value;
      }
      if (groups < 1) {
        diags.error(rule.groups.loc,
                    fmt::format("groups of {} micro-batches", groups));
        return std::nullopt;
      }
      ranks.emplace_back(shape, rank, stagesOfRank[rank], int32_t(groups));
    }
    const bool filled =
        rule.prefer.empty()
            ? expandPhases(rule, ranks, names, diags, pipeline.schedule)
            : expandPreference(rule, problem, pipeline, ranks, names, diags,
                               pipeline.schedule);
    if (!filled || !checkLists())
      return std::nullopt;
    return std::move(pipeline);
  }

private:
  bool fail(const SourceLoc &loc, std::string message) {
    diags.error(loc, std::move(message));
    return false;
  }

  bool checkSizes() {
    if (auto fault = problem.check())
      return fail(rule.loc, std::move(*fault));
    if (rule.chunks > 0 && problem.chunks != rule.chunks)
      return fail(rule.loc,
                  fmt::format("'{}' is made for {} stages a rank, "
                              "not {}",
                              rule.name, rule.chunks, problem.chunks));
    if (problem.chains != rule.chains)
      return fail(rule.loc,
                  fmt::format("'{}' is made for {} chains of stages, "
                              "not {}",
                              rule.name, rule.chains, problem.chains));
    if (rule.placement == Placement::Linear && problem.chunks != 1)
      return fail(rule.loc, fmt::format("'{}' places one stage on a rank, "
                                        "not {}",
                                        rule.name, problem.chunks));
    if (rule.placement != Placement::Linear && !problem.replicas.empty())
      return fail(rule.loc, fmt::format("'{}' takes no replicas", rule.name));
    if (!rule.together.empty() && problem.chunks != 1)
      return fail(rule.together.loc, "'together' needs one stage a rank");
    return checkSteps(rule.prefer) &&
           std::all_of(rule.phases.begin(), rule.phases.end(),
                       [&](const Phase &p) { return checkSteps(p.steps); });
  }

  bool checkSteps(const std::vector<Step> &steps) {
    for (const Step &step : steps)
      if (step.chunk >= problem.chunks)
        return fail(rule.loc, fmt::format("'{}': a rank has only {} stage{}",
                                          toText(step), problem.chunks,
                                          problem.chunks == 1 ? "" : "s"));
    return true;
  }

  bool nameValues(int32_t rank) {
    const int32_t stage = stagesOfRank[rank].front();
    FormulaNames given = {
        {"p", problem.ranks},
        {"m", problem.microBatches},
        {"v", problem.chunks},
        {"r", rank},
        {"s", stage},
        {"n", problem.replicas.empty() ? 1 : problem.replicas[stage]},
        {"b", pipeline.rankOfStage[stage]}};
    for (const auto &[name, formula] : rule.let) {
      const auto value = valueOf(formula, given, true, diags);
      if (!value)
        return false;
      given[name] = *value;
    }
    names.push_back(std::move(given));
    return true;
  }

  bool checkLists() {
    if (auto fault = verifyPipeline(problem, pipeline))
      return fail(rule.loc, std::move(*fault));
    if (rule.hold.empty())
      return true;
    PipelineProblem counted = problem;
    counted.times.assign(problem.stages(), {});
    for (int32_t s = 0; s < problem.stages(); ++s) {
      const StageTimes t = problem.at(s);
      counted.times[s].kept = t.held > 0 ? t.kept / t.held : 0;
    }
    const auto timing = timePipeline(counted, pipeline);
    for (int32_t rank = 0; rank < problem.ranks; ++rank) {
      const auto most = valueOf(rule.hold, names[rank], false, diags);
      if (!most)
        return false;
      if (timing->peakHeld[rank] > *most + 1e-9 * std::max(1.0, *most))
        return fail(rule.hold.loc,
                    fmt::format("rank {} holds {}, at most {} are allowed",
                                rank, timing->peakHeld[rank], *most));
    }
    return true;
  }

  const ScheduleRule &rule;
  const PipelineProblem &problem;
  Diagnostics &diags;
  Pipeline pipeline;
  std::vector<std::vector<int32_t>> stagesOfRank;
  std::vector<FormulaNames> names; ///< by rank
};

} // namespace

std::optional<Pipeline> expandSchedule(const ScheduleRule &rule,
                                       const PipelineProblem &problem,
                                       Diagnostics &diags) {
  return Expander(rule, problem, diags).run();
}

} // namespace takt
