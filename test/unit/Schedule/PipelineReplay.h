//===- PipelineReplay.h - another clock for pipelines -----------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Times of a pipeline as the least solution of all "not before" rules, raised
// until nothing changes: slow, plain, and no code in common with the library.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "takt/Schedule/Pipeline.h"

#include <algorithm>
#include <map>
#include <optional>
#include <random>
#include <tuple>

namespace takt::test {

struct Replay {
  double makespan = 0, longestSpan = 0;
  std::vector<double> peakHeld;
  std::vector<std::vector<double>> start;
};

inline double length(const StageTimes &t, ActionKind kind) {
  switch (kind) {
  case ActionKind::F:
    return t.forward;
  case ActionKind::I:
    return t.inputGrad;
  case ActionKind::W:
    return t.weightGrad;
  case ActionKind::B:
    return t.inputGrad + t.weightGrad;
  }
  return 0;
}

/// Nothing if the rules contradict each other or an input is missing.
inline std::optional<Replay> replay(const PipelineProblem &problem,
                                    const Pipeline &pipeline) {
  struct Node {
    int32_t rank;
    Action action;
    double start = 0;
    std::vector<std::pair<size_t, double>> after; ///< node, wait behind its end
  };
  std::vector<Node> nodes;
  std::map<std::tuple<int32_t, ActionKind, int32_t>, size_t> index;
  for (size_t rank = 0; rank < pipeline.schedule.roles.size(); ++rank)
    for (const Action &a : pipeline.schedule.roles[rank]) {
      index[{a.stage, a.kind, a.microBatch}] = nodes.size();
      nodes.push_back({int32_t(rank), a, 0, {}});
    }
  bool missing = false;
  auto need = [&](Node &node, int32_t stage, std::vector<ActionKind> kinds) {
    for (const ActionKind kind : kinds) {
      const auto found = index.find({stage, kind, node.action.microBatch});
      if (found == index.end())
        continue;
      const bool near = nodes[found->second].rank == node.rank;
      node.after.push_back({found->second, near ? 0 : problem.hop});
      return;
    }
    missing = true;
  };
  for (size_t i = 0; i < nodes.size(); ++i) {
    Node &node = nodes[i];
    const Action a = node.action;
    if (i > 0 && nodes[i - 1].rank == node.rank)
      node.after.push_back({i - 1, 0});
    if (a.kind == ActionKind::F && a.stage > 0)
      need(node, a.stage - 1, {ActionKind::F});
    if (a.kind == ActionKind::I || a.kind == ActionKind::B) {
      need(node, a.stage, {ActionKind::F});
      if (a.stage + 1 < problem.stages())
        need(node, a.stage + 1, {ActionKind::I, ActionKind::B});
    }
    if (a.kind == ActionKind::W)
      need(node, a.stage, {ActionKind::I});
  }
  if (missing)
    return std::nullopt;
  bool raised = true;
  for (size_t round = 0; raised; ++round) {
    if (round > nodes.size() + 1)
      return std::nullopt;
    raised = false;
    for (Node &node : nodes)
      for (const auto &[other, wait] : node.after) {
        const Node &before = nodes[other];
        const double arrival =
            before.start +
            length(problem.at(before.action.stage), before.action.kind) + wait;
        if (arrival > node.start) {
          node.start = arrival;
          raised = true;
        }
      }
  }
  Replay result;
  size_t next = 0;
  for (const std::vector<Action> &list : pipeline.schedule.roles) {
    result.start.emplace_back();
    double held = 0, peak = 0;
    const size_t first = next;
    for (const Action &a : list) {
      const StageTimes t = problem.at(a.stage);
      const double end = nodes[next].start + length(t, a.kind);
      result.start.back().push_back(nodes[next++].start);
      result.makespan = std::max(result.makespan, end);
      result.longestSpan =
          std::max(result.longestSpan, end - nodes[first].start);
      if (a.kind == ActionKind::F)
        peak = std::max(peak, held += t.held);
      else if (a.kind == ActionKind::I)
        held -= t.held - t.kept;
      else
        held -= a.kind == ActionKind::W ? t.kept : t.held;
    }
    result.peakHeld.push_back(peak);
  }
  return result;
}

/// Stages of whole, unequal times.
inline PipelineProblem randomPipeline(std::mt19937 &random, int32_t ranks,
                                      int32_t chunks, int32_t microBatches) {
  auto upTo = [&](uint32_t low, uint32_t high) {
    return double(low + random() % (high - low + 1));
  };
  PipelineProblem problem{ranks, chunks, microBatches};
  for (int32_t s = 0; s < problem.stages(); ++s) {
    const double held = upTo(1, 4);
    problem.times.push_back(
        {upTo(1, 9), upTo(1, 9), upTo(1, 9), held, held * upTo(0, 4) / 4});
  }
  problem.hop = upTo(0, 3);
  return problem;
}

} // namespace takt::test
