//===- RandomGraph.cpp - small graphs for the oracle ----------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Magnitudes are chosen so that work, transfers and reductions compete, and
// memory so that some of the problems have no answer.
//
//===----------------------------------------------------------------------===//

#include "RandomGraph.h"

#include "RandomProblem.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace takt::test {

namespace {

class Builder {
public:
  explicit Builder(uint64_t seed) : random(seed) {}

  GraphProblem build() {
    addDevices();
    const int64_t nodes = random.chance(60) ? random.in(6, 9) : random.in(1, 6);
    for (int64_t v = 0; v < nodes; ++v)
      addNode(v);
    renumber(nodes);
    addTensors();
    if (nodes > 1 && random.chance(30))
      addTie();
    if (nodes > 1 && random.chance(25))
      problem.together.push_back(some(2));
    if (random.chance(50))
      limitMemory();
    return std::move(problem);
  }

private:
  void addDevices() {
    const int64_t kinds = random.chance(60) ? 1 : 2;
    for (int64_t kind = 0; kind < kinds; ++kind) {
      DeviceKind device;
      device.name = fmt::format("kind{}", kind);
      device.count = random.in(1, kinds == 1 ? 4 : 3);
      device.transfers = kind == 0 || random.chance(70);
      problem.devices.push_back(device);
    }
    problem.maxBlocks = random.in(1, 3);
    problem.exactBlocks = random.chance(15);
    if (random.chance(40))
      problem.replicaOptions = random.chance(50)
                                   ? std::vector<int64_t>{1, 2}
                                   : std::vector<int64_t>{random.in(1, 2), 3};
    const int64_t model = random.in(0, 3);
    problem.costModel = model < 2    ? GraphCostModel::Sum
                        : model == 2 ? GraphCostModel::Overlapped
                                     : GraphCostModel::Relayed;
    problem.inFlight =
        random.chance(70) ? InFlightPolicy::OneFOneB : InFlightPolicy::GPipe;
    problem.microBatches = random.in(1, 6);
  }

  void addNode(int64_t v) {
    GraphNode node;
    node.name = fmt::format("n{}", v);
    const Nanos time = random.chance(15) ? 0 : random.in(1, 600);
    for (size_t kind = 0; kind < problem.devices.size(); ++kind)
      node.time.push_back(kind == 0 ? time : time * random.in(5, 30) / 10);
    if (random.chance(6))
      node.time[random.in(0, node.time.size() - 1)] = kCannotRun;
    node.reduce = random.chance(60) ? random.in(0, 150) : 0;
    node.memory = random.in(0, 300);
    node.saved = random.chance(50) ? random.in(0, 80) : 0;
    problem.nodes.push_back(node);
  }

  /// Numbers say nothing about the order.
  void renumber(int64_t nodes) {
    place.resize(nodes);
    std::iota(place.begin(), place.end(), 0);
    if (random.chance(50))
      for (int64_t i = nodes - 1; i > 0; --i)
        std::swap(place[i], place[random.in(0, i)]);
  }

  void addTensors() {
    const int64_t nodes = problem.nodes.size();
    const int64_t density = random.in(15, 60), largest = random.in(1, 250);
    for (int64_t i = 0; i + 1 < nodes; ++i) {
      GraphTensor tensor;
      tensor.producer = place[i];
      for (int64_t j = i + 1; j < nodes; ++j)
        if (random.chance(j == i + 1 ? 60 : density / 2))
          tensor.consumers.push_back(place[j]);
      std::sort(tensor.consumers.begin(), tensor.consumers.end());
      tensor.time = random.chance(20) ? 0 : random.in(0, largest);
      if (!tensor.consumers.empty())
        problem.tensors.push_back(tensor);
    }
    if (problem.costModel == GraphCostModel::Relayed)
      return;
    for (int64_t i = 1; i < nodes; ++i)
      if (random.chance(15))
        problem.tensors.push_back(
            {place[i], {place[random.in(0, i - 1)]}, random.in(0, 90), false});
  }

  std::vector<int32_t> some(int64_t least) {
    const int64_t nodes = problem.nodes.size();
    std::vector<int32_t> chosen;
    while (int64_t(chosen.size()) < least || random.chance(20)) {
      chosen.push_back(int32_t(random.in(0, nodes - 1)));
      std::sort(chosen.begin(), chosen.end());
      chosen.erase(std::unique(chosen.begin(), chosen.end()), chosen.end());
    }
    return chosen;
  }

  void addTie() {
    problem.ties.push_back(
        {some(2), random.in(0, 200), random.in(0, 100), random.in(0, 100)});
  }

  void limitMemory() {
    Bytes sum = 0;
    for (const GraphNode &node : problem.nodes)
      sum += node.memory + node.saved;
    for (DeviceKind &device : problem.devices)
      device.memory = random.chance(80) ? sum * random.in(20, 130) / 100 : 0;
  }

  Random random;
  GraphProblem problem;
  std::vector<int32_t> place;
};

} // namespace

GraphProblem randomGraph(uint64_t seed) { return Builder(seed).build(); }

} // namespace takt::test
