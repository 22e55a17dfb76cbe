//===- Repeats.cpp - repeats replicated or pipelined ----------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Few numbers of stages and replicas, each with a closed form; beside it the
// pipelines run one by one.
//
//===----------------------------------------------------------------------===//
#include "takt/Partition/Costs/Repeats.h"

#include <fmt/format.h>

#include <algorithm>

namespace takt {

using rt::Nanos;

std::optional<std::string> RepeatProblem::check() const {
  if (repeats < 1 || samples < 1 || devices < 1)
    return "repeats, samples and devices must be positive";
  if (maxReplicas < 0)
    return "a number of replicas is negative";
  if (block < 0 || handOff < 0)
    return "a time is negative";
  if (double(repeats + samples) * double(block + handOff) *
          double(std::max(repeats, samples)) >
      1e18)
    return "the repeats take longer than can be counted in nanoseconds";
  return std::nullopt;
}

Nanos repeatTime(const RepeatProblem &problem, int64_t replicas,
                 int64_t stages) {
  const int64_t most = (problem.repeats + stages - 1) / stages;
  const int64_t share = (problem.samples + replicas - 1) / replicas;
  Nanos slowest = most * problem.block;
  if (stages > 1)
    slowest = std::max(slowest, problem.handOff);
  return problem.repeats * problem.block + (stages - 1) * problem.handOff +
         (share - 1) * slowest;
}

namespace {

int64_t mostReplicas(const RepeatProblem &problem, int64_t stages) {
  const int64_t most = std::min(problem.samples, problem.devices / stages);
  return problem.maxReplicas > 0 ? std::min(most, problem.maxReplicas) : most;
}

} // namespace

RepeatPlan planRepeats(const RepeatProblem &problem) {
  RepeatPlan best{1, 1, repeatTime(problem, 1, 1)};
  const int64_t mostStages = std::min(problem.repeats, problem.devices);
  for (int64_t stages = 1; stages <= mostStages; ++stages) {
    const int64_t most = mostReplicas(problem, stages);
    for (int64_t replicas = 1; replicas <= most; ++replicas) {
      const RepeatPlan plan{replicas, stages,
                            repeatTime(problem, replicas, stages)};
      if (plan.time < best.time ||
          (plan.time == best.time && plan.devices() < best.devices()))
        best = plan;
    }
  }
  return best;
}

namespace {

/// One pipeline, sample by sample.
Nanos runPipeline(const RepeatProblem &problem,
                  const std::vector<int64_t> &cuts, int64_t samples) {
  std::vector<Nanos> stage(cuts.size()), link(cuts.size());
  Nanos end = 0;
  for (int64_t i = 0; i < samples; ++i) {
    end = 0;
    for (size_t s = 0; s < cuts.size(); ++s) {
      if (s > 0)
        end = link[s] = std::max(link[s], end) + problem.handOff;
      end = stage[s] = std::max(stage[s], end) + cuts[s] * problem.block;
    }
  }
  return end;
}

/// Calls `visit` with every way to write `sum` as `parts` numbers from `least`.
template <typename Visit>
void compositions(int64_t sum, int64_t parts, int64_t least,
                  std::vector<int64_t> &made, Visit &&visit) {
  if (parts == 0) {
    if (sum == 0)
      visit();
    return;
  }
  for (int64_t next = least; next <= sum; ++next) {
    made.push_back(next);
    compositions(sum - next, parts - 1, least, made, visit);
    made.pop_back();
  }
}

} // namespace

Nanos bruteForceRepeats(const RepeatProblem &problem) {
  Nanos best = problem.samples * problem.repeats * problem.block;
  for (int64_t stages = 1; stages <= problem.devices; ++stages)
    for (int64_t replicas = 1; replicas <= mostReplicas(problem, stages);
         ++replicas) {
      std::vector<int64_t> cuts, shares;
      compositions(problem.repeats, stages, 1, cuts, [&] {
        compositions(problem.samples, replicas, 0, shares, [&] {
          Nanos end = 0;
          for (const int64_t share : shares)
            end = std::max(end, runPipeline(problem, cuts, share));
          best = std::min(best, end);
        });
      });
    }
  return best;
}

std::optional<std::string> verify(const RepeatProblem &problem,
                                  const RepeatPlan &plan) {
  if (auto fault = problem.check())
    return fault;
  if (plan.replicas < 1 || plan.stages < 1 || plan.stages > problem.repeats ||
      plan.replicas > mostReplicas(problem, plan.stages))
    return fmt::format("{} pipelines of {} stages do not fit {} devices",
                       plan.replicas, plan.stages, problem.devices);
  // The larger share on stages whose ends are even.
  std::vector<int64_t> cuts;
  for (int64_t s = 0; s < plan.stages; ++s)
    cuts.push_back((s + 1) * problem.repeats / plan.stages -
                   s * problem.repeats / plan.stages);
  const int64_t share = (problem.samples + plan.replicas - 1) / plan.replicas;
  const Nanos time = runPipeline(problem, cuts, share);
  if (time != plan.time)
    return fmt::format("the plan takes {} ns, not {} ns", time, plan.time);
  return std::nullopt;
}

} // namespace takt
