//===- Choose.cpp - buckets of gradients for a whole job ------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// First every stage by itself, then the whole step under the virtual clock,
// which alone decides.
//
//===----------------------------------------------------------------------===//
#include "takt/Overlap/Choose.h"

#include "takt-rt/core/clock.h"

#include <algorithm>
#include <set>

using namespace takt;

namespace {

/// Numbers of buckets that are tried where no size is asked for. More than that
/// only adds latencies: what is exposed is the last bucket.
constexpr int kBucketCounts[] = {2, 3, 4, 6, 8, 12, 16};

/// Stages up to which each is tried by itself: a try runs the whole step.
constexpr size_t kMostTries = 16;

bool reduces(const StageInput &stage) {
  return std::any_of(
      stage.lanes.begin(), stage.lanes.end(),
      [](const LaneInput &l) { return l.kind == rt::LaneKind::Reduce; });
}

/// The divisions into buckets that are weighed for a stage, each once.
std::set<std::vector<int32_t>> divisions(const LoweringProblem &problem,
                                         const StageInput &stage,
                                         const OverlapOptions &options) {
  if (options.bucketBytes > 0)
    return {formBuckets(problem.graph, stage, options.bucketBytes)};
  Bytes total = 0;
  for (Bytes bytes : gradientBytes(problem.graph, stage))
    total += bytes;
  std::set<std::vector<int32_t>> out;
  for (int count : kBucketCounts)
    out.insert(formBuckets(problem.graph, stage, (total + count - 1) / count));
  return out;
}

StageOverlap decideStage(const LoweringProblem &problem, int32_t index,
                         const OverlapOptions &options) {
  const StageInput &stage = problem.stages[index];
  StageOverlap best;
  best.stage = index;
  best.bucketBegins = {stage.layerBegin};
  best.problem = stageTail(problem, index, best.bucketBegins, options.lanes);
  // Divisions are compared by list schedules; Z3 is asked about the one taken.
  OverlapLimits listOnly;
  listOnly.actions = 0;
  best.solution = solveOverlap(best.problem, listOnly);
  best.alone = best.solution.makespan;
  for (const std::vector<int32_t> &begins :
       divisions(problem, stage, options)) {
    if (begins.size() < 2)
      continue;
    StageOverlap other;
    other.problem = stageTail(problem, index, begins, options.lanes);
    other.solution = solveOverlap(other.problem, listOnly);
    bool isBetter = other.solution.makespan != best.solution.makespan
                        ? other.solution.makespan < best.solution.makespan
                        : begins.size() < best.bucketBegins.size();
    if (!isBetter)
      continue;
    best.bucketBegins = begins;
    best.problem = std::move(other.problem);
    best.solution = std::move(other.solution);
  }
  best.solution = solveOverlap(best.problem, options.limits);
  return best;
}

/// Buckets of each reducing lane in the order in which they start.
std::vector<std::vector<int32_t>> bucketOrder(const StageOverlap &decision) {
  std::vector<std::vector<int32_t>> order =
      laneOrder(decision.problem, decision.solution);
  int32_t pieces = int32_t(decision.bucketBegins.size());
  for (std::vector<int32_t> &lane : order)
    for (int32_t &action : lane)
      action -= pieces; // all-reduces stand after the pieces
  return order;
}

LoweringProblem apply(const LoweringProblem &problem,
                      const std::vector<StageOverlap> &stages) {
  LoweringProblem out = problem;
  for (const StageOverlap &s : stages)
    if (s.taken)
      cutIntoBuckets(out.stages[s.stage], s.bucketBegins, bucketOrder(s));
  return out;
}

/// The step, and when each role's last instruction ends in it.
Nanos stepOf(const LoweringProblem &problem, std::vector<Nanos> *ends) {
  rt::Plan plan = lower(problem);
  rt::SimulateOptions options;
  options.keepRecords = ends != nullptr;
  rt::Simulation run = rt::simulate(plan, options);
  if (ends) {
    ends->assign(plan.roles.size(), 0);
    for (const rt::Record &record : run.records) {
      Nanos &end = (*ends)[plan.roleOf(record.rank)];
      end = std::max(end, record.end);
    }
  }
  return run.makespan;
}

/// Where the buckets of all stages together do not pay, those of some may: they
/// do not slow down what others wait for. Those that end last come first.
bool takeOneByOne(const LoweringProblem &problem, OverlapChoice &choice,
                  LoweringProblem &best) {
  std::vector<StageOverlap *> candidates;
  for (StageOverlap &s : choice.stages)
    if (s.taken) {
      s.taken = false;
      candidates.push_back(&s);
    }
  choice.with = choice.without;
  if (candidates.size() < 2 || candidates.size() > kMostTries)
    return false;
  auto gain = [](const StageOverlap *s) {
    return s->alone - s->solution.makespan;
  };
  std::stable_sort(candidates.begin(), candidates.end(),
                   [&](const StageOverlap *a, const StageOverlap *b) {
                     return gain(a) > gain(b);
                   });
  for (StageOverlap *s : candidates) {
    s->taken = true;
    LoweringProblem some = apply(problem, choice.stages);
    if (Nanos step = stepOf(some, nullptr); step < choice.with) {
      choice.with = step;
      best = std::move(some);
    } else {
      s->taken = false;
    }
  }
  return choice.pays();
}

} // namespace

OverlapChoice takt::chooseOverlap(LoweringProblem &problem,
                                  const OverlapOptions &options) {
  OverlapChoice choice;
  bool any = false;
  for (size_t s = 0; s < problem.stages.size(); ++s) {
    const StageInput &stage = problem.stages[s];
    if (!reduces(stage) || bucketCount(stage) > 1)
      continue;
    choice.stages.push_back(decideStage(problem, int32_t(s), options));
    StageOverlap &last = choice.stages.back();
    last.taken = last.bucketBegins.size() > 1;
    any = any || last.taken;
  }
  if (choice.stages.empty())
    return choice;
  std::vector<Nanos> ends;
  choice.without = choice.with = stepOf(problem, any ? &ends : nullptr);
  if (!any)
    return choice;

  LoweringProblem all = apply(problem, choice.stages);
  choice.with = stepOf(all, nullptr);
  if (!choice.pays() && !takeOneByOne(problem, choice, all))
    return choice;
  // A stage that ends before the new step without buckets needs none. With sums
  // of tied parameters stages wait for each other, so this is tried, not known.
  std::vector<StageOverlap> needed = choice.stages;
  bool fewer = false;
  for (StageOverlap &s : needed)
    if (s.taken && ends[s.stage] <= choice.with) {
      s.taken = false;
      fewer = true;
    }
  if (fewer) {
    LoweringProblem some = apply(problem, needed);
    if (stepOf(some, nullptr) <= choice.with) {
      choice.stages = std::move(needed);
      all = std::move(some);
    }
  }
  problem = std::move(all);
  return choice;
}
