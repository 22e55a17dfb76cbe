//===- Verify.cpp - independent check of a graph partition ----------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Asks of every block, node and tensor what the header defines, with sets of
// node numbers and none of the solvers' sums. It is slow and simple.
//
//===----------------------------------------------------------------------===//

#include "takt/Partition/GraphProblem.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace takt {

namespace {

class AnswerCheck {
public:
  AnswerCheck(const GraphProblem &problem, const GraphPartition &partition)
      : problem(problem), partition(partition), blocks(partition.blocks.size()),
        home(problem.nodes.size(), -1) {}

  std::optional<std::string> run() {
    if (auto fault = checkCover())
      return fault;
    if (auto fault = checkOrder())
      return fault;
    if (auto fault = checkDevices())
      return fault;
    for (int64_t b = 0; b < blocks; ++b)
      if (auto fault = checkBlock(b))
        return fault;
    return checkObjective();
  }

private:
  const GraphBlock &at(int64_t b) const { return partition.blocks[b]; }
  const std::string &name(int32_t v) const { return problem.nodes[v].name; }

  std::optional<std::string> checkCover() {
    for (int64_t b = 0; b < blocks; ++b) {
      if (at(b).nodes.empty())
        return fmt::format("block {} is empty", b);
      for (const int32_t v : at(b).nodes) {
        if (v < 0 || v >= int64_t(home.size()))
          return fmt::format("block {} holds node {} of {}", b, v, home.size());
        if (home[v] >= 0)
          return fmt::format("node '{}' lies in blocks {} and {}", name(v),
                             home[v], b);
        home[v] = b;
      }
      if (!std::is_sorted(at(b).nodes.begin(), at(b).nodes.end()))
        return fmt::format("the nodes of block {} do not ascend", b);
    }
    for (size_t v = 0; v < home.size(); ++v)
      if (home[v] < 0)
        return fmt::format("node '{}' lies in no block", name(v));
    return std::nullopt;
  }

  std::optional<std::string> checkOrder() const {
    for (const GraphTensor &tensor : problem.tensors)
      for (const int32_t reader : tensor.consumers)
        if (tensor.ordered && home[reader] < home[tensor.producer])
          return fmt::format("node '{}' of block {} reads '{}' of block {}",
                             name(reader), home[reader], name(tensor.producer),
                             home[tensor.producer]);
    for (const std::vector<int32_t> &group : problem.together)
      for (const int32_t v : group)
        if (home[v] != home[group.front()])
          return fmt::format("nodes '{}' and '{}' are parted",
                             name(group.front()), name(v));
    return std::nullopt;
  }

  std::optional<std::string> checkDevices() const {
    const int64_t kinds = problem.devices.size();
    std::vector<int64_t> used(kinds, 0);
    for (int64_t b = 0; b < blocks; ++b) {
      const std::vector<int64_t> &options = problem.replicaOptions;
      if (at(b).device < 0 || at(b).device >= kinds)
        return fmt::format("block {} runs on device kind {} of {}", b,
                           at(b).device, kinds);
      if (std::find(options.begin(), options.end(), at(b).replicas) ==
          options.end())
        return fmt::format("block {} has {} replicas, which is no option", b,
                           at(b).replicas);
      used[at(b).device] += at(b).replicas;
    }
    for (int64_t kind = 0; kind < kinds; ++kind)
      if (used[kind] > problem.devices[kind].count)
        return fmt::format("{} devices '{}' are used, there are {}", used[kind],
                           problem.devices[kind].name,
                           problem.devices[kind].count);
    if (problem.maxBlocks > 0 && blocks > problem.maxBlocks)
      return fmt::format("{} blocks where {} are allowed", blocks,
                         problem.maxBlocks);
    if (problem.exactBlocks && blocks != problem.maxBlocks)
      return fmt::format("{} blocks where {} were asked for", blocks,
                         problem.maxBlocks);
    return std::nullopt;
  }

  std::optional<std::string> checkBlock(int64_t b) const {
    const GraphBlock &block = at(b);
    const DeviceKind &kind = problem.devices[block.device];
    for (const int32_t v : block.nodes)
      if (problem.nodes[v].time[block.device] == kCannotRun)
        return fmt::format("node '{}' cannot run on device '{}'", name(v),
                           kind.name);
    const struct {
      const char *what;
      int64_t said, found;
    } figures[] = {
        {"work", block.work, workOf(b)},
        {"in", block.in, kind.transfers ? inOf(b) : 0},
        {"out", block.out, kind.transfers ? outOf(b) : 0},
        {"shared", block.shared, kind.transfers ? sharedOf(b) : 0},
        {"reduce", block.reduce, reduceOf(b)},
        {"period", block.period, periodOf(b)},
        {"micro-batches in flight", block.inFlight, inFlightOf(b)},
        {"memory", block.memory, memoryOf(b)},
    };
    for (const auto &figure : figures)
      if (figure.said != figure.found)
        return fmt::format("block {} states {} {}, recomputed {}", b,
                           figure.what, figure.said, figure.found);
    if (kind.memory != 0 && block.memory > kind.memory)
      return fmt::format("block {} needs {} bytes a device, '{}' has {}", b,
                         block.memory, kind.name, kind.memory);
    return std::nullopt;
  }

