//===- Bound.cpp - bounds where down-sets are too many --------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Some block has at least the average work a device: with least times w(v) and
// D devices, sum over blocks of w = W and of replicas <= D, so one block on r
// replicas has w >= r W / D. Its load is bounded from below by the best such
// block with everything before and after it merged into one (the bottleneck
// relaxation of Archer et al. 2023): two truth values a node, "before" and "not
// after", both closed under predecessors. The sums are chains of integers with
// a step a node or tensor, which is difference logic.
//
//===----------------------------------------------------------------------===//

#include "DownSetProgram.h"

#include <fmt/format.h>

#include <algorithm>

namespace takt {

using namespace graphcut;

namespace {

/// Probes stop at a gap of one part in this.
constexpr Nanos kPrecision = 1000;

struct Average {
  Nanos work = 0;      ///< least times of all nodes
  int64_t devices = 0; ///< that blocks may use
  Nanos bound = 0;
};

Average average(const Context &context) {
  Average result;
  result.devices = context.use.left(0);
  for (const Nanos time : context.leastTime)
    if (time != kNever)
      result.work += time;
  if (result.devices > 0)
    result.bound = (result.work + result.devices - 1) / result.devices;
  for (int32_t v = 0; v < context.graph.size; ++v) {
    Nanos least = kNever;
    for (const Choice &choice : context.use.choices()) {
      const Nanos time = context.graph.nodes[v].time[choice.device];
      if (time != kCannotRun)
        least = std::min(least, (time + choice.replicas - 1) / choice.replicas);
    }
    if (least != kNever)
      result.bound = std::max(result.bound, least);
  }
  return result;
}

/// The question "is there a bottleneck with a load of at most this?"
class Relaxation {
public:
  Relaxation(const Context &context, const Choice &choice, const Average &mean)
      : context(context), graph(context.graph), choice(choice) {
    for (int32_t v = 0; v < graph.size; ++v)
      addNode(v);
    collectLoads();
    requireWork(
        int64_t((__int128(choice.replicas) * mean.work + mean.devices - 1) /
                mean.devices));
  }

  solver::Problem atMost(Nanos load) const {
    solver::Problem question = problem;
    for (const std::vector<solver::Term> &sum : loads) {
      const Nanos grain = grainOf(sum);
      std::vector<solver::Term> terms = sum;
      for (solver::Term &term : terms)
        term.weight /= grain; // down: the question only gets easier
      question.limitWeight(std::move(terms),
                           std::min(load / grain, solver::kLargestWeight));
    }
    return question;
  }

private:
  using Terms = std::vector<solver::Term>;

  /// What weights are divided by, so that the solver can add them.
  static Nanos grainOf(const Terms &terms) {
    Nanos sum = 0;
    for (const solver::Term &term : terms)
      sum += term.weight;
    return sum / (solver::kLargestWeight / 2) + 1;
  }

  void addNode(int32_t v) {
    before.push_back(problem.addTruth(fmt::format("before-{}", v)));
    notAfter.push_back(problem.addTruth(fmt::format("not-after-{}", v)));
    inside.push_back(problem.addTruth(fmt::format("inside-{}", v)));
    problem.require({fails(before[v]), holds(notAfter[v])});
    for (const int32_t u : graph.before[v]) {
      problem.require({fails(before[v]), holds(before[u])});
      problem.require({fails(notAfter[v]), holds(notAfter[u])});
    }
    problem.require({fails(inside[v]), holds(notAfter[v])});
    problem.require({fails(inside[v]), fails(before[v])});
    problem.require({holds(inside[v]), holds(before[v]), fails(notAfter[v])});
    if (graph.nodes[v].time[choice.device] == kCannotRun)
      problem.require({fails(inside[v])});
  }

  /// Work of at least `least` inside: little work outside.
  void requireWork(Nanos least) {
    Terms terms;
    Nanos whole = 0;
    for (int32_t v = 0; v < graph.size; ++v) {
      const Nanos time = context.leastTime[v];
      if (time == kNever)
        continue;
      whole += time;
      terms.push_back({fails(inside[v]), time});
    }
    const Nanos grain = grainOf(terms);
    for (solver::Term &term : terms)
      term.weight /= grain;
    problem.limitWeight(std::move(terms), (whole - least) / grain);
  }

