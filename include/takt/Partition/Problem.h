//===- Problem.h - stage assignment on a chain -------------------*- C++
//-*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// A chain of segments is cut into stages; each stage runs on a number of
// replicas that split every micro-batch by sample (Fan et al. 2021, DAPPLE,
// arXiv 2007.01045: "split-concat"). The objective is
//
//     sum_s t_s + sum_b c_b + (m - 1) max(t_s, c_b) + max_s a_s
//
// with t_s forward + backward time of stage s for one micro-batch, c_b the time
// of the transfers over boundary b (activation and gradient, a pipeline
// resource of its own), m micro-batches, a_s the all-reduce of the stage's
// gradients plus its optimizer step (nothing of it hidden).
//
// Where a schedule puts several stages on a rank (`rankOfStage`), their t_s add
// up in the maximum, as do their a_s; a boundary within a rank costs nothing.
//
// Where micro-batches flow without end (`continuous`, inference) the objective
// is the period, the time between two micro-batches that leave the pipeline:
//
//     max(t_s, c_b)
//
// of equal periods the one with the least  sum_s t_s + sum_b c_b,  which a
// micro-batch takes to pass. Transfers go on beside calls, so that a stage's
// period is the longer of its work and what its links need, not their sum.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "takt-rt/core/plan.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace takt {

using rt::Bytes;
using rt::Nanos;

/// One element of the chain. Vectors are indexed by replica option.
struct SegmentCost {
  std::string name;             ///< for reports: first .. last layer
  std::vector<Nanos> time;      ///< forward + backward, one micro-batch share
  std::vector<Nanos> update;    ///< optimizer step
  std::vector<Bytes> saved;     ///< held from forward to backward
  std::vector<Bytes> workspace; ///< most temporaries of any one call
  std::vector<Bytes> output;    ///< this rank's share of what crosses the end
  Bytes outputWhole = 0;        ///< of the whole micro-batch
  Bytes weights = 0;            ///< parameter bytes
  Bytes gradients = 0;          ///< bytes to all-reduce: trainable uses
  Bytes optimizerState = 0;
  bool gradientCrosses = true; ///< a gradient flows back over the end
  bool mayCutAfter = true;     ///< false: the user forbids a stage end here
};

/// Equal nodes of `devicesPerNode`; devices are used in order, stage after
/// stage, so a stage's range may cross a node boundary.
struct PartitionCluster {
  int64_t devices = 1;
  int64_t devicesPerNode = 1;
  rt::Link intraNode, network;
  Bytes memory = 0; ///< of each device; 0 = unlimited
};

enum class InFlightPolicy : uint8_t {
  OneFOneB, ///< stage s of p holds min(m, p - s) micro-batches
  GPipe,    ///< every stage holds m
};

/// No stage may hold both; a segment apart from itself is impossible.
struct SegmentPair {
  int64_t first = 0, second = 0; ///< first <= second
};

/// The segment lies in that stage, counted from 0.
struct StagePin {
  int64_t segment = 0, stage = 0;
};

struct PartitionProblem {
  std::vector<SegmentCost> segments;
  PartitionCluster cluster;
  int64_t microBatches = 1;
  InFlightPolicy inFlight = InFlightPolicy::OneFOneB;
  std::vector<int64_t> replicaOptions{
      1};                ///< ascending, e.g. divisors of the micro-batch
  int64_t stages = 0;    ///< exact count; 0 = free
  int64_t maxStages = 0; ///< 0 = no limit
  /// Cuts given by the user: stage k ends before segment cuts[k]. Then only
  /// replicas are chosen, and `mayCutAfter` is not asked.
  std::optional<std::vector<int64_t>> cuts;
  std::optional<int64_t> replicas; ///< same number for every stage
  std::vector<SegmentPair> apart;
  std::vector<StagePin> pins;
  /// Rank of each stage where ranks hold several; `stages` is then their
  /// number. Ranks count from 0 by their first stages; all have the same
  /// replicas. Empty: stage s is rank s.
  std::vector<int32_t> rankOfStage;
  /// Micro-batches that each stage holds, in place of `inFlight`; as many as
  /// `rankOfStage`.
  std::vector<int64_t> heldByStage;
  bool useAllDevices = false; ///< the replicas must add up to the device count
  /// The objective is the period. `microBatches` is then 1, which is what each
  /// stage holds, and nothing is reduced, updated or placed.
  bool continuous = false;

