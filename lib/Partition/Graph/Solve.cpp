//===- Solve.cpp - the ladder: answer, bound, gap -------------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Where the down-sets can be counted, the program over them ends the matter. It
// is many times faster with a good answer to beat, so a few orders come first.
//
//===----------------------------------------------------------------------===//

#include "OrderSearch.h"

#include <fmt/format.h>

#include <algorithm>

namespace takt {

using namespace graphcut;

namespace {

/// States of the program over down-sets that memory is spent on.
constexpr int64_t kMostStates = int64_t(1) << 25;

/// What no partition can get around, or that none was found.
std::string whyNot(const Context &context) {
  const GraphProblem &problem = context.problem;
  Bytes needed = 0, there = 0;
  bool limited = true;
  for (const Choice &choice : context.use.choices())
    limited &= problem.devices[choice.device].memory != 0;
  for (const DeviceKind &kind : problem.devices)
    there += kind.count * kind.memory;
  for (int32_t g = 0; g < context.graph.size; ++g) {
    const GraphNode &node = context.graph.nodes[g];
    std::string name = fmt::format("node '{}'", node.name);
    if (context.graph.members[g].size() > 1)
      name += fmt::format(" and the {} that stay with it",
                          context.graph.members[g].size() - 1);
    bool runs = false, fits = false;
    Bytes most = 0;
    for (const Choice &choice : context.use.choices()) {
      if (node.time[choice.device] == kCannotRun)
        continue;
      const Bytes memory = problem.devices[choice.device].memory;
      runs = true;
      fits |= memory == 0 || node.memory + node.saved <= memory;
      most = std::max(most, memory);
    }
    if (!runs)
      return name + " can run on no device";
    if (!fits)
      return fmt::format("{} needs {} bytes, no device that can run it has "
                         "more than {} bytes",
                         name, node.memory + node.saved, most);
    needed += node.memory + node.saved;
  }
  if (limited && needed > there)
    return fmt::format("the nodes need {} bytes, all devices together have {} "
                       "bytes",
                       needed, there);
  if (problem.exactBlocks && problem.maxBlocks > context.graph.size)
    return fmt::format("{} blocks were asked for, there are {} nodes that can "
                       "be parted",
                       problem.maxBlocks, context.graph.size);
  return "no acyclic partition keeps all limits";
}

bool hasAnswer(const GraphPartition &partition) {
  return !partition.blocks.empty();
}

GraphResult unanswered(const Context &context, bool ruledOut) {
  GraphResult result;
  result.outOfWork = !ruledOut;
  result.infeasible.reason =
      ruledOut ? whyNot(context)
               : "the work limit was reached before any partition was found";
  return result;
}

} // namespace

GraphResult solveGraph(const GraphProblem &problem,
                       const GraphSettings &settings) {
  GraphResult result;
  if (auto fault = problem.check()) {
    result.infeasible.reason = *fault;
    return result;
  }
  const Context context(problem);
  const int64_t cap =
      std::min<int64_t>(settings.maxDownSets, kMostStates / context.use.size());
  int64_t downSets = 0;
  const std::optional<Lattice> lattice =
      allDownSets(context.graph, std::max<int64_t>(cap, 1), downSets);
  Meter search{0, settings.searchWork};
  GraphPartition best =
      searchOrders(context, settings.seed, lattice.has_value(), search);
  Meter meter{0, settings.workLimit};
  bool exact = false;
  if (lattice) {
    const Nanos limit = hasAnswer(best) ? best.objective - 1 : kNever;
    search::Running running("period of the graph: program over down-sets");
    if (hasAnswer(best))
      running.setBest(best.objective);
    Answer answer = bestChain(context, *lattice, limit, meter);
    exact = answer.finished;
    if (hasAnswer(answer.partition))
      best = std::move(answer.partition);
  }
  if (!hasAnswer(best))
    return unanswered(context, exact);
  best.downSets = downSets;
  best.work = search.done + meter.done;
  if (exact) {
    best.bound = best.objective;
    best.rung = GraphRung::DownSets;
  } else {
    GraphBound bound = bottleneckBound(problem, best, settings.solver);
    best.bound = bound.value;
    best.rung = bound.rung;
    best.failure = std::move(bound.failure);
  }
  result.partition = std::move(best);
  return result;
}

GraphResult solveGraphInOrder(const GraphProblem &problem,
                              const std::vector<int32_t> &order) {
  GraphResult result;
  if (auto fault = problem.check()) {
    result.infeasible.reason = *fault;
    return result;
  }
  const Context context(problem);
  Meter meter{0, INT64_MAX};
  Answer answer = bestChain(
      context,
      prefixes(context.graph,
               orderByKeys(context.graph.after, keysOf(context.graph, order))),
      kNever, meter);
  if (!hasAnswer(answer.partition)) {
    result.infeasible.reason = "no cut of the order keeps all limits";
    return result;
  }
  answer.partition.work = meter.done;
  result.partition = std::move(answer.partition);
  return result;
}

int64_t countDownSets(const GraphProblem &problem, int64_t cap) {
  int64_t counted = 0;
  if (!problem.check())
    allDownSets(condense(problem), cap, counted);
  return counted;
}

} // namespace takt
