//===- RandomProblem.cpp - small chains for the oracle --------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Magnitudes are chosen so that stage times, transfers and all-reduces compete,
// and memory limits so that about a third of the problems is infeasible.
//
//===----------------------------------------------------------------------===//

#include "RandomProblem.h"

#include <fmt/format.h>

#include <algorithm>

namespace takt::test {

int64_t Random::in(int64_t low, int64_t high) {
  state += 0x9E3779B97F4A7C15u;
  uint64_t z = state;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  z ^= z >> 31;
  return low + int64_t(z % uint64_t(high - low + 1));
}

static SegmentCost randomSegment(Random &random, int64_t index,
                                 const std::vector<int64_t> &options) {
  SegmentCost segment;
  segment.name = fmt::format("s{}", index);
  const int64_t time = random.in(0, 600), fixed = random.in(0, 20);
  const Bytes saved = random.in(0, 120), space = random.in(0, 200);
  segment.outputWhole = random.in(1, 240);
  segment.weights = random.in(0, 900);
  segment.gradients = random.chance(80) ? segment.weights : 0;
  segment.optimizerState = segment.gradients * random.in(0, 2);
  const Nanos update = segment.gradients / 20;
  for (const int64_t r : options) {
    // Now and then more replicas do not help at all.
    segment.time.push_back(random.chance(5) ? time : time / r + fixed);
    segment.update.push_back(update);
    segment.saved.push_back((saved + r - 1) / r);
    segment.workspace.push_back((space + r - 1) / r);
    segment.output.push_back((segment.outputWhole + r - 1) / r);
  }
  segment.gradientCrosses = random.chance(75);
  segment.mayCutAfter = random.chance(90);
  return segment;
}

static rt::Link randomLink(Random &random, const char *name, int64_t slow) {
  rt::Link link;
  link.name = name;
  link.latency = random.in(0, 10) * slow;
  link.bytesPerSecond =
      random.chance(10) ? 0 : double(random.in(2, 40)) * 1e9 / double(slow);
  return link;
}

/// A wish of the user, in some of the problems.
static void addWish(Random &random, PartitionProblem &problem) {
  const int64_t segments = problem.segments.size();
  switch (random.in(0, 9)) {
  case 0:
  case 1:
    problem.stages = random.in(1, 5);
    break;
  case 2: {
    std::vector<int64_t> cuts;
    for (int64_t at = 1; at < segments; ++at)
      if (random.chance(20))
        cuts.push_back(at);
    problem.cuts = cuts;
    break;
  }
  case 3:
    problem.replicas = random.in(1, 3);
    break;
  case 4:
    problem.useAllDevices = true;
    break;
  case 5:
    problem.maxStages = random.in(1, 4);
    break;
  default:
    break;
  }
}

PartitionProblem randomProblem(uint64_t seed) {
  Random random(seed);
  PartitionProblem problem;
  problem.replicaOptions.clear();
  for (int64_t r = 1; r <= 4; ++r)
    if (random.chance(r == 1 ? 95 : 50))
      problem.replicaOptions.push_back(r);
  if (problem.replicaOptions.empty())
    problem.replicaOptions.push_back(random.in(1, 4));
  const int64_t segments = random.in(1, 10);
  for (int64_t i = 0; i < segments; ++i) {
    if (i > 0 && random.chance(30)) { // equal blocks
      problem.segments.push_back(problem.segments[random.in(0, i - 1)]);
      problem.segments.back().name = fmt::format("s{}", i);
      continue;
    }
    problem.segments.push_back(
        randomSegment(random, i, problem.replicaOptions));
  }
  problem.cluster.devices = std::max(random.in(1, 4), random.in(1, 4));
  problem.cluster.devicesPerNode = int64_t(1) << random.in(0, 2);
  problem.cluster.intraNode = randomLink(random, "inside", 1);
  problem.cluster.network = randomLink(random, "network", random.in(1, 6));
  problem.microBatches = random.in(1, 8);
  problem.inFlight =
      random.chance(60) ? InFlightPolicy::OneFOneB : InFlightPolicy::GPipe;
  if (random.chance(70))
    problem.cluster.memory = random.in(800, 1600) * random.in(1, segments + 1);
  addWish(random, problem);
  return problem;
}

} // namespace takt::test
