//===- Explain.cpp - why there is no assignment ---------------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// The reason is the first limit, in the order counts, devices, memory, that no
// assignment can keep. Ways out are found by solving again with one thing
// changed; those that cost nothing come first, hardware last.
//
//===----------------------------------------------------------------------===//

#include "Explain.h"

#include "Feasible.h"

#include "takt/Support/Quantity.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace takt::partition {

namespace {

class Explanation {
public:
  Explanation(const PartitionProblem &problem, WorkMeter &meter)
      : problem(problem), chain(problem), meter(meter) {}

  Infeasible run() {
    Infeasible result;
    result.reason = reason();
    scheduleWay(result.waysOut);
    microBatchWay(result.waysOut);
    wishWays(result.waysOut);
    hardwareWays(result.waysOut);
    result.segment = segment;
    result.memoryWay = memoryWay;
    return result;
  }

private:
  bool feasible(const PartitionProblem &changed) {
    Stages stages;
    return !changed.check() &&
           findFeasible(Chain(changed), meter, stages) == Answer::Yes;
  }

  //===--------------------------------------------------------------------===//
  // The reason
  //===--------------------------------------------------------------------===//

  std::string reason() {
    if (chain.numOptions() == 0)
      return optionsReason();
    if (chain.exactStages() > chain.size())
      return fmt::format("{} stages are asked for, but the chain can be cut "
                         "into at most {}",
                         chain.exactStages(), chain.size());
    if (problem.maxStages != 0 && chain.exactStages() > problem.maxStages)
      return fmt::format("{} stages are asked for, but at most {} are allowed",
                         chain.exactStages(), problem.maxStages);
    if (chain.exactStages() > chain.maxStages())
      return fmt::format("{} stages of at least {} each need {}, there are {}",
                         chain.exactStages(),
                         plural(chain.replicas(0), "device"),
                         int64_t(chain.exactStages()) * chain.replicas(0),
                         problem.cluster.devices);
    if (problem.useAllDevices && !addsUp())
      return fmt::format("no choice of replicas ({}) for {}{} adds up to all "
                         "{} devices",
                         fmt::join(possibleReplicas(), ", "),
                         chain.exactStages() != 0 ? "" : "at most ",
                         plural(chain.maxStages(), "stage"),
                         problem.cluster.devices);
    return memoryReason();
  }

  /// Whether some stages use all devices, memory aside.
  bool addsUp() {
    PartitionProblem unlimited = problem;
    unlimited.cluster.memory = 0;
    return feasible(unlimited);
  }

  std::string optionsReason() const {
    if (problem.replicas) {
      std::vector<int64_t> possible = problem.replicaOptions;
      while (!possible.empty() && possible.back() > problem.cluster.devices)
        possible.pop_back();
      return fmt::format("a stage cannot have {} on {}, only {}",
                         plural(*problem.replicas, "replica"),
                         plural(problem.cluster.devices, "device"),
                         possible.empty()
                             ? "none"
                             : fmt::format("{}", fmt::join(possible, ", ")));
    }
    return fmt::format("a stage needs at least {} devices, there are {}",
                       problem.replicaOptions.front(), problem.cluster.devices);
  }

  std::vector<int32_t> possibleReplicas() const {
    std::vector<int32_t> counts;
    for (int32_t o = 0; o < chain.numOptions(); ++o)
      counts.push_back(chain.replicas(o));
    return counts;
  }

  static std::string plural(int64_t count, const char *what) {
    return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
  }

  std::string demandOf(int32_t group, Bytes bytes) const {
    const int32_t first = chain.segment(group);
    const int32_t last = chain.segment(group + 1) - 1;
    const std::string &name = problem.segments[first].name;
    if (first == last)
      return fmt::format("segment '{}' alone needs {}", name,
                         formatBytes(bytes));
    return fmt::format("segments '{}' to '{}' together need {}", name,
                       problem.segments[last].name, formatBytes(bytes));
  }

  /// A group that does not fit where it holds as little as it ever can, or
  /// else the devices that memory asks for.
  std::string memoryReason() {
    const std::string memory = formatBytes(problem.cluster.memory);
    for (int32_t g = 0; g < chain.size(); ++g) {
      int32_t best = 0;
      const int64_t held = chain.inFlight(fewestBehind(g));
      for (int32_t o = 1; o < chain.numOptions(); ++o)
        if (chain.memory(g, g + 1, o, held) <
            chain.memory(g, g + 1, best, held))
          best = o;
      const Bytes needed = chain.memory(g, g + 1, best, held);
      if (needed <= problem.cluster.memory)
        continue;
      segment = chain.segment(g);
      return fmt::format(
          "{} a device with {} and {} in flight, devices have {}",
          demandOf(g, needed), plural(chain.replicas(best), "replica"),
          held == 1 ? "1 micro-batch" : fmt::format("{} micro-batches", held),
          memory);
    }
    PartitionProblem free = problem;
    free.useAllDevices = false;
    const int64_t devices = leastDevices(Chain(free), meter);
    if (devices > problem.cluster.devices)
      return fmt::format("at least {} are needed for memory ({} each), there "
                         "are {}",
                         plural(devices, "device"), memory,
                         problem.cluster.devices);
    if (chain.exactStages() != 0)
      return fmt::format("no way to give {} to {} fits into {} each",
                         plural(problem.cluster.devices, "device"),
                         plural(chain.exactStages(), "stage"), memory);
    return fmt::format("no assignment to {} fits into {} each",
                       plural(problem.cluster.devices, "device"), memory);
  }

