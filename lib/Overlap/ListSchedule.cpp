//===- ListSchedule.cpp - the first answer and its bound ------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// List scheduling over the lanes, and the bound of paths and loads.
//
//===----------------------------------------------------------------------===//
#include "takt/Overlap/Overlap.h"

#include "Paths.h"

#include <algorithm>
#include <limits>

using namespace takt;

Paths::Paths(const OverlapProblem &problem) {
  size_t count = problem.actions.size();
  before.resize(count);
  head.assign(count, 0);
  tail.assign(count, 0);
  int32_t lastCompute = -1;
  for (size_t i = 0; i < count; ++i) {
    const OverlapAction &a = problem.actions[i];
    before[i] = a.after;
    if (a.isCompute && lastCompute >= 0)
      before[i].push_back(lastCompute);
    if (a.isCompute)
      lastCompute = int32_t(i);
    head[i] = a.release;
    for (int32_t b : before[i])
      head[i] = std::max(head[i], head[b] + problem.actions[b].time);
  }
  for (size_t i = count; i-- > 0;) {
    tail[i] = std::max(tail[i], problem.actions[i].tail);
    for (int32_t b : before[i])
      tail[b] = std::max(tail[b], problem.actions[i].time + tail[i]);
  }
}

OverlapSolution takt::listSchedule(const OverlapProblem &problem,
                                   ListRule rule) {
  const Paths paths(problem);
  size_t count = problem.actions.size();
  OverlapSolution out;
  out.start.assign(count, -1);
  out.lane.assign(count, -1);
  out.method = "list scheduling";
  constexpr Nanos never = std::numeric_limits<Nanos>::max();
  std::vector<Nanos> laneFree(problem.lanes, 0);

  /// Earliest start by release and dependences; `never` while one of them has
  /// no time yet.
  auto readyAt = [&](size_t i) {
    Nanos ready = problem.actions[i].release;
    for (int32_t b : paths.before[i]) {
      if (out.start[b] < 0)
        return never;
      ready = std::max(ready, out.start[b] + problem.actions[b].time);
    }
    return ready;
  };
  for (size_t left = count; left > 0; --left) {
    // The next start in time; compute before communication at equal times, as
    // it takes nothing away from it.
    size_t best = count;
    Nanos bestStart = never, bestReady = never;
    for (size_t i = 0; i < count; ++i) {
      if (out.start[i] >= 0)
        continue;
      const OverlapAction &a = problem.actions[i];
      Nanos ready = readyAt(i);
      if (ready == never)
        continue;
      Nanos start = a.isCompute
                        ? ready
                        : std::max(ready, *std::min_element(laneFree.begin(),
                                                            laneFree.end()));
      bool wins = start < bestStart;
      if (start == bestStart && best < count) {
        const OverlapAction &other = problem.actions[best];
        if (a.isCompute != other.isCompute)
          wins = a.isCompute;
        else if (rule == ListRule::ByReady && ready != bestReady)
          wins = ready < bestReady;
        else
          wins = a.time + paths.tail[i] > other.time + paths.tail[best];
      }
      if (wins) {
        best = i;
        bestStart = start;
        bestReady = ready;
      }
    }
    const OverlapAction &a = problem.actions[best];
    out.start[best] = bestStart;
    if (!a.isCompute) {
      auto lane = std::min_element(laneFree.begin(), laneFree.end());
      out.lane[best] = int32_t(lane - laneFree.begin());
      *lane = bestStart + a.time;
    }
    out.makespan = std::max(out.makespan, bestStart + a.time + a.tail);
  }
  return out;
}

std::optional<OverlapSolution>
takt::inOrder(const OverlapProblem &problem,
              const std::vector<std::vector<int32_t>> &lanes) {
  std::vector<std::vector<int32_t>> before = Paths(problem).before;
  size_t count = problem.actions.size();
  OverlapSolution out;
  out.start.assign(count, -1);
  out.lane.assign(count, -1);
  out.method = "list scheduling";
  for (size_t l = 0; l < lanes.size(); ++l)
    for (size_t k = 0; k < lanes[l].size(); ++k) {
      out.lane[lanes[l][k]] = int32_t(l);
      if (k > 0)
        before[lanes[l][k]].push_back(lanes[l][k - 1]);
    }
  // Each round places at least one action, or the order is a circle.
  for (size_t left = count; left > 0;) {
    size_t placed = 0;
    for (size_t i = 0; i < count; ++i) {
      const OverlapAction &a = problem.actions[i];
      bool isReady = out.start[i] < 0 &&
                     std::all_of(before[i].begin(), before[i].end(),
                                 [&](int32_t b) { return out.start[b] >= 0; });
      if (!isReady)
        continue;
      out.start[i] = a.release;
      for (int32_t b : before[i])
        out.start[i] =
            std::max(out.start[i], out.start[b] + problem.actions[b].time);
      out.makespan = std::max(out.makespan, out.start[i] + a.time + a.tail);
      ++placed;
    }
    if (placed == 0)
      return std::nullopt;
    left -= placed;
  }
  return out;
}

Nanos takt::overlapBound(const OverlapProblem &problem) {
  const Paths paths(problem);
  std::vector<int32_t> comm; // by descending tail
  Nanos bound = 0;
  for (size_t i = 0; i < problem.actions.size(); ++i) {
    bound = std::max(bound,
                     paths.head[i] + problem.actions[i].time + paths.tail[i]);
    if (!problem.actions[i].isCompute)
      comm.push_back(int32_t(i));
  }
  std::stable_sort(comm.begin(), comm.end(), [&](int32_t a, int32_t b) {
    return paths.tail[a] > paths.tail[b];
  });
  for (int32_t first : comm) {
    Nanos work = 0;
    for (int32_t i : comm) {
      if (paths.head[i] < paths.head[first])
        continue;
      work += problem.actions[i].time;
      Nanos shared = (work + problem.lanes - 1) / problem.lanes;
      bound = std::max(bound, paths.head[first] + shared + paths.tail[i]);
    }
  }
  return bound;
}
