//===- Choose.cpp - buckets of gradients for a whole job ------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// First every stage by itself, then the whole step under the virtual clock,
// which alone decides. As each candidate is a whole plan, stages are tried one
// by one only where they are few.
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

/// Stages up to which each is tried by itself.
constexpr size_t kMostTries = 16;

/// Whether a stage reduces gradients once its role has nothing left to compute.
/// Behind the others the calls of later stages run anyway.
bool reducesLast(const LoweringProblem &problem, const RoleInput &role,
                 int32_t stage) {
  bool reduces = false, isLast = false;
  for (const LaneInput &lane : role.lanes)
    for (const CommAction &action : lane.actions) {
      if (action.kind == CommKind::Compute)
        isLast = action.stage == stage;
      reduces |= action.kind == CommKind::Reduce && action.stage == stage;
    }
  return reduces && isLast && bucketCount(problem.stages[stage]) == 1;
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

/// Sets send and buckets in the order of the answer, where they meet in it.
void applyOrder(LoweringProblem &lowering, const StageOverlap &decision) {
  const OverlapProblem &problem = decision.sendProblem;
  const OverlapSolution &solution = decision.sendSolution;
  const StageInput &stage = lowering.stages[decision.stage];
  RoleInput &role = lowering.roles[lowering.roleOfStage()[decision.stage]];
  int32_t count = bucketCount(stage), send = 2 * count;
  Nanos ready = problem.actions[send].release;
  for (int32_t a : problem.actions[send].after)
    ready = std::max(ready, solution.start[a] + problem.actions[a].time);
  for (const std::vector<int32_t> &lane : laneOrder(problem, solution)) {
    auto at = std::find(lane.begin(), lane.end(), send);
    if (at == lane.end())
      continue;
    bool waits = at != lane.begin() && solution.start[send] > ready;
    int32_t before = waits ? *(at - 1) - count : -1;
    int32_t after = at + 1 != lane.end() ? *(at + 1) - count : -1;
    orderSend(role, decision.send->microBatch, before, after);
  }
}

/// Buckets of each reducing lane in the order in which they start.
std::vector<std::vector<int32_t>> bucketOrder(const StageOverlap &decision) {
  const OverlapProblem &problem =
      decision.ordered ? decision.sendProblem : decision.problem;
  std::vector<std::vector<int32_t>> order = laneOrder(
      problem, decision.ordered ? decision.sendSolution : decision.solution);
  int32_t pieces = int32_t(decision.bucketBegins.size());
  for (std::vector<int32_t> &lane : order) {
    // All-reduces stand after the pieces, and a send after them.
    lane.erase(std::remove(lane.begin(), lane.end(), 2 * pieces), lane.end());
    for (int32_t &action : lane)
      action -= pieces;
  }
  return order;
}

LoweringProblem apply(const LoweringProblem &problem,
                      const std::vector<StageOverlap> &stages) {
  LoweringProblem out = problem;
  for (const StageOverlap &s : stages) {
    if (s.taken)
      cutIntoBuckets(out, s.stage, s.bucketBegins, bucketOrder(s));
    if (s.ordered)
      applyOrder(out, s);
  }
  return out;
}

/// Looks for the decisions with the shortest step: those of all stages
/// together, then stage by stage from the best of these.
class Choice {
public:
  Choice(LoweringProblem &problem, OverlapChoice &choice,
         const OverlapOptions &options)
      : problem(problem), choice(choice), options(options) {}
  void run();

private:
  using Levels = std::vector<int>; ///< by stage, as in `set`
  /// 0: as it was; 1: buckets; 2: and in order with the send.
  static void set(StageOverlap &stage, int level) {
    stage.taken = level > 0 && stage.bucketBegins.size() > 1;
    stage.ordered = level > 1 && stage.send;
  }
  static int most(const StageOverlap &stage) {
    return stage.send ? 2 : stage.bucketBegins.size() > 1 ? 1 : 0;
  }
  rt::Simulation simulate(const Levels &levels, bool keepRecords);
  void look(const Levels &levels);
  void findSends(const Levels &levels);
  void refine();

  LoweringProblem &problem;
  OverlapChoice &choice;
  const OverlapOptions &options;
  rt::Plan plan; ///< that was simulated last
  Levels best;
  Nanos bestStep = 0;
};

rt::Simulation Choice::simulate(const Levels &levels, bool keepRecords) {
  for (size_t i = 0; i < levels.size(); ++i)
    set(choice.stages[i], levels[i]);
  plan = lower(apply(problem, choice.stages));
  rt::SimulateOptions how;
  how.keepRecords = keepRecords;
  return rt::simulate(plan, how);
}

/// Of equal steps the one found first stays: it changes less.
void Choice::look(const Levels &levels) {
  if (levels == best)
    return;
  Nanos step = simulate(levels, false).makespan;
  if (step >= bestStep)
    return;
  best = levels;
  bestStep = step;
}

/// Sends as they are where every stage has its buckets.
void Choice::findSends(const Levels &levels) {
  if (problem.resources.empty())
    return; // nothing competes
  rt::Simulation run = simulate(levels, true);
  LoweringProblem now = apply(problem, choice.stages);
  for (StageOverlap &s : choice.stages) {
    s.send = tailSend(now, s.stage, plan, run);
    if (!s.send)
      continue;
    s.sendProblem =
        stageTail(problem, s.stage, s.bucketBegins, options.lanes, &*s.send);
    s.sendSolution = placeSend(s.sendProblem, laneOrder(s.problem, s.solution),
                               options.limits);
  }
}

/// Each stage by itself; what does not make the step longer to leave out is
/// left out.
void Choice::refine() {
  if (choice.stages.size() > kMostTries)
    return;
  for (size_t i = 0; i < best.size(); ++i)
    for (int level = 0; level <= most(choice.stages[i]); ++level) {
      Levels other = best;
      other[i] = level;
      if (other == best)
        continue;
      Nanos step = simulate(other, false).makespan;
      if (step < bestStep || (step == bestStep && level < best[i])) {
        best = other;
        bestStep = step;
      }
    }
}

void Choice::run() {
  Levels none(choice.stages.size(), 0), buckets = none, ordered = none;
  for (size_t i = 0; i < choice.stages.size(); ++i)
    buckets[i] = most(choice.stages[i]);
  rt::Simulation before = simulate(none, true);
  best = none;
  bestStep = choice.without = before.makespan;
  look(buckets);
  findSends(buckets);
  for (size_t i = 0; i < choice.stages.size(); ++i)
    ordered[i] = most(choice.stages[i]);
  look(ordered);
  // A stage that ended before the new step needs nothing. With sums of tied
  // parameters stages wait for each other, so this is tried, not known.
  std::vector<Nanos> ends(problem.roles.size(), 0);
  const std::vector<int32_t> roleOfStage = problem.roleOfStage();
  std::vector<int32_t> roleOf; // of each rank
  for (size_t r = 0; r < problem.roles.size(); ++r)
    roleOf.insert(roleOf.end(), problem.roles[r].replicas, int32_t(r));
  for (const rt::Record &record : before.records)
    ends[roleOf[record.rank]] = std::max(ends[roleOf[record.rank]], record.end);
  Levels needed = best;
  for (size_t i = 0; i < best.size(); ++i)
    if (ends[roleOfStage[choice.stages[i].stage]] <= bestStep)
      needed[i] = 0;
  if (needed != best)
    if (Nanos step = simulate(needed, false).makespan; step <= bestStep) {
      best = needed;
      bestStep = step;
    }
  refine();
  for (size_t i = 0; i < best.size(); ++i)
    set(choice.stages[i], best[i]);
  choice.with = bestStep;
  if (choice.pays())
    problem = apply(problem, choice.stages);
}

} // namespace

OverlapChoice takt::chooseOverlap(LoweringProblem &problem,
                                  const OverlapOptions &options) {
  OverlapChoice choice;
  const std::vector<int32_t> roleOf = problem.roleOfStage();
  for (size_t s = 0; s < problem.stages.size(); ++s) {
    if (reducesLast(problem, problem.roles[roleOf[s]], int32_t(s)))
      choice.stages.push_back(decideStage(problem, int32_t(s), options));
  }
  if (!choice.stages.empty())
    Choice(problem, choice, options).run();
  return choice;
}
