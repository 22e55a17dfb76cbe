//===- InsertCommunication.cpp - what a compute schedule needs to run -----===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Adds loads, stage transfers, the data-parallel all-reduce, the sums of tied
// parameters and the update to a compute-only schedule. Every kind of transfer
// has a lane of its own, so that a receive posted early blocks nothing else:
//
//   compute    0F0   0F1   0B0   0F2   0B1 ...           0TIE_SUM0   0UPDATE
//   load     0LOAD0 0LOAD1 0LOAD2 ...
//   send_act       0SEND_F0 0SEND_F1 ...
//   recv_grad            0RECV_B0 ...
//   reduce                                  0REDUCE_GRAD
//
// A role of several stages has the lanes of transfers once for each stage, as
// every boundary between two roles is a channel of its own; its loads, its
// reductions and its tied sums are one lane each.
//
// With gradient buckets the last backward comes in pieces, and each bucket is
// reduced while the later pieces run:
//
//   compute    ...  0B7.0   0B7.1          0B7.2               0UPDATE
//   reduce                0REDUCE_GRAD0  0REDUCE_GRAD1  0REDUCE_GRAD2
//
//===----------------------------------------------------------------------===//
#include "takt/Lower/Lower.h"

#include <algorithm>
#include <set>

using namespace takt;

std::vector<TieInput>
takt::findTies(const Graph &graph,
               const std::vector<std::pair<int32_t, int32_t>> &layerRanges) {
  std::vector<std::vector<int32_t>> uses(graph.params.size());
  for (size_t stage = 0; stage < layerRanges.size(); ++stage)
    for (int32_t l = layerRanges[stage].first; l < layerRanges[stage].second;
         ++l)
      for (int32_t param : graph.layers[l].params)
        uses[param].push_back(int32_t(stage));

  std::vector<TieInput> ties;
  for (size_t param = 0; param < uses.size(); ++param) {
    if (uses[param].size() < 2 || !graph.params[param].trainable)
      continue;
    TieInput tie{int32_t(param), uses[param]};
    std::sort(tie.stages.begin(), tie.stages.end());
    tie.stages.erase(std::unique(tie.stages.begin(), tie.stages.end()),
                     tie.stages.end());
    ties.push_back(std::move(tie));
  }
  return ties;
}

std::vector<TieRun> takt::tieRuns(const TieInput &tie,
                                  const std::vector<int32_t> &roleOfStage) {
  std::vector<TieRun> runs;
  for (int32_t stage : tie.stages) {
    if (runs.empty() || runs.back().role != roleOfStage[stage])
      runs.push_back({roleOfStage[stage], {}});
    runs.back().stages.push_back(stage);
  }
  return runs;
}

std::vector<int32_t> LoweringProblem::roleOfStage() const {
  std::vector<int32_t> roleOf(stages.size(), -1);
  for (size_t r = 0; r < roles.size(); ++r)
    for (int32_t stage : roles[r].stages)
      roleOf[stage] = int32_t(r);
  return roleOf;
}

