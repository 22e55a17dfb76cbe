//===- PiperVerify.cpp - checks, and all plans one by one -----------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
#include "PiperCosts.h"

#include <fmt/format.h>

#include <cmath>
#include <functional>
#include <limits>

namespace takt {

using namespace piper;

namespace {

/// Figures above this are refused: their sums have to stay exact enough.
constexpr double kMostBytes = 1e18;

bool isFigure(double value, double most) { return value >= 0 && value <= most; }

std::optional<std::string> checkNode(const PiperProblem &problem,
                                     const Adjacency &adjacency, int32_t index,
                                     bool &runs) {
  const PiperNode &node = problem.nodes[index];
  runs = false;
  for (const auto &[degree, variants] : node.variants) {
    if (degree < 1)
      return fmt::format("node '{}' has variants for {} devices", node.name,
                         degree);
    runs |= degree <= problem.devices && !variants.empty();
    for (const PiperVariant &variant : variants) {
      const std::string where =
          fmt::format("variant '{}' of node '{}' for {} devices", variant.name,
                      node.name, degree);
      if (variant.inBytes.size() != adjacency.in[index].size() ||
          variant.outBytes.size() != adjacency.out[index].size())
        return where + " does not tell the bytes of each edge";
      if (!isFigure(variant.seconds, 1e9))
        return where + " has a time that is out of range";
      bool fine = isFigure(variant.parameterBytes, kMostBytes) &&
                  isFigure(variant.bytesPerSample, kMostBytes) &&
                  isFigure(variant.fixedBytes, kMostBytes);
      for (const auto *list : {&variant.inBytes, &variant.outBytes})
        for (const double bytes : *list)
          fine &= isFigure(bytes, kMostBytes);
      if (!fine)
        return where + " has a size that is out of range";
    }
  }
  return std::nullopt;
}

bool hasCycle(const PiperProblem &problem, const Adjacency &adjacency) {
  std::vector<size_t> missing(problem.nodes.size());
  std::vector<int32_t> ready;
  for (size_t v = 0; v < missing.size(); ++v)
    if ((missing[v] = adjacency.in[v].size()) == 0)
      ready.push_back(int32_t(v));
  size_t done = 0;
  for (; !ready.empty(); ++done) {
    const int32_t v = ready.back();
    ready.pop_back();
    for (const int32_t e : adjacency.out[v])
      if (--missing[problem.edges[e].to] == 0)
        ready.push_back(problem.edges[e].to);
  }
  return done < missing.size();
}

/// Relative to the larger.
bool isClose(double a, double b) {
  return std::abs(a - b) <= 1e-9 * std::max(std::abs(a), std::abs(b)) + 1e-15;
}

} // namespace

std::vector<int64_t> piper::replicaChoices(const PiperProblem &problem) {
  std::vector<int64_t> choices;
  const int64_t most = mostReplicas(problem);
  if (!problem.replicaOptions.empty()) {
    for (const int64_t option : problem.replicaOptions)
      if (option <= most)
        choices.push_back(option);
    return choices;
  }
  for (int64_t d = 1; d <= most; ++d)
    if (problem.samples % d == 0)
      choices.push_back(d);
  return choices;
}

std::optional<std::string> PiperProblem::check() const {
  const int32_t count = int32_t(nodes.size());
  if (nodes.empty() || nodes.size() > 1 << 16)
    return fmt::format("{} nodes cannot be planned", nodes.size());
  if (devices < 1 || devices > 1 << 20 || samples < 1 || samples > 1 << 30 ||
      maxReplicas < 0)
    return fmt::format("{} samples on {} devices cannot be planned", samples,
                       devices);
  if (!(memoryBytes > 0) || !(bandwidth > 0) || std::isinf(bandwidth))
    return "the memory and the bandwidth of a device must be positive";
  for (size_t i = 0; i < replicaOptions.size(); ++i)
    if (replicaOptions[i] < 1 ||
        (i > 0 && replicaOptions[i] <= replicaOptions[i - 1]))
      return "numbers of replicas must be positive and ascend";
  for (const PiperEdge &edge : edges) {
    if (edge.from < 0 || edge.to < 0 || edge.from >= count ||
        edge.to >= count || edge.from == edge.to)
      return fmt::format("an edge leads from node {} to node {}", edge.from,
                         edge.to);
    if (!isFigure(edge.bytes, kMostBytes))
      return fmt::format("an edge from '{}' has a size that is out of range",
                         nodes[edge.from].name);
  }
  const Adjacency adjacency(*this);
  for (int32_t v = 0; v < count; ++v) {
    bool runs = false;
    if (auto fault = checkNode(*this, adjacency, v, runs))
      return fault;
    if (!runs)
      return fmt::format("node '{}' has no variant for {} devices or fewer",
                         nodes[v].name, devices);
  }
  if (hasCycle(*this, adjacency))
    return "the graph has a cycle";
  return std::nullopt;
}

std::optional<std::string> verify(const PiperProblem &problem,
                                  const PiperPlan &plan) {
  if (auto fault = problem.check())
    return fault;
  const Adjacency adjacency(problem);
  std::vector<int32_t> stageOf(problem.nodes.size(), -1);
  int64_t devices = 0, replicas = 0;
  const std::vector<int64_t> choices = replicaChoices(problem);
  for (size_t s = 0; s < plan.stages.size(); ++s) {
    const PiperStage &stage = plan.stages[s];
    if (stage.nodes.empty() || stage.nodes.size() != stage.variants.size())
      return fmt::format("stage {} has {} nodes and {} variants", s,
                         stage.nodes.size(), stage.variants.size());
    for (const int32_t node : stage.nodes) {
      if (node < 0 || size_t(node) >= stageOf.size() || stageOf[node] >= 0)
        return fmt::format("stage {} has node {}, which is not there or in "
                           "another stage",
                           s, node);
      stageOf[node] = int32_t(s);
    }
    if (std::find(choices.begin(), choices.end(), stage.replicas) ==
        choices.end())
      return fmt::format("stage {} has {} replicas, which are not to choose", s,
                         stage.replicas);
    devices += stage.replicas * stage.tensor;
    replicas += stage.replicas;
  }
  for (size_t v = 0; v < stageOf.size(); ++v)
    if (stageOf[v] < 0)
      return fmt::format("node '{}' is in no stage", problem.nodes[v].name);
  if (devices > problem.devices || replicas > mostReplicas(problem))
    return fmt::format("{} replicas on {} devices are more than there are",
                       replicas, devices);
  for (const PiperEdge &edge : problem.edges)
    if (stageOf[edge.from] > stageOf[edge.to])
      return fmt::format("'{}' is read by '{}' in an earlier stage",
                         problem.nodes[edge.from].name,
                         problem.nodes[edge.to].name);

  double slowest = 0;
  for (size_t s = 0; s < plan.stages.size(); ++s) {
    const PiperStage &stage = plan.stages[s];
    double seconds = 0, bytes = 0;
    for (size_t i = 0; i < stage.nodes.size(); ++i) {
      const int32_t node = stage.nodes[i];
      const auto &byDegree = problem.nodes[node].variants;
      const auto variants = byDegree.find(stage.tensor);
      if (variants == byDegree.end() || stage.variants[i] < 0 ||
          size_t(stage.variants[i]) >= variants->second.size())
        return fmt::format("node '{}' has no variant {} for {} devices",
                           problem.nodes[node].name, stage.variants[i],
                           stage.tensor);
      const PiperVariant &variant = variants->second[stage.variants[i]];
      const double crossing =
          crossingBytes(problem, adjacency, node, variant, [&](int32_t other) {
            return stageOf[other] == int32_t(s);
          });
      seconds += nodeSeconds(problem, variant, crossing, stage.replicas);
      bytes += nodeBytes(variant, stage.replicas, replicas);
    }
    if (bytes > problem.memoryBytes * (1 + 1e-12))
      return fmt::format("stage {} needs {} bytes of {}", s, bytes,
                         problem.memoryBytes);
    if (!isClose(bytes, stage.bytes) || !isClose(seconds, stage.seconds))
      return fmt::format("stage {} takes {} s and {} bytes, not {} and {}", s,
                         seconds, bytes, stage.seconds, stage.bytes);
    slowest = std::max(slowest, seconds);
    replicas -= stage.replicas;
  }
  if (!isClose(slowest, plan.seconds))
    return fmt::format("the plan takes {} s a sample, not {}", slowest,
                       plan.seconds);
  if (plan.bound > plan.seconds * (1 + 1e-9))
    return fmt::format("the bound of {} s is above the answer, {} s",
                       plan.bound, plan.seconds);
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// All plans
//===----------------------------------------------------------------------===//

namespace {

/// Puts stages before those that are there, in every way.
class AllPlans {
public:
  explicit AllPlans(const PiperProblem &problem)
      : problem(problem), adjacency(problem), options(replicaChoices(problem)) {
  }

  std::optional<PiperPlan> run() {
    extend((uint32_t(1) << problem.nodes.size()) - 1, 0, 0, 0);
    return best;
  }

private:
  /// No edge leads from the stage to what is left of `rest`.
  bool mayBeLast(uint32_t rest, uint32_t stage) const {
    for (const PiperEdge &edge : problem.edges)
      if ((stage >> edge.from & 1) && (rest & ~stage) >> edge.to & 1)
        return false;
    return true;
  }

  void extend(uint32_t rest, int64_t devices, int64_t replicas,
              double slowest) {
    if (rest == 0) {
      if (!best || slowest < best->seconds) {
        best.emplace();
        best->stages.assign(stages.rbegin(), stages.rend());
        best->seconds = best->bound = slowest;
      }
      return;
    }
    for (uint32_t stage = rest; stage != 0; stage = (stage - 1) & rest)
      if (mayBeLast(rest, stage))
        for (const int64_t own : options)
          for (int64_t tensor = 1; devices + own * tensor <= problem.devices;
               ++tensor)
            if (replicas + own <= mostReplicas(problem)) {
              PiperStage next;
              next.replicas = own;
              next.tensor = tensor;
              pick(rest, stage, 0, next, devices + own * tensor, replicas + own,
                   slowest);
            }
  }

  /// A variant of the nodes from `node` on.
  void pick(uint32_t rest, uint32_t members, size_t node, PiperStage &stage,
            int64_t devices, int64_t replicas, double slowest) {
    if (node == problem.nodes.size()) {
      if (stage.bytes > problem.memoryBytes)
        return;
      stages.push_back(stage);
      extend(rest & ~members, devices, replicas,
             std::max(slowest, stage.seconds));
      stages.pop_back();
      return;
    }
    if (!(members >> node & 1))
      return pick(rest, members, node + 1, stage, devices, replicas, slowest);
    const auto variants = problem.nodes[node].variants.find(stage.tensor);
    if (variants == problem.nodes[node].variants.end())
      return;
    for (size_t v = 0; v < variants->second.size(); ++v) {
      const PiperVariant &variant = variants->second[v];
      PiperStage next = stage;
      next.nodes.push_back(int32_t(node));
      next.variants.push_back(int32_t(v));
      const double crossing =
          crossingBytes(problem, adjacency, int32_t(node), variant,
                        [&](int32_t other) { return members >> other & 1; });
      next.seconds += nodeSeconds(problem, variant, crossing, stage.replicas);
      next.bytes += nodeBytes(variant, stage.replicas, replicas);
      pick(rest, members, node + 1, next, devices, replicas, slowest);
    }
  }

  const PiperProblem &problem;
  const Adjacency adjacency;
  const std::vector<int64_t> options;
  std::vector<PiperStage> stages; ///< last to first
  std::optional<PiperPlan> best;
};

} // namespace

std::optional<PiperPlan> bruteForcePiper(const PiperProblem &problem) {
  if (problem.check())
    return std::nullopt;
  return AllPlans(problem).run();
}

} // namespace takt
