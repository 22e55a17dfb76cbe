//===- Skip.cpp - paths through some of the stages ------------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// SkipPipe, arXiv 2502.19913, finds paths by conflict-based search. Here a plan
// is judged as a whole, by the order that a queue at every node gives: all
// combinations of paths where they are few, else one micro-batch after the
// other and then exchanges. Three stages of two nodes, a path for each of two
// micro-batches, forward up and backward the same way back:
//
//   node 0  F0.0 .    .    .    .    B0.0      node 1  F0.1 ...
//   node 2  .    F1.0 .    .    B1.0           node 3  .    F1.1 ...
//   node 4  .    .    F2.0 B2.0                node 5  .    .    F2.1 ...
//
//===----------------------------------------------------------------------===//

#include "takt/Schedule/ChainFamilies.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace takt {

namespace {

using NodePath = std::vector<int32_t>;

constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr int64_t kMostPaths = int64_t(1) << 14;
constexpr int64_t kMostCombinations = 20000;
/// Visits that the search may look at.
constexpr int64_t kMostLooks = int64_t(1) << 27;

std::vector<std::vector<int32_t>> nodesOfStages(const SkipProblem &skip) {
  std::vector<std::vector<int32_t>> nodes(skip.stages);
  for (int32_t node = 0; node < skip.nodes(); ++node)
    nodes[skip.stageOfNode[node]].push_back(node);
  return nodes;
}

/// All sequences of stages that a path may have.
std::vector<std::vector<int32_t>> stageSequences(const SkipProblem &skip) {
  if (skip.stages == 1)
    return {{0}};
  const int32_t middle = skip.stages - 2, chosen = skip.visits - 2;
  std::vector<bool> taken(middle, false);
  std::fill(taken.begin(), taken.begin() + chosen, true);
  std::vector<std::vector<int32_t>> all;
  do {
    std::vector<int32_t> sequence = {0};
    for (int32_t s = 0; s < middle; ++s)
      if (taken[s])
        sequence.push_back(s + 1);
    sequence.push_back(skip.stages - 1);
    all.push_back(sequence);
    for (int32_t i = 1; skip.reorder && i < chosen; ++i) {
      std::swap(sequence[i], sequence[i + 1]);
      all.push_back(sequence);
      std::swap(sequence[i], sequence[i + 1]);
    }
  } while (std::prev_permutation(taken.begin(), taken.end()));
  return all;
}

class SkipSearch {
public:
  explicit SkipSearch(const SkipProblem &skip)
      : skip(skip), nodes(nodesOfStages(skip)) {
    for (const std::vector<int32_t> &sequence : stageSequences(skip))
      addPaths(sequence, {});
    frame.ranks = skip.nodes();
    if (skip.exclusiveLinks)
      frame.ranks *= 1 + skip.nodes();
    else
      frame.hop = skip.hop;
    frame.mostHeld.assign(frame.ranks, skip.mostInFlight);
    for (const char *pass : {"F", "B"})
      for (int32_t s = 0; s < skip.stages; ++s)
        frame.steps.push_back({fmt::format("{}{}", pass, s), nodes[s]});
    if (skip.exclusiveLinks)
      frame.steps.push_back({"link"});
    for (const NodePath &path : paths)
      chains.push_back(chainOf(path));
  }

  std::optional<SkipPlan> run() {
    double combinations = 1;
    for (int32_t m = 0; m < skip.microBatches; ++m)
      combinations *= double(paths.size());
    const bool all = combinations <= kMostCombinations;
    if (all)
      tryAll();
    else
      search();
    if (best.empty())
      return std::nullopt;
    SkipPlan plan;
    plan.plan.problem = problemOf(best);
    plan.plan.schedule = listChains(plan.plan.problem).value();
    for (size_t path : best)
      plan.nodes.push_back(paths[path]);
    plan.makespan = bestCost.first;
    plan.allTried = all;
    return plan;
  }

private:
  using Choice = std::vector<size_t>;     ///< path of each micro-batch
  using Cost = std::pair<double, double>; ///< makespan, sum of paths alone

  void addPaths(const std::vector<int32_t> &sequence, NodePath path) {
    if (path.size() == sequence.size()) {
      paths.push_back(std::move(path));
      return;
    }
    for (int32_t node : nodes[sequence[path.size()]]) {
      path.push_back(node);
      addPaths(sequence, path);
      path.pop_back();
    }
  }