  Nanos workOf(int64_t b) const {
    Nanos time = 0;
    for (const int32_t v : at(b).nodes)
      time += problem.nodes[v].time[at(b).device];
    return time;
  }

  /// Blocks that read the tensor, its own left out.
  std::set<int64_t> readers(const GraphTensor &tensor) const {
    std::set<int64_t> found;
    for (const int32_t v : tensor.consumers)
      if (home[v] != home[tensor.producer])
        found.insert(home[v]);
    return found;
  }

  bool relayed() const { return problem.costModel == GraphCostModel::Relayed; }

  Nanos inOf(int64_t b) const {
    Nanos time = 0;
    for (const GraphTensor &tensor : problem.tensors) {
      const std::set<int64_t> blocks = readers(tensor);
      if (relayed() ? home[tensor.producer] < b &&
                          blocks.lower_bound(b) != blocks.end()
                    : blocks.count(b) > 0)
        time += tensor.time;
    }
    return time;
  }

  Nanos outOf(int64_t b) const {
    Nanos time = 0;
    for (const GraphTensor &tensor : problem.tensors) {
      const std::set<int64_t> blocks = readers(tensor);
      if (relayed() ? home[tensor.producer] <= b &&
                          blocks.upper_bound(b) != blocks.end()
                    : home[tensor.producer] == b && !blocks.empty())
        time += tensor.time;
    }
    return time;
  }

  int64_t membersIn(const GraphTie &tie, int64_t b) const {
    return std::count_if(tie.nodes.begin(), tie.nodes.end(),
                         [&](int32_t v) { return home[v] == b; });
  }

  Nanos sharedOf(int64_t b) const {
    Nanos time = 0;
    for (const GraphTie &tie : problem.ties) {
      const int64_t members = membersIn(tie, b);
      if (members > 0 && members < int64_t(tie.nodes.size()))
        time += tie.time;
    }
    return time;
  }

  Nanos reduceOf(int64_t b) const {
    const int64_t r = at(b).replicas;
    Nanos pass = 0;
    for (const int32_t v : at(b).nodes)
      pass += problem.nodes[v].reduce;
    for (const GraphTie &tie : problem.ties)
      if (membersIn(tie, b) > 0)
        pass += tie.reduce;
    const Nanos whole = 2 * (r - 1) * pass;
    return whole / r + (whole % r != 0);
  }

  Nanos periodOf(int64_t b) const {
    const bool transfers = problem.devices[at(b).device].transfers;
    const Nanos in = transfers ? inOf(b) : 0, out = transfers ? outOf(b) : 0;
    const Nanos busy = workOf(b) + (transfers ? sharedOf(b) : 0) + reduceOf(b);
    const Nanos load = problem.costModel == GraphCostModel::Sum
                           ? in + busy + out
                           : std::max(busy, std::max(in, out));
    return load / at(b).replicas + (load % at(b).replicas != 0);
  }

  int64_t inFlightOf(int64_t b) const {
    const int64_t r = at(b).replicas;
    int64_t behind = 0; // micro-batches between this block and the end
    for (int64_t later = b; later < blocks; ++later)
      behind += at(later).replicas;
    const int64_t each = behind / r + (behind % r != 0);
    if (problem.inFlight == InFlightPolicy::OneFOneB &&
        each < problem.microBatches)
      return each;
    if (problem.inFlight == InFlightPolicy::OneFOneB)
      return problem.microBatches;
    return problem.microBatches / r + (problem.microBatches % r != 0);
  }

  Bytes memoryOf(int64_t b) const {
    Bytes bytes = 0;
    for (const int32_t v : at(b).nodes)
      bytes += problem.nodes[v].memory + problem.nodes[v].saved * inFlightOf(b);
    for (const GraphTie &tie : problem.ties)
      if (membersIn(tie, b) > 0)
        bytes += tie.memory;
    return bytes;
  }

  std::optional<std::string> checkObjective() const {
    Nanos slowest = 0;
    for (int64_t b = 0; b < blocks; ++b)
      slowest = std::max(slowest, periodOf(b));
    if (slowest != partition.objective)
      return fmt::format("the objective is stated as {} ns, recomputed {} ns",
                         partition.objective, slowest);
    if (partition.bound > partition.objective)
      return fmt::format("the bound {} ns lies above the objective {} ns",
                         partition.bound, partition.objective);
    return std::nullopt;
  }

  const GraphProblem &problem;
  const GraphPartition &partition;
  const int64_t blocks;
  std::vector<int64_t> home; ///< the block of each node
};

} // namespace

std::optional<std::string> verify(const GraphProblem &problem,
                                  const GraphPartition &partition) {
  if (auto fault = problem.check())
    return fault;
  return AnswerCheck(problem, partition).run();
}

} // namespace takt
