//===- Interleaved.cpp - one forward, one backward, several stages a rank -===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Narayanan et al. 2021, "Efficient Large-Scale Language Model Training on GPU
// Clusters Using Megatron-LM", arXiv 2104.04473.
//
// Two ranks of two stages, four micro-batches, backward as long as forward:
//
//   rank 0  0F0 0F1 2F0 2F1 0F2 2B0 0F3 2B1 2F2 0B0 2F3 0B1 .   2B2 .   2B3
//   rank 1  .   1F0 1F1 3F0 3B0 3F1 3B1 1F2 1B0 1F3 1B1 3F2 3B2 3F3 3B3 1B2
//
//           0B2 0B3
//           1B3 .
//
// Micro-batches go through the chunks in groups: a group through chunk 0, then
// through chunk 1, ...; backwards the same with the chunks from the last to the
// first. Rank r runs 2 (p - r - 1) + (v - 1) g forwards ahead, g being the size
// of the group, then a forward and a backward in turn; with one stage a rank it
// is 1F1B.
//
// The paper has groups of p and m a multiple of it. For any m there are several
// ways to share the rest out, and the one with the least makespan is taken:
// a last group of the rest, the rest added to the group before it, or groups
// that differ by one. A group other than p can ask for a forward behind a
// backward that waits for it; the rank then takes the forward out of turn, the
// least that lets the lists run on.
//
// With equal stages and m >= p the makespan is (m + (p - 1) / v) (F + B), F and
// B being of the whole rank; for m a multiple of p rank r holds 2 (p - r - 1) +
// (v - 1) p + 1 stages' worth.
//
//===----------------------------------------------------------------------===//

#include "Families.h"

#include <algorithm>
#include <set>

namespace takt {

namespace {

struct Pass {
  int32_t chunk, microBatch;
};

/// Sizes of the groups, in their order.
using Groups = std::vector<int32_t>;

class Interleaver {
public:
  Interleaver(const PipelineProblem &problem, const Groups &groups)
      : ranks(problem.ranks), chunks(problem.chunks), stages(problem.stages()) {
    int32_t first = 0;
    for (const int32_t size : groups) {
      for (int32_t chunk = 0; chunk < chunks; ++chunk)
        for (int32_t i = 0; i < size; ++i)
          table.push_back({chunk, first + i});
      first += size;
    }
    largest = *std::max_element(groups.begin(), groups.end());
    done[0].assign(size_t(stages) * first, false);
    done[1] = done[0];
    microBatches = first;
  }

  Schedule run() {
    schedule.roles.resize(ranks);
    forwards.assign(ranks, 0);
    backwards.assign(ranks, 0);
    while (advanceAll() || takeOneEarly()) {
    }
    return std::move(schedule);
  }

private:
  Action forward(int32_t rank) const {
    const Pass &pass = table[forwards[rank]];
    return {pass.chunk * ranks + rank, ActionKind::F, pass.microBatch};
  }
  Action backward(int32_t rank) const {
    const Pass &pass = table[backwards[rank]];
    return {(chunks - 1 - pass.chunk) * ranks + rank, ActionKind::B,
            pass.microBatch};
  }

  size_t cell(int32_t stage, int32_t m) const {
    return size_t(stage) * microBatches + m;
  }
  bool canRun(const Action &a) const {
    if (a.kind == ActionKind::F)
      return a.stage == 0 || done[0][cell(a.stage - 1, a.microBatch)];
    return done[0][cell(a.stage, a.microBatch)] &&
           (a.stage + 1 == stages || done[1][cell(a.stage + 1, a.microBatch)]);
  }

  bool moreForwards(int32_t rank) const {
    return forwards[rank] < int32_t(table.size());
  }
  bool moreBackwards(int32_t rank) const {
    return backwards[rank] < int32_t(table.size());
  }
  /// Forwards ahead are made up first, then it is the forward's turn.
  bool forwardIsNext(int32_t rank) const {
    const int32_t later = ranks - rank - 1;
    const int32_t ahead =
        chunks == 1 ? later : 2 * later + (chunks - 1) * largest;
    return moreForwards(rank) && forwards[rank] - backwards[rank] <= ahead;
  }

  void run(int32_t rank, const Action &a) {
    const bool isForward = a.kind == ActionKind::F;
    schedule.roles[rank].push_back(a);
    done[isForward ? 0 : 1][cell(a.stage, a.microBatch)] = true;
    ++(isForward ? forwards : backwards)[rank];
  }

  /// Every rank as far as its own order goes.
  bool advanceAll() {
    bool moved = false;
    for (int32_t rank = 0; rank < ranks; ++rank)
      while (moreForwards(rank) || moreBackwards(rank)) {
        const Action next =
            forwardIsNext(rank) ? forward(rank) : backward(rank);
        if (!canRun(next))
          break;
        run(rank, next);
        moved = true;
      }
    return moved;
  }

  /// All ranks wait: the first that can runs its next forward instead.
  bool takeOneEarly() {
    for (int32_t rank = 0; rank < ranks; ++rank)
      if (moreForwards(rank) && canRun(forward(rank))) {
        run(rank, forward(rank));
        return true;
      }
    return false;
  }

  const int32_t ranks, chunks, stages;
  int32_t microBatches = 0, largest = 0;
  std::vector<Pass> table;
  std::vector<bool> done[2]; ///< F and B, by stage and micro-batch
  std::vector<int32_t> forwards, backwards;
  Schedule schedule;
};

Groups shareEvenly(int32_t m, int32_t count) {
  Groups groups;
  for (int32_t i = 0; i < count; ++i)
    groups.push_back(m / count + (i < m % count ? 1 : 0));
  return groups;
}

/// Ways to cut m micro-batches into groups of about `size`.
std::set<Groups> waysToGroup(int32_t m, int32_t size) {
  const int32_t whole = m / size, rest = m % size;
  if (whole == 0)
    return {Groups{m}};
  Groups apart(whole, size), joined = apart;
  if (rest == 0)
    return {apart};
  joined.back() += rest;
  apart.push_back(rest);
  return {apart, joined, shareEvenly(m, whole), shareEvenly(m, whole + 1)};
}

} // namespace

Schedule generateInterleaved(const PipelineProblem &problem) {
  const int32_t m = problem.microBatches;
  const int32_t size = problem.group > 0 ? problem.group : problem.ranks;
  Pipeline pipeline;
  pipeline.rankOfStage =
      placeStages(Placement::Interleaved, problem.ranks, problem.chunks);
  Schedule best;
  double least = 0;
  for (const Groups &groups : waysToGroup(m, size)) {
    pipeline.schedule = Interleaver(problem, groups).run();
    if (verifyPipeline(problem, pipeline)) // too much memory
      continue;
    const double makespan = timePipeline(problem, pipeline)->makespan;
    if (best.roles.empty() || makespan < least) {
      best = std::move(pipeline.schedule);
      least = makespan;
    }
  }
  return best;
}

} // namespace takt
