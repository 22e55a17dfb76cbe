//===- Problem.cpp - faults of a graph problem ----------------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Bounds on the numbers keep every sum of the solvers inside 64 bits.
//
//===----------------------------------------------------------------------===//

#include "DeviceUse.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace takt {

using namespace graphcut;

const char *graphCostModelName(GraphCostModel model) {
  switch (model) {
  case GraphCostModel::Sum:
    return "sum";
  case GraphCostModel::Overlapped:
    return "overlapped";
  case GraphCostModel::Relayed:
    return "relayed";
  }
  return "?";
}

const char *graphRungName(GraphRung rung) {
  switch (rung) {
  case GraphRung::DownSets:
    return "down-sets";
  case GraphRung::Bottleneck:
    return "bottleneck relaxation";
  case GraphRung::Average:
    return "average and largest node";
  }
  return "?";
}

namespace {

constexpr int64_t kMostNodes = 1 << 20;
constexpr int64_t kMostDevices = 1 << 20;
constexpr double kMostSum = double(int64_t(1) << 60);

std::vector<std::vector<int32_t>> orderedEdges(const GraphProblem &problem) {
  std::vector<std::vector<int32_t>> after(problem.nodes.size());
  for (const GraphTensor &tensor : problem.tensors)
    if (tensor.ordered)
      for (const int32_t reader : tensor.consumers)
        after[tensor.producer].push_back(reader);
  return after;
}

class Faults {
public:
  explicit Faults(const GraphProblem &problem) : problem(problem) {}

  std::optional<std::string> find() const {
    const int64_t nodes = problem.nodes.size();
    if (nodes == 0)
      return "the graph has no nodes";
    if (nodes > kMostNodes)
      return fmt::format("the graph has {} nodes, at most {} are planned",
                         nodes, kMostNodes);
    if (auto fault = inDevices())
      return fault;
    for (const GraphNode &node : problem.nodes)
      if (auto fault = inNode(node))
        return fault;
    if (auto fault = inTensors())
      return fault;
    if (auto fault = inGroups())
      return fault;
    if (auto fault = inSums())
      return fault;
    if (DeviceUse(problem).size() > DeviceUse::kMostStates)
      return fmt::format("the devices can be used in more than {} ways, state "
                         "fewer kinds, devices or replicas",
                         DeviceUse::kMostStates);
    return inOrder();
  }

private:
  std::optional<std::string> inDevices() const {
    const int64_t kinds = problem.devices.size();
    if (kinds == 0 || kinds > kMaxDeviceKinds)
      return fmt::format("{} kinds of device, 1 to {} are possible", kinds,
                         kMaxDeviceKinds);
    int64_t devices = 0;
    for (const DeviceKind &kind : problem.devices) {
      if (kind.count < 0 || kind.memory < 0)
        return fmt::format("device kind '{}' has a negative count or memory",
                           kind.name);
      if (kind.count > kMostDevices)
        return fmt::format("device kind '{}' has {} devices, at most {} are "
                           "planned",
                           kind.name, kind.count, kMostDevices);
      devices += kind.count;
    }
    if (devices == 0)
      return "there are no devices";
    const std::vector<int64_t> &options = problem.replicaOptions;
    if (options.empty() || options.size() > 64 || options.front() < 1 ||
        options.back() > kMostDevices)
      return "the replica options are not 1 to 64 positive numbers";
    for (size_t i = 1; i < options.size(); ++i)
      if (options[i] <= options[i - 1])
        return "the replica options do not ascend";
    if (problem.maxBlocks < 0 || (problem.exactBlocks && !problem.maxBlocks))
      return "the number of blocks is not positive";
    if (problem.microBatches < 1 || problem.microBatches > INT32_MAX)
      return "the number of micro-batches is not 1 to 2^31 - 1";
    return std::nullopt;
  }

  std::optional<std::string> inNode(const GraphNode &node) const {
    if (node.time.size() != problem.devices.size())
      return fmt::format("node '{}' has {} times for {} kinds of device",
                         node.name, node.time.size(), problem.devices.size());
    for (const Nanos time : node.time)
      if (time < 0 && time != kCannotRun)
        return fmt::format("node '{}' has a negative time", node.name);
    if (node.reduce < 0 || node.memory < 0 || node.saved < 0)
      return fmt::format("node '{}' has a negative size", node.name);
    return std::nullopt;
  }