  void collectLoads() {
    const bool together = context.problem.costModel == GraphCostModel::Sum;
    const int64_t r = choice.replicas;
    Terms work, in, out;
    for (int32_t v = 0; v < graph.size; ++v) {
      const GraphNode &node = graph.nodes[v];
      if (node.time[choice.device] == kCannotRun)
        continue;
      // Rounded down, so that the sum stays below what the block pays.
      work.push_back({holds(inside[v]), node.time[choice.device] +
                                            2 * (r - 1) * node.reduce / r});
    }
    if (context.problem.devices[choice.device].transfers)
      for (const CondensedTensor &tensor : graph.tensors) {
        Terms &reading = together ? work : in;
        reading.push_back({holds(readsFromOutside(tensor)), tensor.time});
        Terms &sending = together ? work : out;
        sending.push_back({holds(isReadOutside(tensor)), tensor.time});
      }
    loads = {work, in, out};
  }

  solver::Truth readsFromOutside(const CondensedTensor &tensor) {
    const solver::Truth truth = problem.addTruth("in");
    const solver::Truth home = inside[tensor.producer];
    const bool relayed = context.problem.costModel == GraphCostModel::Relayed;
    for (const int32_t v : tensor.consumers) {
      if (relayed)
        problem.require(
            {holds(truth), fails(before[tensor.producer]), holds(before[v])});
      else
        problem.require({holds(truth), holds(home), fails(inside[v])});
    }
    return truth;
  }

  solver::Truth isReadOutside(const CondensedTensor &tensor) {
    const solver::Truth truth = problem.addTruth("out");
    const solver::Truth home = inside[tensor.producer];
    const bool relayed = context.problem.costModel == GraphCostModel::Relayed;
    for (const int32_t v : tensor.consumers) {
      if (relayed)
        problem.require({holds(truth), fails(notAfter[tensor.producer]),
                         holds(notAfter[v])});
      else
        problem.require({holds(truth), fails(home), holds(inside[v])});
    }
    return truth;
  }

  const Context &context;
  const Condensed &graph;
  const Choice choice;
  solver::Problem problem;
  std::vector<solver::Truth> before, notAfter, inside;
  std::vector<std::vector<solver::Term>> loads;
};

/// Least period that a bottleneck run this way can have, up to `known`.
class Probes {
public:
  Probes(const Context &context, const Choice &choice, const Average &mean,
         Nanos known, const solver::Settings &settings)
      : relaxation(context, choice, mean), replicas(choice.replicas),
        low(mean.bound), known(known), settings(settings) {
    running.setBest(known);
  }

  /// Spends at most `work`.
  Nanos run(int64_t work) {
    left = work;
    // Is the answer proven? If not, halve.
    Nanos high = known;
    Nanos limit = known - 1;
    while (low < high) {
      const solver::Verdict verdict = probe(limit);
      if (verdict == solver::Verdict::Unsatisfiable)
        low = limit + 1;
      else if (verdict == solver::Verdict::Satisfiable)
        high = limit;
      running.setBound(std::min(low, known));
      if (verdict == solver::Verdict::Unknown || left <= 0 || failed ||
          high - low <= known / kPrecision)
        break;
      limit = low + (high - low) / 2;
    }
    return low;
  }
  /// What kept a question from being asked or its answer from being used.
  const solver::Failure &failure() const { return failed; }

private:
  solver::Verdict probe(Nanos period) {
    settings.workLimit = left;
    const solver::Answer answer =
        decide(relaxation.atMost(period * replicas), settings);
    left -= answer.work;
    failed = answer.failure;
    return answer.verdict;
  }

  const Relaxation relaxation;
  const int64_t replicas;
  Nanos low;
  const Nanos known;
  solver::Settings settings;
  int64_t left = 0;
  solver::Failure failed;
  search::Running running{"period of the graph: bottleneck relaxation"};
};

} // namespace

GraphBound averageBound(const GraphProblem &problem) {
  return {average(Context(problem)).bound, GraphRung::Average, {}};
}

GraphBound bottleneckBound(const GraphProblem &problem,
                           const GraphPartition &known,
                           const solver::Settings &settings) {
  const Context context(problem);
  const Average mean = average(context);
  Nanos bound = known.objective;
  const std::vector<Choice> &choices = context.use.choices();
  solver::Failure failure;
  if (settings.workLimit <= 0)
    bound = mean.bound;
  for (size_t c = 0; c < choices.size() && bound > mean.bound; ++c) {
    solver::Settings share = settings;
    share.name =
        fmt::format("bottleneck-{}-{}", choices[c].device, choices[c].replicas);
    Probes probes(context, choices[c], mean, known.objective, share);
    bound = std::min(bound,
                     probes.run(settings.workLimit / int64_t(choices.size())));
    failure = probes.failure();
    if (failure)
      bound = mean.bound; // the other ways to run it are not asked about
  }
  if (bound > mean.bound)
    return {bound, GraphRung::Bottleneck, {}};
  return {std::min(mean.bound, known.objective), GraphRung::Average,
          std::move(failure)};
}

} // namespace takt
