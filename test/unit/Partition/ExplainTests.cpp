//===- ExplainTests.cpp - reasons and ways out ----------------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// An infeasible problem must say what clashes, with numbers, and every way out
// that it offers must really lead out.
//
//===----------------------------------------------------------------------===//

#include "RandomProblem.h"

#include <gtest/gtest.h>

#include <fmt/format.h>

using namespace takt;

namespace {

constexpr Bytes kGiB = Bytes(1) << 30;

/// Segments that each need `weights`, and `saved` a micro-batch in flight.
PartitionProblem chainOf(int segments, Bytes weights, Bytes saved) {
  PartitionProblem problem;
  for (int i = 0; i < segments; ++i) {
    SegmentCost segment;
    segment.name = fmt::format("h.{}", i);
    segment.time = {1000};
    segment.update = {0};
    segment.saved = {saved};
    segment.workspace = {0};
    segment.output = {0};
    segment.weights = weights;
    problem.segments.push_back(segment);
  }
  problem.cluster.devices = 4;
  problem.cluster.devicesPerNode = 4;
  problem.cluster.memory = 8 * kGiB;
  problem.microBatches = 4;
  return problem;
}

Infeasible failureOf(const PartitionProblem &problem) {
  const PartitionResult result = solvePartition(problem);
  EXPECT_FALSE(result.partition.has_value());
  return result.infeasible;
}

using Ways = std::vector<std::string>;

TEST(Explain, OneSegmentTooLarge) {
  PartitionProblem problem = chainOf(4, kGiB, 0);
  problem.segments[3].weights = 12 * kGiB;
  const Infeasible failure = failureOf(problem);
  EXPECT_EQ(failure.reason, "segment 'h.3' alone needs 12 GiB a device with 1 "
                            "replica and 1 micro-batch in flight, devices have "
                            "8 GiB");
  EXPECT_EQ(failure.waysOut, (Ways{"use devices with at least 12 GiB"}));
}

TEST(Explain, GPipeHoldsTooMuch) {
  PartitionProblem problem = chainOf(4, kGiB, 2 * kGiB);
  problem.inFlight = InFlightPolicy::GPipe;
  const Infeasible failure = failureOf(problem);
  EXPECT_EQ(failure.reason, "segment 'h.0' alone needs 9 GiB a device with 1 "
                            "replica and 4 micro-batches in flight, devices "
                            "have 8 GiB");
  // Three stages, the first with three micro-batches in flight: 7 GiB.
  EXPECT_EQ(failure.waysOut,
            (Ways{"use the schedule 1f1b, which holds fewer micro-batches than "
                  "gpipe",
                  "use devices with at least 9 GiB"}));
}

// Figures are shown with four digits and must not be rounded below what works.
TEST(Explain, MemoryIsRoundedUp) {
  PartitionProblem problem = chainOf(1, 9 * kGiB + 1, 0);
  EXPECT_EQ(failureOf(problem).waysOut,
            (Ways{"use devices with at least 9.005 GiB"}));
}

TEST(Explain, TooFewDevicesForMemory) {
  const PartitionProblem problem = chainOf(10, 4 * kGiB, 0);
  const Infeasible failure = failureOf(problem);
  EXPECT_EQ(failure.reason,
            "at least 5 devices are needed for memory (8 GiB each), there are "
            "4");
  EXPECT_EQ(failure.waysOut, (Ways{"use 5 devices of this kind",
                                   "use devices with at least 12 GiB"}));
}

TEST(Explain, TooManyStages) {
  PartitionProblem problem = chainOf(3, kGiB, 0);
  problem.stages = 4;
  Infeasible failure = failureOf(problem);
  EXPECT_EQ(failure.reason,
            "4 stages are asked for, but the chain can be cut into at most 3");
  EXPECT_EQ(failure.waysOut, (Ways{"leave the number of stages free"}));

  problem = chainOf(6, kGiB, 0);
  problem.stages = 5;
  failure = failureOf(problem);
  EXPECT_EQ(failure.reason,
            "5 stages of at least 1 device each need 5, there are 4");
  EXPECT_EQ(failure.waysOut, (Ways{"leave the number of stages free",
                                   "use 5 devices of this kind"}));
}

TEST(Explain, ForbiddenCuts) {
  PartitionProblem problem = chainOf(3, 4 * kGiB, 0);
  problem.segments[1].mayCutAfter = false;
  problem.segments[0].mayCutAfter = false;
  const Infeasible failure = failureOf(problem);
  EXPECT_EQ(failure.reason,
            "segments 'h.0' to 'h.2' together need 12 GiB a device with 1 "
            "replica and 1 micro-batch in flight, devices have 8 GiB");
  EXPECT_EQ(failure.waysOut.front(), "allow cuts after every segment");
}

TEST(Explain, ReplicasThatAreNotPossible) {
  PartitionProblem problem = chainOf(3, kGiB, 0);
  problem.replicas = 3;
  const Infeasible failure = failureOf(problem);
  EXPECT_EQ(failure.reason,
            "a stage cannot have 3 replicas on 4 devices, only 1");
  EXPECT_EQ(failure.waysOut, (Ways{"leave the number of replicas free"}));
}

TEST(Explain, DevicesThatDoNotAddUp) {
  PartitionProblem problem = chainOf(3, kGiB, 0);
  problem.useAllDevices = true;
  const Infeasible failure = failureOf(problem);
  EXPECT_EQ(failure.reason, "no choice of replicas (1) for at most 3 stages "
                            "adds up to all 4 devices");
  EXPECT_EQ(failure.waysOut, (Ways{"do not insist on using all devices"}));
}

TEST(Explain, FaultyProblems) {
  EXPECT_EQ(failureOf({}).reason,
            "there is nothing to assign: the chain has no segments");
  PartitionProblem problem = chainOf(3, kGiB, 0);
  problem.segments[1].time = {-1};
  EXPECT_EQ(failureOf(problem).reason, "segment 'h.1' has negative times");
  problem = chainOf(3, kGiB, 0);
  problem.cuts = std::vector<int64_t>{2, 2};
  EXPECT_EQ(failureOf(problem).reason,
            "cut 2 does not come after 2: cuts must ascend from 1");
  problem.cuts = std::vector<int64_t>{3};
  EXPECT_EQ(failureOf(problem).reason,
            "cut 3 leaves no segment behind it, there are 3");
  problem = chainOf(3, kGiB, 0);
  problem.segments[0].time = {int64_t(1) << 61};
  EXPECT_EQ(failureOf(problem).reason,
            "the times add up to more than can be counted in nanoseconds");
  problem = chainOf(3, kGiB, 0);
  problem.cluster.network.bytesPerSecond = 1e-300;
  problem.segments[0].outputWhole = 1;
  EXPECT_TRUE(problem.check().has_value());
}

// Brute force confirms what the ways out promise.
TEST(Explain, WaysOutLeadOut) {
  int checked = 0;
  for (uint64_t seed = 0; seed < 600; ++seed) {
    const PartitionProblem problem = test::randomProblem(seed);
    const PartitionResult result = solvePartition(problem);
    if (result.partition)
      continue;
    for (const std::string &way : result.infeasible.waysOut) {
      PartitionProblem changed = problem;
      if (way == "leave the number of stages free")
        changed.stages = 0;
      else if (way == "leave the number of replicas free")
        changed.replicas.reset();
      else if (way == "leave the choice of cuts free")
        changed.cuts.reset();
      else if (way == "do not insist on using all devices")
        changed.useAllDevices = false;
      else if (way.rfind("use the schedule 1f1b", 0) == 0)
        changed.inFlight = InFlightPolicy::OneFOneB;
      else
        continue;
      EXPECT_TRUE(bruteForcePartition(changed).partition.has_value())
          << seed << ": " << way;
      ++checked;
    }
  }
  EXPECT_GT(checked, 20);
}

} // namespace