  bool ascends(const std::vector<int32_t> &list) const {
    for (size_t i = 0; i < list.size(); ++i)
      if (list[i] < (i ? list[i - 1] + 1 : 0) ||
          list[i] >= int64_t(problem.nodes.size()))
        return false;
    return true;
  }

  std::optional<std::string> inTensors() const {
    for (size_t t = 0; t < problem.tensors.size(); ++t) {
      const GraphTensor &tensor = problem.tensors[t];
      if (tensor.producer < 0 ||
          tensor.producer >= int64_t(problem.nodes.size()))
        return fmt::format("tensor {} has producer {} of {} nodes", t,
                           tensor.producer, problem.nodes.size());
      if (!ascends(tensor.consumers) ||
          std::count(tensor.consumers.begin(), tensor.consumers.end(),
                     tensor.producer))
        return fmt::format("the consumers of tensor {} do not ascend among the "
                           "other nodes",
                           t);
      if (tensor.time < 0)
        return fmt::format("tensor {} has a negative time", t);
      if (!tensor.ordered && problem.costModel == GraphCostModel::Relayed)
        return fmt::format("tensor {} is not ordered, the relayed cost model "
                           "needs that",
                           t);
    }
    return std::nullopt;
  }

  std::optional<std::string> inGroups() const {
    for (size_t t = 0; t < problem.ties.size(); ++t) {
      const GraphTie &tie = problem.ties[t];
      if (tie.nodes.size() < 2 || !ascends(tie.nodes))
        return fmt::format("tie {} does not name two nodes or more, ascending",
                           t);
      if (tie.memory < 0 || tie.time < 0 || tie.reduce < 0)
        return fmt::format("tie {} has a negative size", t);
    }
    for (size_t g = 0; g < problem.together.size(); ++g)
      if (problem.together[g].empty() || !ascends(problem.together[g]))
        return fmt::format("group {} does not name nodes, ascending", g);
    return std::nullopt;
  }

  std::optional<std::string> inSums() const {
    double time = 0, reduce = 0, memory = 0;
    for (const GraphNode &node : problem.nodes) {
      time += double(*std::max_element(node.time.begin(), node.time.end()));
      reduce += double(node.reduce);
      memory += double(node.memory) +
                double(node.saved) * double(problem.microBatches);
    }
    for (const GraphTensor &tensor : problem.tensors)
      time += 2 * double(tensor.time);
    for (const GraphTie &tie : problem.ties) {
      const double copies = double(tie.nodes.size());
      time += copies * double(tie.time);
      reduce += copies * double(tie.reduce);
      memory += copies * double(tie.memory);
    }
    reduce *= 2 * double(problem.replicaOptions.back());
    if (time > kMostSum || reduce > kMostSum || memory > kMostSum)
      return "the times or sizes of the graph add up to more than 2^60";
    return std::nullopt;
  }

  std::optional<std::string> inOrder() const {
    const std::vector<int32_t> order = orderByKeys(
        orderedEdges(problem), std::vector<uint64_t>(problem.nodes.size(), 0));
    if (order.size() == problem.nodes.size())
      return std::nullopt;
    std::vector<bool> placed(problem.nodes.size(), false);
    for (const int32_t v : order)
      placed[v] = true;
    for (size_t v = 0; v < placed.size(); ++v)
      if (!placed[v])
        return fmt::format("node '{}' depends on a cycle",
                           problem.nodes[v].name);
    return std::nullopt;
  }

  const GraphProblem &problem;
};

} // namespace

std::optional<std::string> GraphProblem::check() const {
  return Faults(*this).find();
}

std::vector<int32_t> smallestFirstOrder(const GraphProblem &problem) {
  std::vector<uint64_t> keys(problem.nodes.size());
  std::iota(keys.begin(), keys.end(), 0);
  return orderByKeys(orderedEdges(problem), keys);
}

} // namespace takt
