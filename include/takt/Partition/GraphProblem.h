//===- GraphProblem.h - stage assignment on a graph -------------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// The nodes of an acyclic graph are put into ordered blocks, the stages of a
// pipeline, so that what orders nodes never leads to an earlier block: the
// graph between blocks is acyclic. The objective is the period: the time of the
// busiest block for one micro-batch in the steady state. With
//
//     work    sum of the times of the block's nodes on its kind of device
//     in      each tensor from outside that the block reads, once
//     out     each tensor of the block that is read outside, once
//     shared  the sum of what tied nodes in and outside the block share
//     reduce  2 (r - 1) / r passes of its gradients over r replicas
//
// a block on r replicas, which take micro-batches in turn, has the period
// ceil(load / r), where the load is put together by the cost model. Every
// acyclic partition is a chain of nested down-sets (sets closed under
// predecessors), so a dynamic program over down-sets is exact (Archer et al.
// 2023, "Practical Performance Guarantees for Pipelined DNN Inference", arXiv
// 2311.03703; Tarnawski et al. 2020, "Efficient Algorithms for Device Placement
// of DNN Graph Operators", arXiv 2006.16423).
//
//===----------------------------------------------------------------------===//
#pragma once

#include "takt/Partition/Problem.h"
#include "takt/Solver/Solver.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace takt {

/// `GraphNode::time` where a kind of device cannot run the node.
constexpr Nanos kCannotRun = -1;
/// More kinds of device than this are refused.
constexpr int64_t kMaxDeviceKinds = 8;

/// A layer or an operator. In training its time is that of forward and backward
/// together, so they stay together; operators that are nodes of their own are
/// held together by `GraphProblem::together`.
struct GraphNode {
  std::string name;
  std::vector<Nanos> time; ///< one micro-batch, by kind of device
  Nanos reduce = 0; ///< its gradients once over the link, per micro-batch
  Bytes memory = 0; ///< kept always: parameters, gradients, optimizer state
  Bytes saved = 0;  ///< kept for every micro-batch in flight
};

/// One output and who reads it.
struct GraphTensor {
  int32_t producer = 0;
  std::vector<int32_t> consumers; ///< ascending, without the producer
  Nanos time = 0; ///< once over the link, with the gradient coming back
  /// Its producer must not lie in a later block than a consumer. False for
  /// gradients that are tensors of their own: backward runs against the blocks.
  bool ordered = true;
};

/// Nodes that use one parameter. A block with some but not all of them has a
/// copy and sums its gradient with the other copies.
struct GraphTie {
  std::vector<int32_t> nodes; ///< ascending, at least two
  Bytes memory = 0;           ///< of each copy
  Nanos time = 0;             ///< `shared` of each block with a copy
  Nanos reduce = 0;           ///< added to `reduce` of each block with a copy
};

/// Devices of one kind; different kinds may have different speeds.
struct DeviceKind {
  std::string name;
  int64_t count = 1;
  Bytes memory = 0;      ///< of each; 0 = unlimited
  bool transfers = true; ///< false: in, out and shared cost it nothing
};

enum class GraphCostModel : uint8_t {
  Sum,        ///< work + in + out + shared + reduce
  Overlapped, ///< max(work + shared + reduce, in, out)
  /// As Overlapped, with all that crosses the cut before and after the block
  /// in place of in and out: a tensor that skips blocks passes through them
  /// (Narayanan et al. 2019, PipeDream). Needs ordered tensors.
  Relayed,
};

/// "sum", "overlapped", "relayed".
const char *graphCostModelName(GraphCostModel model);

struct GraphProblem {
  std::vector<GraphNode> nodes;
  std::vector<GraphTensor> tensors;
  std::vector<GraphTie> ties;
  /// Nodes that one block must hold, e.g. forward and backward of a layer.
  std::vector<std::vector<int32_t>> together;
  std::vector<DeviceKind> devices;
  int64_t maxBlocks = 0;    ///< k; 0: as many as there are devices
  bool exactBlocks = false; ///< exactly `maxBlocks`, else at most
  std::vector<int64_t> replicaOptions{1}; ///< ascending
  GraphCostModel costModel = GraphCostModel::Sum;
  /// Micro-batches a block on r replicas holds, with d devices from it to the
  /// last block: min(m, ceil(d / r)) under 1F1B, ceil(m / r) under GPipe.
  InFlightPolicy inFlight = InFlightPolicy::OneFOneB;
  int64_t microBatches = 1;