namespace {

CommAction onMicroBatch(CommKind kind, int32_t stage, int32_t microBatch) {
  CommAction action;
  action.kind = kind;
  action.stage = stage;
  action.microBatch = microBatch;
  return action;
}

CommAction onStep(CommKind kind, int32_t stage, int32_t tie = -1,
                  int32_t peer = -1) {
  CommAction action;
  action.kind = kind;
  action.stage = stage;
  action.tie = tie;
  action.peer = peer;
  return action;
}

/// Micro-batches in the order in which `actions` do one of `kinds` for a stage.
std::vector<int32_t> orderOf(const std::vector<Action> &actions, int32_t stage,
                             std::initializer_list<ActionKind> kinds) {
  std::vector<int32_t> order;
  for (const Action &action : actions)
    if (action.stage == stage &&
        std::find(kinds.begin(), kinds.end(), action.kind) != kinds.end())
      order.push_back(action.microBatch);
  return order;
}

LaneInput lane(rt::LaneKind kind, CommKind action, int32_t stage,
               const std::vector<int32_t> &order) {
  LaneInput lane{kind, {}};
  for (int32_t m : order)
    lane.actions.push_back(onMicroBatch(action, stage, m));
  return lane;
}

/// The partial sum travels up the runs of the tie, the full sum comes back from
/// the last one to all other roles. A role with several runs keeps one
/// accumulator: what it holds has left before the next partial sum comes in.
std::vector<CommAction> tieActions(const std::vector<TieRun> &runs,
                                   int32_t index, int32_t role) {
  std::vector<CommAction> actions;
  auto first = [](const TieRun &run) { return run.stages.front(); };
  auto add = [&](CommKind kind, const TieRun &own, const TieRun &peer) {
    actions.push_back(onStep(kind, first(own), index, first(peer)));
  };
  const TieRun *own = nullptr;
  for (size_t i = 0; i < runs.size(); ++i) {
    if (runs[i].role != role)
      continue;
    own = own ? own : &runs[i];
    if (i > 0)
      add(CommKind::TieRecv, runs[i], runs[i - 1]);
    if (i + 1 < runs.size())
      add(CommKind::TieSend, runs[i], runs[i + 1]);
  }
  if (!own || runs.size() < 2)
    return actions;
  if (runs.back().role != role) {
    add(CommKind::TieRecv, *own, runs.back());
    return actions;
  }
  std::set<int32_t> told{role};
  for (const TieRun &other : runs)
    if (told.insert(other.role).second)
      add(CommKind::TieSend, runs.back(), other);
  return actions;
}

/// What a stage's layers ask for.
struct StageNeeds {
  bool loads = false;   ///< some layer reads a model input
  bool updates = false; ///< some parameter is trained
};

StageNeeds needsOf(const Graph &graph, const StageInput &stage) {
  StageNeeds needs;
  for (int32_t l = stage.layerBegin; l < stage.layerEnd; ++l) {
    const Layer &layer = graph.layers[l];
    for (int32_t id : layer.inputs)
      needs.loads = needs.loads || graph.values[id].producer < 0;
    for (int32_t param : layer.params)
      needs.updates = needs.updates || graph.params[param].trainable;
    needs.updates = needs.updates ||
                    (layer.profiled.trainable && layer.profiled.parameters > 0);
  }
  return needs;
}

/// Inserts into one role after the other.
class Inserter {
public:
  Inserter(LoweringProblem &problem, const Schedule &schedule)
      : problem(problem), graph(problem.graph), schedule(schedule),
        roleOf(problem.roleOfStage()), needsGrad(valuesNeedingGrad(graph)) {
    for (const StageInput &stage : problem.stages)
      needs.push_back(needsOf(graph, stage));
  }
  void run();

private:
  void compute(int32_t role, std::vector<LaneInput> &lanes);
  void load(int32_t role, std::vector<LaneInput> &lanes);
  void transfers(int32_t stage, std::vector<LaneInput> &lanes);
  void reduce(int32_t role, std::vector<LaneInput> &lanes);
  void ties(int32_t role, std::vector<LaneInput> &lanes);
  std::vector<int32_t> updatedStages(int32_t role) const;
  /// Whether a boundary lies between two roles.
  bool crosses(int32_t boundary) const {
    return boundary >= 0 && boundary + 1 < int32_t(roleOf.size()) &&
           roleOf[boundary] != roleOf[boundary + 1];
  }
  bool gradientCrosses(int32_t boundary) const {
    if (!crosses(boundary))
      return false;
    const std::vector<int32_t> values =
        crossingValues(graph, problem.stages[boundary].layerEnd);
    return std::any_of(values.begin(), values.end(),
                       [&](int32_t value) { return needsGrad[value]; });
  }