  std::vector<ChainVisit> chainOf(const NodePath &path) const {
    std::vector<ChainVisit> chain;
    std::vector<int32_t> forwards; // places of the passes up
    for (size_t i = 0; i < path.size(); ++i) {
      if (i > 0)
        addLink(chain, path[i - 1], path[i]);
      ChainVisit visit;
      visit.step = skip.stageOfNode[path[i]];
      visit.rank = path[i];
      visit.time = skip.forward;
      visit.held = 1;
      forwards.push_back(int32_t(chain.size()));
      chain.push_back(visit);
    }
    for (size_t i = path.size(); i-- > 0;) {
      if (i + 1 < path.size())
        addLink(chain, path[i + 1], path[i]);
      ChainVisit visit;
      visit.step = skip.stages + skip.stageOfNode[path[i]];
      visit.rank = path[i];
      visit.time = skip.backward;
      visit.freed = 1;
      visit.with = forwards[i];
      chain.push_back(visit);
    }
    return chain;
  }

  /// An exclusive link is a rank of its own, busy for the time of the hop.
  void addLink(std::vector<ChainVisit> &chain, int32_t from, int32_t to) const {
    if (!skip.exclusiveLinks || skip.hop.empty())
      return;
    ChainVisit visit;
    visit.step = 2 * skip.stages;
    visit.rank = skip.nodes() * (from + 1) + to;
    visit.time = skip.hop[from][to];
    chain.push_back(visit);
  }

  ChainProblem problemOf(const Choice &choice) const {
    ChainProblem problem = frame;
    for (size_t path : choice)
      problem.paths.push_back(chains[path]);
    return problem;
  }

  double timeAlone(size_t path) const {
    double time = 0;
    for (size_t i = 0; i < chains[path].size(); ++i)
      time += chains[path][i].time +
              (i > 0 ? frame.hopBetween(chains[path][i - 1].rank,
                                        chains[path][i].rank)
                     : 0);
    return time;
  }

  Cost costOf(const Choice &choice) {
    looks += int64_t(choice.size()) * int64_t(choice.size()) * 4 * skip.visits +
             frame.ranks;
    const ChainProblem problem = problemOf(choice);
    const auto schedule = listChains(problem);
    Cost cost = {kNever, 0};
    if (schedule)
      cost.first = timeChains(problem, *schedule).value().makespan;
    for (size_t path : choice)
      cost.second += timeAlone(path);
    return cost;
  }

  /// Visits of the stages between the ends differ by one at most.
  bool balanced(const Choice &choice) const {
    std::vector<int32_t> counts(skip.stages, 0);
    for (size_t path : choice)
      for (int32_t node : paths[path])
        ++counts[skip.stageOfNode[node]];
    if (skip.stages < 3)
      return true;
    const auto [least, most] =
        std::minmax_element(counts.begin() + 1, counts.end() - 1);
    return *most - *least <= 1;
  }

  bool keepIfBetter(const Choice &choice) {
    if (!balanced(choice))
      return false;
    const Cost cost = costOf(choice);
    if (cost.first == kNever || (!best.empty() && cost >= bestCost))
      return false;
    best = choice;
    bestCost = cost;
    return true;
  }

  void tryAll() {
    Choice choice(skip.microBatches, 0);
    for (bool more = true; more;) {
      keepIfBetter(choice);
      more = false;
      for (size_t m = 0; m < choice.size() && !more; ++m) {
        more = ++choice[m] < paths.size();
        if (!more)
          choice[m] = 0;
      }
    }
  }

  void search() {
    if (!startGreedily())
      return;
    for (bool better = true; better && looks < kMostLooks;) {
      better = false;
      for (size_t m = 0; m < best.size(); ++m)
        for (size_t path = 0; path < paths.size() && looks < kMostLooks;
             ++path) {
          Choice next = best;
          next[m] = path;
          better |= next != best && keepIfBetter(next);
        }
      for (size_t m = 0; m < best.size(); ++m)
        for (size_t other = 0; other < m && looks < kMostLooks; ++other) {
          Choice next = best;
          std::swap(next[m], next[other]);
          better |= next != best && keepIfBetter(next);
        }
    }
  }