  /// First fault in the problem, or nothing.
  std::optional<std::string> check() const;
};

struct StageChoice {
  int64_t begin = 0, end = 0; ///< segments [begin, end)
  int64_t option = 0;         ///< index into replicaOptions
  int64_t firstDevice = 0;
  // Filled by evaluate():
  Nanos time = 0;       ///< t_s
  Nanos transfer = 0;   ///< c_b of the boundary after this stage
  Nanos allReduce = 0;  ///< a_s, with the update
  Bytes memory = 0;     ///< peak of one device, or this stage's part of it
  int64_t inFlight = 0; ///< micro-batches held
};

struct Partition {
  std::vector<StageChoice> stages;
  Nanos objective = 0;
  Nanos bound = 0;    ///< proven: no assignment does better
  std::string method; ///< "exact", "heuristic (work limit)", "given cuts"
  int64_t work = 0;   ///< transitions looked at, for determinism and tests

  double gap() const {
    return bound > 0 ? double(objective - bound) / double(bound) : 0;
  }
};

/// Why no assignment exists: what clashes, and the cheapest ways out.
struct Infeasible {
  std::string reason;
  std::vector<std::string> waysOut;
  int32_t segment = -1;   ///< the first that the reason names; -1: none
  int32_t memoryWay = -1; ///< which way out gives devices more memory; -1: none
};

struct PartitionResult {
  std::optional<Partition> partition;
  Infeasible infeasible;  ///< set when there is no partition
  bool outOfWork = false; ///< no partition, but none is ruled out: work limit
  int64_t work = 0;       ///< spent, found or not
};

/// Time in which one micro-batch passes an evaluated assignment.
Nanos latency(const Partition &partition);

/// Peak bytes of one device of a stage: weights, gradients and optimizer state,
/// saved tensors of each micro-batch in flight, one more input than that, two
/// outputs and two of each gradient buffer, and the workspace.
Bytes stageMemory(const PartitionProblem &problem, int64_t begin, int64_t end,
                  int64_t option, int64_t inFlight);

/// Ranks that a placement names.
int64_t numRanks(const PartitionProblem &problem);

/// Peak bytes of one device of every rank of an evaluated assignment. Stages
/// that share a device add up, but for their workspaces: one call runs at a
/// time.
std::vector<Bytes> rankMemory(const PartitionProblem &problem,
                              const Partition &partition);

/// Fills the derived fields of every stage and the objective.
void evaluate(const PartitionProblem &problem, Partition &partition);

/// Exact solver, with a heuristic first and a bound always; `workLimit` bounds
/// the transitions looked at (then the answer is the best so far and the bound
/// is still proven). With a placement the search is a branch and bound behind a
/// local search.
PartitionResult solvePartition(const PartitionProblem &problem,
                               int64_t workLimit = int64_t(4) << 30);

/// Whether any assignment keeps all limits; much less work than the best one.
enum class Feasibility { Yes, No, Unknown };
/// `spent` receives the work.
Feasibility partitionFeasible(const PartitionProblem &problem,
                              int64_t workLimit = int64_t(1) << 30,
                              int64_t *spent = nullptr);

/// All assignments one by one; for tests, up to about 10 segments.
PartitionResult bruteForcePartition(const PartitionProblem &problem);

/// Independent check of an answer: covers the chain, devices disjoint and in
/// range, memory and times recomputed from the segments. First fault or
/// nothing.
std::optional<std::string> verify(const PartitionProblem &problem,
                                  const Partition &partition);

} // namespace takt
