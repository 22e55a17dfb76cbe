//===- BruteForce.cpp - every order and lane ------------------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// For a given order on given lanes the earliest starts are longest paths; they
// are found by relaxation, and an order that waits for itself never settles.
//
//===----------------------------------------------------------------------===//
#include "BruteForce.h"

#include <algorithm>
#include <limits>

using namespace takt;

namespace {

using Arcs = std::vector<std::pair<int32_t, int32_t>>;

Nanos makespanOf(const OverlapProblem &problem, const Arcs &arcs) {
  size_t count = problem.actions.size();
  std::vector<Nanos> start(count);
  for (size_t i = 0; i < count; ++i)
    start[i] = problem.actions[i].release;
  bool moved = true;
  for (size_t round = 0; moved && round <= count; ++round) {
    moved = false;
    for (auto [a, b] : arcs) {
      Nanos least = start[a] + problem.actions[a].time;
      if (start[b] < least) {
        start[b] = least;
        moved = true;
      }
    }
  }
  if (moved)
    return std::numeric_limits<Nanos>::max();
  Nanos makespan = 0;
  for (size_t i = 0; i < count; ++i)
    makespan = std::max(makespan, start[i] + problem.actions[i].time +
                                      problem.actions[i].tail);
  return makespan;
}

} // namespace

Nanos takt::test::bruteForceOverlap(const OverlapProblem &problem) {
  Arcs fixed;
  std::vector<int32_t> comm;
  int32_t lastCompute = -1;
  for (size_t i = 0; i < problem.actions.size(); ++i) {
    int32_t action = int32_t(i);
    for (int32_t before : problem.actions[i].after)
      fixed.push_back({before, action});
    if (!problem.actions[i].isCompute) {
      comm.push_back(action);
      continue;
    }
    if (lastCompute >= 0)
      fixed.push_back({lastCompute, action});
    lastCompute = action;
  }
  Nanos best = std::numeric_limits<Nanos>::max();
  std::vector<int32_t> order = comm;
  do {
    uint32_t choices = problem.lanes > 1 ? 1u << order.size() : 1u;
    for (uint32_t lanes = 0; lanes < choices; ++lanes) {
      Arcs arcs = fixed;
      int32_t last[2] = {-1, -1};
      for (size_t k = 0; k < order.size(); ++k) {
        int32_t &before = last[(lanes >> k) & 1];
        if (before >= 0)
          arcs.push_back({before, order[k]});
        before = order[k];
      }
      best = std::min(best, makespanOf(problem, arcs));
    }
  } while (std::next_permutation(order.begin(), order.end()));
  return best;
}
