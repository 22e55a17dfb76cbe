//===- ChainFamilies.h - published schedules of chains ----------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Each builds the paths of its micro-batches and the order of each rank. Times
// are all in one unit of choice. A generator's problem passed its check.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "takt/Schedule/Chains.h"

namespace takt {

struct ChainPlan {
  ChainProblem problem;
  ChainSchedule schedule;
};

/// HelixPipe: Zhang et al., "HelixPipe: Efficient Distributed Training of Long
/// Sequence Transformers with Attention Parallel Pipeline Parallelism", arXiv
/// 2507.00394. Attention has no parameters, so that of p micro-batches runs on
/// p ranks at once. Micro-batch ((repeat * folds + fold) * p + d) has offset d.
struct HelixProblem {
  int32_t ranks = 2;
  int32_t layers = 2; ///< a multiple of the ranks
  int32_t folds = 2;  ///< groups of p micro-batches that take turns
  int32_t repeats = 1;
  double pre = 1, attention = 1, post = 2; ///< forward, of one layer
  double backwardRatio = 2;                ///< backward / forward
  double hop = 0;
  double heldPerBlock = 1, heldPerAttention = 1; ///< until its backward

  int32_t microBatches() const { return ranks * folds * repeats; }
  std::optional<std::string> check() const;
};
ChainPlan generateHelix(const HelixProblem &problem);

/// What a micro-batch sends to the rank of its attention: queries, keys and
/// values, or the input of the layer and the projection's weights.
struct HelixMessage {
  int64_t elements = 0;
  bool sendsWeights = false;
};
/// The smaller of 3 s b h and s b h + 3 h^2 + 3 h; sequence, batch, hidden.
HelixMessage helixMessage(int64_t sequence, int64_t batch, int64_t hidden);

/// JanusPipe: Wang et al., "JanusPipe: Efficient Pipeline Parallel Training for
/// Machine Learning Interatomic Potentials", arXiv 2605.18404. Forces are a
/// derivative of the energy, so a step has four phases: FE up, FF down, BF up,
/// BE down. A stage's four are on one rank.
struct JanusProblem {
  int32_t ranks = 2;
  int32_t microBatches = 2;
  double energy = 1, force = 2;                 ///< FE and FF of a stage
  double forceBackward = 4, energyBackward = 3; ///< BF and BE
  double hop = 0;
  double heldByEnergy = 1, heldByForce = 1; ///< both until the stage's BE
  /// Micro-batches between their first FE and their last BE; 0: ranks + 1.
  int32_t mostInFlight = 0;

  int32_t inFlight() const {
    return mostInFlight > 0 ? mostInFlight : ranks + 1;
  }
  std::optional<std::string> check() const;
};
/// Backward first and at most p micro-batches in flight: the four phases in the
/// manner of 1F1B.
ChainPlan generateJanusOneFOneB(const JanusProblem &problem);
/// Waves of k micro-batches, forward and backward waves overlapped at their
/// ends, for every k that the limit allows, and orders that prefer one phase or
/// another; then exchanges of neighbours in the lists. The best by the timing:
/// never longer than the 1F1B order if the limit allows that one.
ChainPlan generateJanus(const JanusProblem &problem);

/// Bin of each size: from the largest on, each to the least loaded bin (the
/// first of several). Graphs of few and many atoms to micro-batches.
std::vector<int32_t> balanceSizes(const std::vector<double> &sizes,
                                  int32_t bins);

/// SkipPipe: Blagoev et al., "SkipPipe: Partial and Reordered Pipelining
/// Framework for Training LLMs in Heterogeneous Networks", arXiv 2502.19913.
/// Nodes with unequal links, several to a stage; a micro-batch visits some of
/// the stages, on a path of its own. Skipping changes what is trained.
struct SkipProblem {
  int32_t stages = 1;
  std::vector<int32_t> stageOfNode;     ///< every stage has a node
  std::vector<std::vector<double>> hop; ///< between nodes; empty: 0
  int32_t microBatches = 1;
  /// Stages on a path, the first and the last stage always among them; the
  /// others are visited equally often, to within one.
  int32_t visits = 1;
  /// Two neighbours on the path between the first and the last may change
  /// places.
  bool reorder = false;
  /// A message has its link, in its direction, to itself for the whole hop;
  /// ranks `nodes()` + from * `nodes()` + to of the plan are the links.
  bool exclusiveLinks = false;
  double forward = 1, backward = 2;
  int32_t mostInFlight = 3; ///< micro-batches that a node holds

  int32_t nodes() const { return int32_t(stageOfNode.size()); }
  std::optional<std::string> check() const;
};

struct SkipPlan {
  ChainPlan plan;
  std::vector<std::vector<int32_t>> nodes; ///< by micro-batch, in order
  double makespan = 0;
  /// All combinations of paths were tried; else a local search gave it.
  bool allTried = false;
};
/// Paths and the order that `listChains` gives for them. Nothing if the memory
/// leaves no order.
std::optional<SkipPlan> planSkip(const SkipProblem &problem);

} // namespace takt
