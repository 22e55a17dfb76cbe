//===- Bounds.cpp - makespans that no order can go below
//--------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// A rank cannot begin before the first forward reaches it, and until the first
// gradient comes back it has only forwards to run, as many as it can hold. Its
// last F or backward is a backward, which stage 0 still waits for.
//
//===----------------------------------------------------------------------===//

#include "takt/Schedule/Pipeline.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace takt {

namespace {

constexpr double kNoLimit = std::numeric_limits<double>::infinity();

class Bounder {
public:
  Bounder(const PipelineProblem &problem, const std::vector<int32_t> &ranks,
          bool splits)
      : problem(problem), rankOfStage(ranks), splits(splits),
        stages(problem.stages()), toForward(stages), toBackward(stages),
        tail(stages), stagesOfRank(problem.ranks) {
    findPaths();
    for (int32_t s = 0; s < stages; ++s)
      stagesOfRank[rankOfStage[s]].push_back(s);
  }

  PipelineBounds run() {
    // One micro-batch there, back, and the work after its gradients.
    bounds.criticalPath =
        toBackward[stages - 1] + backward(stages - 1) + tail[stages - 1];
    for (int32_t rank = 0; rank < problem.ranks; ++rank)
      if (!stagesOfRank[rank].empty())
        boundRank(rank);
    return bounds;
  }

private:
  double hopBetween(int32_t a, int32_t b) const {
    return rankOfStage[a] == rankOfStage[b] ? 0 : problem.hop;
  }
  /// Time that the stage below waits for.
  double backward(int32_t s) const {
    const StageTimes t = problem.at(s);
    return t.inputGrad + (splits ? 0 : t.weightGrad);
  }
  double weights(int32_t s) const {
    return splits ? problem.at(s).weightGrad : 0;
  }

  /// Earliest starts of every stage's first forward and backward, and what must
  /// still happen after a backward has ended.
  void findPaths() {
    for (int32_t s = 1; s < stages; ++s)
      toForward[s] =
          toForward[s - 1] + problem.at(s - 1).forward + hopBetween(s - 1, s);
    const int32_t last = stages - 1;
    toBackward[last] = toForward[last] + problem.at(last).forward;
    for (int32_t s = last - 1; s >= 0; --s)
      toBackward[s] =
          toBackward[s + 1] + backward(s + 1) + hopBetween(s, s + 1);
    tail[0] = weights(0);
    for (int32_t s = 1; s < stages; ++s)
      tail[s] = std::max(weights(s),
                         hopBetween(s - 1, s) + backward(s - 1) + tail[s - 1]);
  }

  /// Most time of forwards that a rank can run before it gives anything back.
  double mostForwards(const std::vector<int32_t> &own, double limit) const {
    const int32_t m = problem.microBatches;
    std::vector<StageTimes> order;
    for (const int32_t s : own)
      order.push_back(problem.at(s));
    std::sort(order.begin(), order.end(),
              [](const StageTimes &a, const StageTimes &b) {
                return a.forward * b.held > b.forward * a.held;
              });
    const bool alike =
        std::all_of(order.begin(), order.end(), [&](const StageTimes &t) {
          return t.held == order[0].held;
        });
    double room = limit, sum = 0;
    for (const StageTimes &t : order) {
      if (t.held == 0 || room == kNoLimit) {
        sum += m * t.forward;
        continue;
      }
      // Passes of different sizes may fill the room to the brim; a slack keeps
      // sums of fractions from losing a pass.
      double count = room / t.held;
      if (alike)
        count = std::floor(count * (1 + 1e-9));
      count = std::min(count, double(m));
      sum += count * t.forward;
      room -= count * t.held;
    }
    return sum;
  }

  void boundRank(int32_t rank) {
    const std::vector<int32_t> &own = stagesOfRank[rank];
    const double limit =
        problem.mostHeld.empty() ? kNoLimit : problem.mostHeld[rank];
    const int32_t m = problem.microBatches;
    double work = 0, inLine = 0, memory = 0, leastTail = kNoLimit;
    double firstBackward = kNoLimit;
    for (const int32_t s : own) {
      const StageTimes t = problem.at(s);
      work += m * (t.forward + t.inputGrad + t.weightGrad);
      inLine += m * (t.forward + backward(s));
      memory += m * (t.held * (toBackward[s] + backward(s) - toForward[s]) +
                     (splits ? t.kept * t.weightGrad : 0));
      leastTail = std::min(leastTail, tail[s]);
      firstBackward = std::min(firstBackward, toBackward[s]);
    }
    const double head = toForward[own.front()];
    const double ahead =
        std::min(firstBackward - head, mostForwards(own, limit));
    const double front = firstBackward - ahead;
    raise(bounds.headAndWork, head + work);
    raise(bounds.warmUp, front + work);
    raise(bounds.busyAndTail, front + inLine + leastTail);
    if (limit > 0 && limit < kNoLimit)
      raise(bounds.memoryTime, head + memory / limit);
  }

  static void raise(double &bound, double to) { bound = std::max(bound, to); }

  const PipelineProblem &problem;
  const std::vector<int32_t> &rankOfStage;
  const bool splits;
  const int32_t stages;
  std::vector<double> toForward, toBackward, tail;
  std::vector<std::vector<int32_t>> stagesOfRank;
  PipelineBounds bounds;
};

/// Chains may start anywhere, and replicas share a stage's micro-batches.
double mostWork(const PipelineProblem &problem,
                const std::vector<int32_t> &rankOfStage) {
  const ScheduleProblem shape{problem.stages(), problem.microBatches,
                              rankOfStage, problem.chains, problem.replicas};
  std::vector<double> work(problem.ranks, 0);
  for (int32_t s = 0; s < shape.stages; ++s) {
    const StageTimes t = problem.at(s);
    for (int32_t m = 0; m < shape.microBatches; ++m)
      work[rankOfStage[s] + shape.replicaOf(s, m)] +=
          t.forward + t.inputGrad + t.weightGrad;
  }
  return *std::max_element(work.begin(), work.end());
}

} // namespace

double PipelineBounds::best() const {
  return std::max({headAndWork, criticalPath, warmUp, memoryTime, busyAndTail});
}

PipelineBounds boundPipeline(const PipelineProblem &problem,
                             const std::vector<int32_t> &rankOfStage,
                             bool splitsBackward) {
  if (problem.chains > 1 || !problem.replicas.empty()) {
    PipelineBounds bounds;
    bounds.headAndWork = mostWork(problem, rankOfStage);
    return bounds;
  }
  return Bounder(problem, rankOfStage, splitsBackward).run();
}

} // namespace takt
