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
// With gradient buckets the last backward comes in pieces, and each bucket is
// reduced while the later pieces run:
//
//   compute    ...  0B7.0   0B7.1          0B7.2               0UPDATE
//   reduce                0REDUCE_GRAD0  0REDUCE_GRAD1  0REDUCE_GRAD2
//
//===----------------------------------------------------------------------===//
#include "takt/Lower/Lower.h"

#include <algorithm>

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

/// Micro-batches in the order in which `actions` do one of `kinds`.
std::vector<int32_t> orderOf(const std::vector<Action> &actions,
                             std::initializer_list<ActionKind> kinds) {
  std::vector<int32_t> order;
  for (const Action &action : actions)
    if (std::find(kinds.begin(), kinds.end(), action.kind) != kinds.end())
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

/// The partial sum travels up the stages of the tie, the full sum comes back
/// from the last one to all others.
std::vector<CommAction> tieActions(const TieInput &tie, int32_t index,
                                   int32_t stage) {
  std::vector<CommAction> actions;
  const auto &stages = tie.stages;
  auto it = std::find(stages.begin(), stages.end(), stage);
  if (it == stages.end() || stages.size() < 2)
    return actions;
  if (it != stages.begin())
    actions.push_back(onStep(CommKind::TieRecv, stage, index, *(it - 1)));
  if (it + 1 != stages.end()) {
    actions.push_back(onStep(CommKind::TieSend, stage, index, *(it + 1)));
    actions.push_back(onStep(CommKind::TieRecv, stage, index, stages.back()));
  } else {
    for (auto other = stages.begin(); other != it; ++other)
      actions.push_back(onStep(CommKind::TieSend, stage, index, *other));
  }
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
    needs.updates = needs.updates || layer.profiled.parameters > 0;
  }
  return needs;
}

} // namespace

void takt::insertCommunication(LoweringProblem &problem,
                               const Schedule &schedule) {
  const Graph &graph = problem.graph;
  std::vector<bool> needsGrad = valuesNeedingGrad(graph);
  int32_t count = int32_t(problem.stages.size());
  // The value over a boundary is the output of the last layer before it.
  auto gradientCrosses = [&](int32_t boundary) {
    int32_t last = problem.stages[boundary].layerEnd - 1;
    return bool(needsGrad[graph.layers[last].output]);
  };
  const std::initializer_list<ActionKind> forward{ActionKind::F};
  const std::initializer_list<ActionKind> backward{ActionKind::B,
                                                   ActionKind::I};

  for (int32_t s = 0; s < count; ++s) {
    StageInput &stage = problem.stages[s];
    StageNeeds needs = needsOf(graph, stage);
    const std::vector<Action> &own = schedule.roles[s];
    std::vector<LaneInput> lanes;

    LaneInput compute{rt::LaneKind::Compute, {}};
    for (const Action &action : own) {
      CommAction call = onMicroBatch(CommKind::Compute, s, action.microBatch);
      call.compute = action.kind;
      compute.actions.push_back(call);
    }
    LaneInput tieLane{rt::LaneKind::Tie, {}};
    for (size_t k = 0; k < problem.ties.size(); ++k) {
      const auto &stages = problem.ties[k].stages;
      if (std::find(stages.begin(), stages.end(), s) == stages.end())
        continue;
      compute.actions.push_back(onStep(CommKind::TieSum, s, int32_t(k)));
      for (const CommAction &action : tieActions(problem.ties[k], int32_t(k), s))
        tieLane.actions.push_back(action);
    }
    if (needs.updates)
      compute.actions.push_back(onStep(CommKind::Update, s));
    lanes.push_back(std::move(compute));

    if (needs.loads)
      lanes.push_back(lane(rt::LaneKind::Load, CommKind::Load, s,
                           orderOf(own, forward)));
    if (s > 0)
      lanes.push_back(lane(rt::LaneKind::RecvAct, CommKind::RecvF, s,
                           orderOf(schedule.roles[s - 1], forward)));
    if (s + 1 < count)
      lanes.push_back(lane(rt::LaneKind::SendAct, CommKind::SendF, s,
                           orderOf(own, forward)));
    if (s + 1 < count && gradientCrosses(s))
      lanes.push_back(lane(rt::LaneKind::RecvGrad, CommKind::RecvB, s,
                           orderOf(schedule.roles[s + 1], backward)));
    if (s > 0 && gradientCrosses(s - 1))
      lanes.push_back(lane(rt::LaneKind::SendGrad, CommKind::SendB, s,
                           orderOf(own, backward)));
    if (stage.replicas > 1 && needs.updates)
      lanes.push_back(
          {rt::LaneKind::Reduce, {onStep(CommKind::Reduce, s)}});
    if (!tieLane.actions.empty())
      lanes.push_back(std::move(tieLane));
    stage.lanes = std::move(lanes);
    if (bucketCount(stage) > 1)
      cutIntoBuckets(stage, stage.bucketBegins);
  }
}