  /// One micro-batch after the other takes the path that ends earliest, among
  /// those through the stages that were visited least.
  bool startGreedily() {
    std::vector<int32_t> counts(skip.stages, 0);
    Choice choice;
    for (int32_t m = 0; m < skip.microBatches; ++m) {
      std::vector<int32_t> wanted;
      for (int32_t s = 1; s + 1 < skip.stages; ++s)
        wanted.push_back(s);
      std::stable_sort(wanted.begin(), wanted.end(), [&](int32_t a, int32_t b) {
        return counts[a] < counts[b];
      });
      wanted.resize(std::max(skip.visits - 2, 0));
      Cost least = {kNever, 0};
      size_t chosen = 0;
      for (size_t path = 0; path < paths.size(); ++path) {
        bool fits = true;
        for (size_t i = 1; i + 1 < paths[path].size(); ++i)
          fits &= std::count(wanted.begin(), wanted.end(),
                             skip.stageOfNode[paths[path][i]]) > 0;
        if (!fits)
          continue;
        choice.push_back(path);
        const Cost cost = costOf(choice);
        choice.pop_back();
        if (cost < least) {
          least = cost;
          chosen = path;
        }
      }
      if (least.first == kNever)
        return false;
      choice.push_back(chosen);
      for (int32_t s : wanted)
        ++counts[s];
    }
    return keepIfBetter(choice);
  }

  const SkipProblem &skip;
  const std::vector<std::vector<int32_t>> nodes; ///< by stage
  std::vector<NodePath> paths;                   ///< all there are
  std::vector<std::vector<ChainVisit>> chains;   ///< of the paths
  ChainProblem frame;                            ///< without micro-batches
  int64_t looks = 0;
  Choice best;
  Cost bestCost = {kNever, 0};
};

/// At most `kMostPaths` + 1.
int64_t countPaths(const SkipProblem &skip) {
  const auto nodes = nodesOfStages(skip);
  // ways[k]: of k stages between the ends, all nodes, in ascending order.
  std::vector<double> ways(skip.stages, 0);
  ways[0] = 1;
  for (int32_t s = 1; s + 1 < skip.stages; ++s)
    for (int32_t k = s; k >= 1; --k)
      ways[k] += ways[k - 1] * double(nodes[s].size());
  double count = double(nodes.front().size());
  if (skip.stages > 1)
    count *= double(nodes.back().size()) * ways[skip.visits - 2];
  if (skip.reorder)
    count *= std::max(skip.visits - 2, 1);
  return int64_t(std::min(count, double(kMostPaths + 1)));
}

} // namespace

std::optional<std::string> SkipProblem::check() const {
  constexpr int32_t kMostStages = 64, kMostMicroBatches = 4096;
  constexpr int32_t kMostNodes = 512;
  if (nodes() > kMostNodes)
    return fmt::format("there are {} nodes, more than {}", nodes(), kMostNodes);
  if (stages < 1 || stages > kMostStages)
    return fmt::format("'stages' is {}, not from 1 to {}", stages, kMostStages);
  if (microBatches < 1 || microBatches > kMostMicroBatches)
    return fmt::format("'microBatches' is {}, not from 1 to {}", microBatches,
                       kMostMicroBatches);
  const int32_t least = std::min(stages, 2);
  if (visits < least || visits > stages)
    return fmt::format("'visits' is {}, not from {} to {}", visits, least,
                       stages);
  for (int32_t stage : stageOfNode)
    if (stage < 0 || stage >= stages)
      return fmt::format("a node is of stage {}, and there are {}", stage,
                         stages);
  for (int32_t s = 0; s < stages; ++s)
    if (std::find(stageOfNode.begin(), stageOfNode.end(), s) ==
        stageOfNode.end())
      return fmt::format("no node is of stage {}", s);
  if (mostInFlight < 1)
    return fmt::format("'mostInFlight' is {}, not at least 1", mostInFlight);
  for (auto [name, value] :
       {std::pair("forward", forward), {"backward", backward}})
    if (!(value >= 0) || !std::isfinite(value))
      return fmt::format("'{}' is {}", name, value);
  ChainProblem links;
  links.ranks = nodes();
  links.hop = hop;
  if (auto fault = links.check())
    return fault;
  if (countPaths(*this) > kMostPaths)
    return fmt::format("a micro-batch has more than {} paths to choose from",
                       kMostPaths);
  return std::nullopt;
}

std::optional<SkipPlan> planSkip(const SkipProblem &problem) {
  return SkipSearch(problem).run();
}

} // namespace takt
