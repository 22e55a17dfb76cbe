//===- RandomPlan.cpp - random correct plans for the proof ------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Besides GPipe and 1F1B there are random orders: a stage does any work that is
// open to it, with backward passes split in two at random.
//
//===----------------------------------------------------------------------===//
#include "RandomPlan.h"

#include "../Lower/TestModels.h"

#include <algorithm>
#include <numeric>
#include <random>
#include <set>

namespace takt::test {

namespace {

using Random = std::mt19937;

int pick(Random &random, int least, int most) {
  return least + static_cast<int>(random() % uint32_t(most - least + 1));
}

/// Actions drawn one by one over all stages, each when its inputs are made, so
/// that the lists can run together; list r takes those of the stages on r.
Schedule randomSchedule(Random &random, const std::vector<int> &roleOf,
                        int microBatches) {
  const int stages = int(roleOf.size());
  Schedule schedule{"random", {}};
  schedule.roles.resize(1 + *std::max_element(roleOf.begin(), roleOf.end()));
  struct State {
    int forward = 0, backward = 0;
    std::vector<int> weights; ///< input gradient made, weight gradient open
  };
  std::vector<State> states(stages);
  bool split = pick(random, 0, 1) == 1;
  auto open = [&](int s, int kind) {
    const State &state = states[s];
    if (kind == 0)
      return state.forward < microBatches &&
             (s == 0 || states[s - 1].forward > state.forward);
    if (kind == 1)
      return state.backward < state.forward &&
             (s + 1 == stages || states[s + 1].backward > state.backward);
    return !state.weights.empty();
  };
  for (;;) {
    std::vector<std::pair<int, int>> choices;
    for (int s = 0; s < stages; ++s)
      for (int kind = 0; kind < 3; ++kind)
        if (open(s, kind))
          choices.push_back({s, kind});
    if (choices.empty())
      return schedule;
    auto [s, kind] = choices[random() % choices.size()];
    State &state = states[s];
    std::vector<Action> &actions = schedule.roles[roleOf[s]];
    if (kind == 0) {
      actions.push_back({s, ActionKind::F, state.forward++});
    } else if (kind == 1) {
      bool apart = split && pick(random, 0, 1) == 1;
      int m = state.backward++;
      actions.push_back({s, apart ? ActionKind::I : ActionKind::B, m});
      if (apart)
        state.weights.push_back(m);
    } else {
      actions.push_back({s, ActionKind::W, state.weights.front()});
      state.weights.erase(state.weights.begin());
    }
  }
}

/// Each stage on a role of its own.
std::vector<int> apart(int stages) {
  std::vector<int> roleOf(stages);
  std::iota(roleOf.begin(), roleOf.end(), 0);
  return roleOf;
}

/// Stages on fewer roles at random, counted by their first stages.
Schedule randomPlacement(Random &random, int stages, int microBatches) {
  const int roles = pick(random, 1, stages - 1);
  std::vector<int> numbers(roles, -1), roleOf;
  int next = 0;
  for (int s = 0; s < stages; ++s) {
    int &number = numbers[pick(random, 0, roles - 1)];
    number = number < 0 ? next++ : number;
    roleOf.push_back(number);
  }
  return randomSchedule(random, roleOf, microBatches);
}

} // namespace

rt::Plan randomPlan(uint32_t seed, const RandomPlanLimits &limits) {
  Random random(seed);
  bool gpt = pick(random, 0, 1) == 1;
  GptShape shape;
  shape.blocks = 1;
  shape.width = 8;
  shape.positions = 4;
  shape.vocab = 8;
  shape.tied = pick(random, 0, 1) == 1;
  shape.frozenPrefix = pick(random, 0, 5) == 0;
  Graph graph = gpt ? makeGpt(shape) : makeMlp(pick(random, 2, 6), 8);
  int segments = static_cast<int>(chainSegments(graph).size());
  int stages = pick(random, 1, std::min(limits.stages, segments));
  std::set<int64_t> cuts;
  while (static_cast<int>(cuts.size()) + 1 < stages)
    cuts.insert(pick(random, 1, segments - 1));
  int m = pick(random, 1, limits.microBatches);
  std::vector<int32_t> replicas;
  bool equal = pick(random, 0, 1) == 1 || limits.equalReplicas;
  int all = pick(random, 1, limits.replicas);
  for (int s = 0; s < stages; ++s)
    replicas.push_back(equal ? all : pick(random, 1, limits.replicas));
  const char *name = pick(random, 0, 1) == 1 ? "1f1b" : "gpipe";
  LoweringProblem problem =
      makeProblem(std::move(graph), {cuts.begin(), cuts.end()}, m, replicas,
                  name, /*microBatchSize=*/12);
  if (pick(random, 0, 2) == 0) {
    problem.schedule = "random";
    insertCommunication(problem, randomSchedule(random, apart(stages), m));
  }
  // A share of the jobs have several stages a role, in any placement.
  if (stages > 1 && pick(random, 0, 2) == 0)
    problem =
        placeStages(std::move(problem), randomPlacement(random, stages, m));
  // A share of the stages reduce their gradients in buckets.
  for (int32_t s = 0; s < stages; ++s) {
    const StageInput &stage = problem.stages[s];
    const RoleInput &role = problem.roles[problem.roleOfStage()[s]];
    bool reduces = false;
    for (const LaneInput &lane : role.lanes)
      for (const CommAction &action : lane.actions)
        reduces |= action.kind == CommKind::Reduce && action.stage == s;
    int layers = stage.layerEnd - stage.layerBegin;
    if (!reduces || layers < 2 || pick(random, 0, 1) == 0)
      continue;
    int cut = stage.layerBegin + pick(random, 1, layers - 1);
    std::vector<Bytes> bytes = gradientBytes(problem.graph, stage);
    Bytes below = 0, above = 0;
    for (int l = stage.layerBegin; l < stage.layerEnd; ++l)
      (l < cut ? below : above) += bytes[l - stage.layerBegin];
    if (below == 0 || above == 0)
      continue;
    std::vector<std::vector<int32_t>> lanes = {{0, 1}};
    if (pick(random, 0, 1) == 1)
      lanes = {{0}, {1}};
    cutIntoBuckets(problem, s, {cut, stage.layerBegin}, lanes);
    if (problem.check())
      return randomPlan(seed + 100'000, limits); // a cut that may not be
  }
  return lower(problem);
}

} // namespace takt::test