  /// First fault in the problem, or nothing. A cycle is one.
  std::optional<std::string> check() const;
};

struct GraphBlock {
  std::vector<int32_t> nodes; ///< ascending
  int32_t device = 0;         ///< index into `devices`
  int64_t replicas = 1;
  // Filled by evaluate():
  Nanos work = 0, in = 0, out = 0, shared = 0, reduce = 0;
  Nanos period = 0;
  int64_t inFlight = 0;
  Bytes memory = 0; ///< of each of its devices
};

/// What proved the bound, from the strongest.
enum class GraphRung : uint8_t {
  DownSets,   ///< the program over all down-sets: the answer is the best
  Bottleneck, ///< a block with at least the average work, by the solver
  Average,    ///< total work over devices, and the largest node
};

/// "down-sets", "bottleneck relaxation", "average and largest node".
const char *graphRungName(GraphRung rung);

struct GraphPartition {
  std::vector<GraphBlock> blocks; ///< in order, none empty
  Nanos objective = 0;            ///< the largest period
  Nanos bound = 0;                ///< proven: no partition does better
  GraphRung rung = GraphRung::Average;
  int64_t downSets = 0; ///< counted; more than the cap: the count stopped there
  int64_t work = 0;     ///< blocks looked at, for determinism and tests
  solver::Failure failure; ///< of the bound, which then is a weaker one

  double gap() const {
    return bound > 0 ? double(objective - bound) / double(bound) : 0;
  }
};

struct GraphSettings {
  int64_t maxDownSets = 100000;          ///< above: search and relaxation
  int64_t workLimit = int64_t(1) << 30;  ///< blocks the exact program looks at
  int64_t searchWork = int64_t(1) << 26; ///< the same for the order search
  uint64_t seed = 1;
  solver::Settings solver; ///< of the relaxation; no work: it is left out
};

struct GraphResult {
  std::optional<GraphPartition> partition;
  Infeasible infeasible;  ///< set when there is no partition
  bool outOfWork = false; ///< none was found, but none is ruled out
};

/// Fills the derived fields of every block and the objective.
void evaluate(const GraphProblem &problem, GraphPartition &partition);

/// Always an answer, its bound and what proved it, unless nothing fits. The
/// order search finds a good answer; the program over down-sets improves or
/// proves it where their number allows; else the relaxation bounds it.
GraphResult solveGraph(const GraphProblem &problem,
                       const GraphSettings &settings = {});

/// The best blocks that are ranges of one order of all nodes, which no ordered
/// tensor contradicts. The bound is not touched.
GraphResult solveGraphInOrder(const GraphProblem &problem,
                              const std::vector<int32_t> &order);

/// The topological order that takes the smallest ready node first.
std::vector<int32_t> smallestFirstOrder(const GraphProblem &problem);

/// Number of down-sets, or cap + 1 if above. `together` is contracted first,
/// and inputs and unused outputs without load are joined to what uses or makes
/// them.
int64_t countDownSets(const GraphProblem &problem, int64_t cap);

/// A bound without the program over down-sets, and what proved it: the average
/// and the largest node, raised by the relaxation as far as the solver's work
/// limit and `known`, the objective of any answer, allow.
struct GraphBound {
  Nanos value = 0;
  GraphRung rung = GraphRung::Average;
  solver::Failure failure; ///< the first; it ends the relaxation
};
GraphBound averageBound(const GraphProblem &problem);
GraphBound bottleneckBound(const GraphProblem &problem,
                           const GraphPartition &known,
                           const solver::Settings &settings);

/// All acyclic partitions one by one; for tests, up to about 9 nodes.
GraphResult bruteForceGraph(const GraphProblem &problem);

/// Independent check of an answer. First fault or nothing.
std::optional<std::string> verify(const GraphProblem &problem,
                                  const GraphPartition &partition);

} // namespace takt
