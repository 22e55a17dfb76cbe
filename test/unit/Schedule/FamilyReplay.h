//===- FamilyReplay.h - brute force for pipelines with copies ---*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Whether lists do all the work and run to their ends within memory, found by
// trying every rank again and again. It shares no code with the verifier or the
// clock.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "takt/Schedule/Pipeline.h"

#include <algorithm>
#include <set>
#include <tuple>

namespace takt::test {

inline bool runsToItsEnd(const PipelineProblem &problem,
                         const Pipeline &pipeline) {
  using Done = std::set<std::tuple<int32_t, char, int32_t>>;
  const int32_t stages = problem.stages();
  const int32_t length = stages / problem.chains;
  Done done;
  const auto &lists = pipeline.schedule.roles;
  std::vector<size_t> head(lists.size(), 0);
  std::vector<double> held(lists.size(), 0);
  for (bool moved = true; moved;) {
    moved = false;
    for (size_t rank = 0; rank < lists.size(); ++rank) {
      if (head[rank] == lists[rank].size())
        continue;
      const Action a = lists[rank][head[rank]];
      const int32_t s = a.stage, m = a.microBatch;
      if (s < 0 || s >= stages || m < 0 || m >= problem.microBatches)
        return false;
      const int32_t replica =
          problem.replicas.empty() ? 0 : m % problem.replicas[s];
      if (pipeline.rankOfStage[s] + replica != int32_t(rank))
        return false;
      // 'f' forward, 'i' input gradient, 'w' weight gradient.
      auto has = [&](int32_t stage, char what) {
        return done.count({stage, what, m}) > 0;
      };
      const StageTimes t = problem.at(s);
      if (a.kind == ActionKind::F) {
        if (has(s, 'f'))
          return false;
        if (s % length != 0 && !has(s - 1, 'f'))
          continue;
        done.insert({s, 'f', m});
        held[rank] += t.held;
      } else if (a.kind == ActionKind::W) {
        if (has(s, 'w'))
          return false;
        if (!has(s, 'i'))
          continue;
        done.insert({s, 'w', m});
        held[rank] -= t.kept;
      } else {
        if (has(s, 'i'))
          return false;
        if (!has(s, 'f') || (s % length != length - 1 && !has(s + 1, 'i')))
          continue;
        done.insert({s, 'i', m});
        held[rank] -= t.held - t.kept;
        if (a.kind == ActionKind::B) {
          done.insert({s, 'w', m});
          held[rank] -= t.kept;
        }
      }
      if (!problem.mostHeld.empty() &&
          held[rank] > problem.mostHeld[rank] + 1e-6)
        return false;
      ++head[rank];
      moved = true;
    }
  }
  return done.size() == size_t(3) * stages * problem.microBatches;
}

} // namespace takt::test