  /// Stages that stand behind a group in every assignment.
  int32_t fewestBehind(int32_t group) const {
    if (problem.cuts)
      return chain.size() - group - 1;
    // Asked for a number of stages, at most `group` of them stand in front.
    return std::max(0, chain.exactStages() - group - 1);
  }

  //===--------------------------------------------------------------------===//
  // Ways out
  //===--------------------------------------------------------------------===//

  void scheduleWay(std::vector<std::string> &ways) {
    if (problem.inFlight != InFlightPolicy::GPipe || !chain.memoryLimited())
      return;
    PartitionProblem changed = problem;
    changed.inFlight = InFlightPolicy::OneFOneB;
    if (feasible(changed))
      ways.push_back("use the schedule 1f1b, which holds fewer micro-batches "
                     "than gpipe");
  }

  /// Smaller micro-batches: bytes of activations shrink with them.
  void microBatchWay(std::vector<std::string> &ways) {
    if (!chain.memoryLimited())
      return;
    const int64_t largest = problem.replicaOptions.back();
    for (int64_t factor = 2; factor <= largest; ++factor) {
      if (largest % factor != 0)
        continue;
      const PartitionProblem changed = withSmallerMicroBatches(factor);
      if (!changed.replicaOptions.empty() && feasible(changed)) {
        ways.push_back(
            problem.continuous
                ? fmt::format("use micro-batches {} times smaller (estimated)",
                              factor)
                : fmt::format("use {} micro-batches, each {} times smaller "
                              "(estimated)",
                              changed.microBatches, factor));
        return;
      }
    }
  }

  PartitionProblem withSmallerMicroBatches(int64_t factor) const {
    PartitionProblem changed = problem;
    if (!problem.continuous)
      changed.microBatches *= factor;
    changed.replicaOptions.clear();
    std::vector<size_t> kept;
    for (size_t o = 0; o < problem.replicaOptions.size(); ++o)
      if (problem.replicaOptions.back() / factor % problem.replicaOptions[o] ==
          0) {
        changed.replicaOptions.push_back(problem.replicaOptions[o]);
        kept.push_back(o);
      }
    for (SegmentCost &segment : changed.segments) {
      const SegmentCost whole = segment;
      auto pick = [&](std::vector<int64_t> SegmentCost::*values,
                      int64_t divisor) {
        (segment.*values).clear();
        for (const size_t o : kept)
          (segment.*values)
              .push_back(((whole.*values)[o] + divisor - 1) / divisor);
      };
      pick(&SegmentCost::time, factor);
      pick(&SegmentCost::update, 1);
      pick(&SegmentCost::saved, factor);
      pick(&SegmentCost::workspace, factor);
      pick(&SegmentCost::output, factor);
      segment.outputWhole = (whole.outputWhole + factor - 1) / factor;
    }
    return changed;
  }

  /// What the user asked for and could give up.
  void wishWays(std::vector<std::string> &ways) {
    PartitionProblem changed = problem;
    if (problem.cuts || problem.stages != 0) {
      changed.cuts.reset();
      changed.stages = 0;
      if (feasible(changed))
        ways.push_back(problem.cuts ? "leave the choice of cuts free"
                                    : "leave the number of stages free");
    }
    changed = problem;
    changed.maxStages = 0;
    if (problem.maxStages != 0 && feasible(changed))
      ways.push_back(fmt::format("allow more than {}",
                                 plural(problem.maxStages, "stage")));
    changed = problem;
    changed.replicas.reset();
    if (problem.replicas && feasible(changed))
      ways.push_back("leave the number of replicas free");
    changed = problem;
    changed.useAllDevices = false;
    if (problem.useAllDevices && feasible(changed))
      ways.push_back("do not insist on using all devices");
    changed = problem;
    bool forbidden = false;
    for (SegmentCost &segment : changed.segments) {
      forbidden |= !segment.mayCutAfter;
      segment.mayCutAfter = true;
    }
    if (forbidden && !problem.cuts && feasible(changed))
      ways.push_back("allow cuts after every segment");
  }

  /// Four digits are shown; they must be enough for who takes them at their
  /// word.
  static std::string roundedUp(Bytes bytes) {
    const std::string text = formatBytes(bytes);
    const Parsed<int64_t> shown = parseBytes(text);
    return shown && shown.value >= bytes ? text
                                         : formatBytes(bytes + bytes / 2000);
  }

  void hardwareWays(std::vector<std::string> &ways) {
    PartitionProblem changed = problem;
    if (!problem.useAllDevices) {
      const int64_t devices = leastDevices(chain, meter);
      if (devices > problem.cluster.devices)
        ways.push_back(
            fmt::format("use {} of this kind", plural(devices, "device")));
    }
    changed.cluster.memory = 0;
    if (!chain.memoryLimited() || !feasible(changed))
      return;
    // Least memory by bisection; everything on one device is always enough.
    Bytes low = problem.cluster.memory, high = low;
    do {
      high = 2 * high;
      changed.cluster.memory = high;
    } while (!feasible(changed) && !meter.exhausted());
    // Finer than what is shown.
    while (high - low > 1 + low / 20000 && !meter.exhausted()) {
      changed.cluster.memory = low + (high - low) / 2;
      (feasible(changed) ? high : low) = changed.cluster.memory;
    }
    if (meter.exhausted())
      return;
    memoryWay = int32_t(ways.size());
    ways.push_back(
        fmt::format("use devices with at least {}", roundedUp(high)));
  }

  const PartitionProblem &problem;
  const Chain chain;
  WorkMeter &meter;
  int32_t segment = -1, memoryWay = -1; ///< of the answer
};

} // namespace

Infeasible explain(const PartitionProblem &problem, WorkMeter &meter) {
  return Explanation(problem, meter).run();
}

} // namespace takt::partition