  LoweringProblem &problem;
  const Graph &graph;
  const Schedule &schedule;
  std::vector<int32_t> roleOf;
  std::vector<bool> needsGrad;
  std::vector<StageNeeds> needs;
};

/// The stages of a role that train something, in the order in which their
/// gradients are complete.
std::vector<int32_t> Inserter::updatedStages(int32_t role) const {
  std::vector<int32_t> order;
  const std::vector<Action> &own = schedule.roles[role];
  for (auto action = own.rbegin(); action != own.rend(); ++action)
    if ((action->kind == ActionKind::B || action->kind == ActionKind::W) &&
        needs[action->stage].updates &&
        std::find(order.begin(), order.end(), action->stage) == order.end())
      order.push_back(action->stage);
  std::reverse(order.begin(), order.end());
  return order;
}

void Inserter::compute(int32_t role, std::vector<LaneInput> &lanes) {
  LaneInput compute{rt::LaneKind::Compute, {}};
  for (const Action &action : schedule.roles[role]) {
    CommAction call =
        onMicroBatch(CommKind::Compute, action.stage, action.microBatch);
    call.compute = action.kind;
    compute.actions.push_back(call);
  }
  for (size_t k = 0; k < problem.ties.size(); ++k)
    for (const TieRun &run : tieRuns(problem.ties[k], roleOf))
      if (run.role == role)
        compute.actions.push_back(
            onStep(CommKind::TieSum, run.stages.front(), int32_t(k)));
  for (int32_t stage : updatedStages(role))
    compute.actions.push_back(onStep(CommKind::Update, stage));
  lanes.push_back(std::move(compute));
}

/// One load brings a micro-batch in for all stages of the role, ahead of the
/// first of them to run.
void Inserter::load(int32_t role, std::vector<LaneInput> &lanes) {
  LaneInput loads{rt::LaneKind::Load, {}};
  std::set<int32_t> seen;
  for (const Action &action : schedule.roles[role])
    if (action.kind == ActionKind::F && needs[action.stage].loads &&
        seen.insert(action.microBatch).second)
      loads.actions.push_back(onMicroBatch(CommKind::Load,
                                           problem.roles[role].stages.front(),
                                           action.microBatch));
  if (!loads.actions.empty())
    lanes.push_back(std::move(loads));
}

void Inserter::transfers(int32_t s, std::vector<LaneInput> &lanes) {
  using rt::LaneKind;
  const std::initializer_list<ActionKind> forward{ActionKind::F};
  const std::initializer_list<ActionKind> backward{ActionKind::B,
                                                   ActionKind::I};
  auto add = [&](LaneKind kind, CommKind action, int32_t maker,
                 std::initializer_list<ActionKind> kinds) {
    lanes.push_back(lane(kind, action, s,
                         orderOf(schedule.roles[roleOf[maker]], maker, kinds)));
  };
  if (crosses(s - 1))
    add(LaneKind::RecvAct, CommKind::RecvF, s - 1, forward);
  if (crosses(s))
    add(LaneKind::SendAct, CommKind::SendF, s, forward);
  if (gradientCrosses(s))
    add(LaneKind::RecvGrad, CommKind::RecvB, s + 1, backward);
  if (gradientCrosses(s - 1))
    add(LaneKind::SendGrad, CommKind::SendB, s, backward);
}

void Inserter::reduce(int32_t role, std::vector<LaneInput> &lanes) {
  if (problem.roles[role].replicas < 2)
    return;
  LaneInput reduce{rt::LaneKind::Reduce, {}};
  for (int32_t stage : updatedStages(role))
    reduce.actions.push_back(onStep(CommKind::Reduce, stage));
  if (!reduce.actions.empty())
    lanes.push_back(std::move(reduce));
}

void Inserter::ties(int32_t role, std::vector<LaneInput> &lanes) {
  LaneInput ties{rt::LaneKind::Tie, {}};
  for (size_t k = 0; k < problem.ties.size(); ++k)
    for (const CommAction &action :
         tieActions(tieRuns(problem.ties[k], roleOf), int32_t(k), role))
      ties.actions.push_back(action);
  if (!ties.actions.empty())
    lanes.push_back(std::move(ties));
}

void Inserter::run() {
  for (int32_t r = 0; r < int32_t(problem.roles.size()); ++r) {
    std::vector<LaneInput> lanes;
    compute(r, lanes);
    load(r, lanes);
    for (int32_t stage : problem.roles[r].stages)
      transfers(stage, lanes);
    reduce(r, lanes);
    ties(r, lanes);
    problem.roles[r].lanes = std::move(lanes);
  }
  for (size_t s = 0; s < problem.stages.size(); ++s)
    if (bucketCount(problem.stages[s]) > 1)
      cutIntoBuckets(problem, int32_t(s), problem.stages[s].bucketBegins);
}

} // namespace

void takt::insertCommunication(LoweringProblem &problem,
                               const Schedule &schedule) {
  Inserter(problem, schedule).run();
}
