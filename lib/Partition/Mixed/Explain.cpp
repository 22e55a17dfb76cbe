//===- Explain.cpp - why unequal devices do not do ------------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Asks the search once more with other limits. Where only feasibility matters
// all times are zero: the first answer is then as good as any.
//
//===----------------------------------------------------------------------===//
#include "Search.h"

#include "takt/Support/Quantity.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace takt {

using namespace mixed;

namespace {

class Explanation {
public:
  Explanation(const MixedProblem &problem, int64_t workLimit)
      : problem(problem), left(workLimit) {}

  MixedInfeasible run() {
    if (problem.maxTime > 0 || problem.maxPrice >= 0) {
      MixedProblem free = problem;
      free.maxTime = 0;
      free.maxPrice = -1;
      if (feasible(free))
        return limitReason(free);
    }
    MixedInfeasible found;
    found.reason = reason(found.segment);
    ways(found.waysOut);
    return found;
  }

private:
  /// Without work left nothing is said to be feasible.
  bool feasible(MixedProblem changed) {
    if (left < 1)
      return false;
    changed = timeless(changed);
    if (changed.chain.pins.empty() || changed.chain.stages > 0 ||
        changed.chain.cuts)
      return holds(changed);
    // Pins need the number of stages.
    const int64_t most = int64_t(changed.chain.segments.size());
    for (int64_t count = 1; count <= most; ++count) {
      changed.chain.stages = count;
      if ((changed.chain.maxStages == 0 || count <= changed.chain.maxStages) &&
          holds(changed))
        return true;
    }
    return false;
  }

  bool holds(MixedProblem changed) {
    if (changed.check() || left < 1)
      return false;
    if (changed.chain.cuts)
      changed.chain.stages = int64_t(changed.chain.cuts->size()) + 1;
    const MixedBounds bounds(changed);
    MixedSearch search(changed, bounds, left);
    search.run(0);
    left -= search.work();
    return search.best().has_value();
  }

  /// A limit on time or price is all that is in the way.
  MixedInfeasible limitReason(MixedProblem free) {
    const bool byTime = problem.maxTime > 0;
    free.objective = byTime ? StageObjective::Time : StageObjective::Price;
    const MixedResult best = solveMixed(free, std::max<int64_t>(1, left));
    MixedInfeasible found;
    found.byLimit = true;
    found.reason = byTime ? fmt::format("no assignment takes at most {} a step",
                                        formatTime(problem.maxTime))
                          : fmt::format("no assignment costs at most {} a step",
                                        problem.maxPrice);
    if (!best.partition)
      return found;
    const bool exact = best.partition->bound == best.partition->time;
    if (byTime) {
      found.reason +=
          fmt::format(", the fastest {} {}", exact ? "takes" : "found takes",
                      formatTime(best.partition->time));
      found.waysOut.push_back(
          {fmt::format("allow {}", exactTime(best.partition->time)), -1});
    } else {
      found.reason +=
          fmt::format(", the cheapest {} {:.6g}",
                      exact ? "costs" : "found costs", best.partition->price());
      found.waysOut.push_back(
          {fmt::format("allow {:.6g}", best.partition->price() * (1 + 1e-5)),
           -1});
    }
    return found;
  }

  std::string kinds() const {
    std::vector<std::string> parts;
    for (const DevicePool &pool : problem.pools)
      parts.push_back(fmt::format(
          "{} x '{}'{}", pool.devices, pool.kind,
          pool.memory > 0
              ? fmt::format(" with {} each", formatBytes(pool.memory))
              : std::string()));
    return fmt::format("{}", fmt::join(parts, " and "));
  }

  /// A segment that fits nowhere even alone, or that together they do not.
  std::string reason(int32_t &segment) const {
    const PartitionProblem &chain = problem.chain;
    const int64_t n = int64_t(chain.segments.size());
    const int64_t held =
        chain.inFlight == InFlightPolicy::GPipe ? chain.microBatches : 1;
    for (int64_t i = 0; i < n; ++i) {
      Bytes least = INT64_MAX;
      bool fits = false;
      for (size_t o = 0; o < chain.replicaOptions.size(); ++o) {
        const Bytes needed = stageMemory(chain, i, i + 1, int64_t(o), held);
        for (const DevicePool &pool : problem.pools) {
          if (chain.replicaOptions[o] > pool.devices ||
              (chain.replicas && *chain.replicas != chain.replicaOptions[o]))
            continue;
          least = std::min(least, needed);
          fits = fits || pool.memory == 0 || needed <= pool.memory;
        }
      }
      if (fits || least == INT64_MAX)
        continue;
      segment = int32_t(i);
      return fmt::format("segment '{}' alone needs {} a device with {} "
                         "micro-batch{} in flight, there are {}",
                         chain.segments[i].name, formatBytes(least), held,
                         held == 1 ? "" : "es", kinds());
    }
    std::string wanted;
    if (chain.cuts || chain.stages > 0)
      wanted = fmt::format(" of {} stages",
                           chain.cuts ? int64_t(chain.cuts->size()) + 1
                                      : chain.stages);
    if (chain.replicas)
      wanted += fmt::format(" with {} replicas", *chain.replicas);
    return fmt::format("no assignment{} fits {}", wanted, kinds());
  }

  void ways(std::vector<MixedWay> &ways) {
    MixedProblem changed = problem;
    if (problem.chain.inFlight == InFlightPolicy::GPipe) {
      changed.chain.inFlight = InFlightPolicy::OneFOneB;
      if (feasible(changed))
        ways.push_back({"use the schedule 1f1b, which holds fewer "
                        "micro-batches than gpipe",
                        -1});
      changed = problem;
    }
    if (problem.chain.cuts || problem.chain.stages > 0) {
      changed.chain.cuts.reset();
      changed.chain.stages = 0;
      if (feasible(changed))
        ways.push_back({problem.chain.cuts ? "leave the choice of cuts free"
                                           : "leave the number of stages free",
                        -1});
      changed = problem;
    }
    if (problem.chain.maxStages > 0) {
      changed.chain.maxStages = 0;
      if (feasible(changed))
        ways.push_back(
            {fmt::format("allow more than {} stages", problem.chain.maxStages),
             -1});
      changed = problem;
    }
    if (problem.chain.replicas) {
      changed.chain.replicas.reset();
      if (feasible(changed))
        ways.push_back({"leave the number of replicas free", -1});
    }
    for (size_t k = 0; k < problem.pools.size(); ++k) {
      memoryWay(k, ways);
      deviceWay(k, ways);
    }
  }

  /// Least memory of the devices of one pool that is enough, as shown.
  void memoryWay(size_t k, std::vector<MixedWay> &ways) {
    MixedProblem changed = problem;
    Bytes &memory = changed.pools[k].memory;
    if (memory == 0)
      return;
    memory = 0;
    if (!feasible(changed))
      return;
    Bytes low = problem.pools[k].memory, high = low;
    do {
      high = 2 * high;
      memory = high;
    } while (!feasible(changed) && left > 0 && high < INT64_MAX / 4);
    while (high - low > 1 + low / 20000 && left > 0) {
      memory = low + (high - low) / 2;
      (feasible(changed) ? high : low) = memory;
    }
    if (left < 1)
      return;
    // Four digits are shown; they must be enough.
    std::string text = formatBytes(high);
    const Parsed<int64_t> shown = parseBytes(text);
    if (!shown || shown.value < high)
      text = formatBytes(high + high / 2000);
    ways.push_back({fmt::format("give every '{}' at least {}",
                                problem.pools[k].kind, text),
                    int32_t(k)});
  }

  /// Fewest nodes more of one pool, up to sixteen times as many.
  void deviceWay(size_t k, std::vector<MixedWay> &ways) {
    MixedProblem changed = problem;
    const int64_t node = problem.pools[k].devicesPerNode;
    auto enough = [&](int64_t nodes) {
      changed.pools[k].devices = nodes * node;
      return feasible(changed);
    };
    int64_t low = problem.pools[k].devices / node, high = low;
    const int64_t most = 16 * low;
    do {
      high = std::min(most, 2 * high);
    } while (!enough(high) && high < most && left > 0);
    if (left < 1 || !enough(high))
      return;
    while (high - low > 1 && left > 0) {
      const int64_t middle = low + (high - low) / 2;
      (enough(middle) ? high : low) = middle;
    }
    if (left > 0)
      ways.push_back(
          {fmt::format("use {} of '{}'", high * node, problem.pools[k].kind),
           int32_t(k)});
  }

  const MixedProblem &problem;
  int64_t left;
};

} // namespace

MixedInfeasible explainMixed(const MixedProblem &problem, int64_t workLimit) {
  return Explanation(problem, workLimit).run();
}

} // namespace takt
