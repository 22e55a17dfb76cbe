//===- Placed.cpp - stages whose ranks are given --------------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// One search for each number of replicas. A node of the branch and bound is a
// prefix of the stages; what is left of the chain must go to the ranks that
// still have stages to come, so the fullest of those ends at least at their
// mean.
//
//===----------------------------------------------------------------------===//
#include "Placed.h"

#include "Chain.h"

#include "takt/Support/Quantity.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

namespace takt::partition {

namespace {

/// More nodes than this take seconds and rarely find better cuts.
constexpr int64_t kMostNodes = int64_t(1) << 21;

using Cuts = std::vector<int64_t>; ///< begins of all stages, then the end

class PlacedSearch {
public:
  PlacedSearch(const PartitionProblem &problem, int64_t option,
               WorkMeter &meter);

  void run();
  bool found() const { return !best.empty(); }
  Nanos objective() const { return bestTotal; }
  /// Proven for this option; with `ended()` that there is no answer if none
  /// was found.
  Nanos bound() const { return ended ? bestTotal : rootBound; }
  bool isEnded() const { return ended; }
  /// What some device needs at least, if there is no answer for want of memory.
  Bytes leastMemory() const { return leastPeak; }
  Partition partition() const { return partitionOf(best); }

private:
  /// How an assignment compares: bytes too many, time, then evenness.
  struct Worth {
    Bytes overflow = 0;
    Nanos total = kNever;
    double spread = 0;
    bool operator<(const Worth &o) const {
      return std::tie(overflow, total, spread) <
             std::tie(o.overflow, o.total, o.spread);
    }
  };
  /// What the stages of a prefix add up to.
  struct Sums {
    std::vector<Nanos> time, reduce; ///< by rank
    std::vector<Bytes> memory, workspace;
    Nanos transfers = 0, slowest = 0;
  };

  Sums noSums() const {
    const std::vector<int64_t> zeros(ranks, 0);
    return {zeros, zeros, zeros, zeros};
  }
  bool mayEnd(int64_t at) const;
  bool allowed(int64_t stage, int64_t begin, int64_t end) const;
  Partition partitionOf(const Cuts &cuts) const;
  Worth worthOf(const Cuts &cuts);
  Cuts evenCuts() const;
  void improve(Cuts cuts);
  bool tryMove(Cuts &cuts, Worth &worth, int64_t one, int64_t by, int64_t other,
               int64_t otherBy);
  void take(const Cuts &cuts, const Worth &worth);
  Nanos leastTransfer(int64_t boundary) const;
  Nanos boundOf(int64_t stage, int64_t begin, const Sums &sums) const;
  bool descend(int64_t stage, Cuts &cuts, const Sums &sums);
  bool isLocal(int64_t boundary) const {
    return rankOf(boundary) == rankOf(boundary + 1);
  }
  int32_t rankOf(int64_t stage) const { return problem.rankOfStage[stage]; }

  const PartitionProblem &problem;
  const int64_t option, segments, stages, ranks;
  WorkMeter &meter;
  std::vector<Nanos> timeSums;                 ///< of the segments before each
  std::vector<std::vector<int32_t>> ranksFrom; ///< with stages from each on
  std::vector<Nanos> transfersFrom; ///< least of the boundaries from each on
  Cuts best;
  Nanos bestTotal = kNever, rootBound = 0;
  Bytes leastPeak = 0;
  bool ended = false;
  search::Running running{"stages: branch and bound"};
};

PlacedSearch::PlacedSearch(const PartitionProblem &problem, int64_t option,
                           WorkMeter &meter)
    : problem(problem), option(option), segments(problem.segments.size()),
      stages(problem.rankOfStage.size()), ranks(numRanks(problem)),
      meter(meter) {
  timeSums.assign(1, 0);
  for (const SegmentCost &segment : problem.segments)
    timeSums.push_back(timeSums.back() + segment.time[option]);
  ranksFrom.resize(stages + 1);
  transfersFrom.assign(stages + 1, 0);
  for (int64_t s = stages; s-- > 0;) {
    ranksFrom[s] = ranksFrom[s + 1];
    if (std::count(ranksFrom[s].begin(), ranksFrom[s].end(), rankOf(s)) == 0)
      ranksFrom[s].push_back(rankOf(s));
    transfersFrom[s] =
        transfersFrom[s + 1] + (s + 1 < stages ? leastTransfer(s) : 0);
  }
  rootBound = boundOf(0, 0, noSums());
  running.setBound(rootBound);
}

bool PlacedSearch::mayEnd(int64_t at) const {
  if (problem.cuts)
    return std::binary_search(problem.cuts->begin(), problem.cuts->end(), at);
  return problem.segments[at - 1].mayCutAfter;
}

bool PlacedSearch::allowed(int64_t stage, int64_t begin, int64_t end) const {
  if (begin >= end || (end < segments && !mayEnd(end)))
    return false;
  if (problem.cuts && stage + 1 < stages && (*problem.cuts)[stage] != end)
    return false;
  auto inside = [&](int64_t segment) {
    return segment >= begin && segment < end;
  };
  for (const SegmentPair &pair : problem.apart)
    if (inside(pair.first) && inside(pair.second))
      return false;
  for (const StagePin &pin : problem.pins)
    if (inside(pin.segment) != (pin.stage == stage))
      return false;
  return true;
}

Partition PlacedSearch::partitionOf(const Cuts &cuts) const {
  Partition partition;
  for (int64_t s = 0; s < stages; ++s) {
    StageChoice stage;
    stage.begin = cuts[s];
    stage.end = cuts[s + 1];
    stage.option = option;
    partition.stages.push_back(stage);
  }
  evaluate(problem, partition);
  return partition;
}

PlacedSearch::Worth PlacedSearch::worthOf(const Cuts &cuts) {
  meter.done += segments;
  const Partition partition = partitionOf(cuts);
  Worth worth;
  worth.total = partition.objective;
  std::vector<double> times(ranks);
  for (int64_t s = 0; s < stages; ++s)
    times[rankOf(s)] += double(partition.stages[s].time);
  for (const double time : times)
    worth.spread += time * time;
  for (const Bytes memory : rankMemory(problem, partition))
    if (problem.cluster.memory > 0)
      worth.overflow += std::max<Bytes>(0, memory - problem.cluster.memory);
  return worth;
}

/// Stages of about equal time, as far as cuts may lie there.
Cuts PlacedSearch::evenCuts() const {
  if (problem.cuts) {
    Cuts cuts{0};
    cuts.insert(cuts.end(), problem.cuts->begin(), problem.cuts->end());
    cuts.push_back(segments);
    return cuts;
  }
  std::vector<int64_t> places;
  for (int64_t at = 1; at < segments; ++at)
    if (mayEnd(at))
      places.push_back(at);
  if (int64_t(places.size()) < stages - 1)
    return {};
  Cuts cuts{0};
  size_t next = 0;
  for (int64_t s = 1; s < stages; ++s) {
    // As many places must be left as there are cuts to come.
    const size_t last = places.size() - size_t(stages - s);
    const double goal = double(timeSums.back()) * double(s) / double(stages);
    while (next < last && double(timeSums[places[next]]) < goal)
      ++next;
    cuts.push_back(places[next++]);
  }
  cuts.push_back(segments);
  return cuts;
}

void PlacedSearch::take(const Cuts &cuts, const Worth &worth) {
  if (worth.overflow > 0 || worth.total >= bestTotal)
    return;
  bestTotal = worth.total;
  best = cuts;
  meter.mayBreak = true; // there is an answer now
  running.setBest(bestTotal);
}

/// Moves cut `one`, and `other` if it is not 0; keeps what is better.
bool PlacedSearch::tryMove(Cuts &cuts, Worth &worth, int64_t one, int64_t by,
                           int64_t other, int64_t otherBy) {
  Cuts trial = cuts;
  trial[one] += by;
  if (other != 0)
    trial[other] += otherBy;
  for (const int64_t cut : {one, other})
    if (cut != 0 && (!allowed(cut - 1, trial[cut - 1], trial[cut]) ||
                     !allowed(cut, trial[cut], trial[cut + 1])))
      return false;
  const Worth moved = worthOf(trial);
  if (!(moved < worth))
    return false;
  worth = moved;
  cuts = std::move(trial);
  return true;
}

void PlacedSearch::improve(Cuts cuts) {
  if (cuts.empty())
    return;
  Worth worth = worthOf(cuts);
  auto isAllowed = [&] {
    for (int64_t s = 0; s < stages; ++s)
      if (!allowed(s, cuts[s], cuts[s + 1]))
        return false;
    return true;
  };
  if (!isAllowed())
    return; // left to the search from the start
  bool moved = !problem.cuts;
  while (moved && !meter.exhausted()) {
    moved = false;
    for (int64_t one = 1; one < stages; ++one)
      for (const int64_t by : {-1, 1, -2, 2})
        moved |= tryMove(cuts, worth, one, by, 0, 0);
    // A stage may grow where another of its rank shrinks.
    for (int64_t one = 1; !moved && one < stages; ++one)
      for (int64_t other = one + 1; other < stages && !meter.exhausted();
           ++other)
        for (const int64_t by : {-1, 1})
          for (const int64_t otherBy : {-1, 1})
            moved |= tryMove(cuts, worth, one, by, other, otherBy);
  }
  take(cuts, worth);
}

Nanos PlacedSearch::leastTransfer(int64_t boundary) const {
  if (isLocal(boundary))
    return 0;
  Nanos least = kNever;
  for (int64_t at = boundary + 1; at < segments - (stages - boundary - 2); ++at)
    if (mayEnd(at))
      least = std::min(least, boundaryTime(problem, option, boundary, at));
  return least == kNever ? 0 : least;
}

/// Least objective of any assignment that begins with the stages before
/// `stage`, which end at segment `begin`.
Nanos PlacedSearch::boundOf(int64_t stage, int64_t begin,
                            const Sums &sums) const {
  Nanos slowest = sums.slowest;
  for (const Nanos time : sums.time)
    slowest = std::max(slowest, time);
  if (const int64_t open = ranksFrom[stage].size(); open > 0) {
    Nanos rest = timeSums.back() - timeSums[begin];
    for (const int32_t rank : ranksFrom[stage])
      rest += sums.time[rank];
    slowest = std::max(slowest, (rest + open - 1) / open);
  }
  for (int64_t b = stage; b + 1 < stages; ++b)
    slowest = std::max(slowest, transfersFrom[b] - transfersFrom[b + 1]);
  const Nanos reduce =
      *std::max_element(sums.reduce.begin(), sums.reduce.end());
  return timeSums.back() + sums.transfers + transfersFrom[stage] +
         (problem.microBatches - 1) * slowest + reduce;
}

/// Tries all ends of a stage; false when the work is used up.
bool PlacedSearch::descend(int64_t stage, Cuts &cuts, const Sums &sums) {
  const int64_t begin = cuts.back();
  if (stage == stages) {
    take(cuts, worthOf(cuts));
    return true;
  }
  const int64_t last = segments - (stages - stage - 1);
  const int64_t first = stage + 1 == stages ? segments : begin + 1;
  for (int64_t end = first; end <= last; ++end) {
    if (meter.exhausted())
      return false;
    ++meter.done;
    if (!allowed(stage, begin, end))
      continue;
    Sums next = sums;
    next.time[rankOf(stage)] += timeSums[end] - timeSums[begin];
    next.reduce[rankOf(stage)] +=
        reduceTime(problem, option, stage, begin, end);
    if (stage + 1 < stages && !isLocal(stage)) {
      const Nanos transfer = boundaryTime(problem, option, stage, end);
      next.transfers += transfer;
      next.slowest = std::max(next.slowest, transfer);
    }
    const int32_t rank = rankOf(stage);
    const StageMemory memory = placedMemory(problem, option, stage, begin, end);
    next.memory[rank] += memory.held;
    next.workspace[rank] = std::max(next.workspace[rank], memory.workspace);
    const Bytes needed = next.memory[rank] + next.workspace[rank];
    if (problem.cluster.memory > 0 && needed > problem.cluster.memory) {
      leastPeak = leastPeak == 0 ? needed : std::min(leastPeak, needed);
      continue;
    }
    if (boundOf(stage + 1, end, next) >= bestTotal)
      continue;
    cuts.push_back(end);
    const bool goOn = descend(stage + 1, cuts, next);
    cuts.pop_back();
    if (!goOn)
      return false;
  }
  return true;
}

void PlacedSearch::run() {
  improve(evenCuts());
  if (bestTotal <= rootBound) {
    ended = true;
    return;
  }
  Cuts cuts{0};
  ended = descend(0, cuts, noSums());
}

/// What the chain needs of every device at least, wherever the cuts lie.
Bytes meanMemory(const PartitionProblem &problem, int64_t option) {
  const int64_t held =
      *std::min_element(problem.heldByStage.begin(), problem.heldByStage.end());
  Bytes all = 0;
  for (const SegmentCost &segment : problem.segments)
    all += segment.weights + segment.gradients + segment.optimizerState +
           held * segment.saved[option];
  return all / numRanks(problem);
}

} // namespace

PartitionResult solvePlaced(const PartitionProblem &problem,
                            int64_t workLimit) {
  PartitionResult result;
  const int64_t ranks = numRanks(problem);
  const int64_t stages = problem.rankOfStage.size();
  const int64_t segments = problem.segments.size();
  auto infeasible = [&](std::string reason) {
    result.infeasible.reason = std::move(reason);
    return result;
  };
  if (stages > segments)
    return infeasible(fmt::format(
        "{} stages need as many segments to cut between, the model has {}",
        stages, segments));
  Nanos bound = kNever;
  Bytes least = 0;
  bool unknown = false, any = false;
  for (size_t o = 0; o < problem.replicaOptions.size(); ++o) {
    const int64_t replicas = problem.replicaOptions[o];
    const int64_t devices = ranks * replicas;
    if (devices > problem.cluster.devices ||
        (problem.replicas && *problem.replicas != replicas) ||
        (problem.useAllDevices && devices != problem.cluster.devices))
      continue;
    any = true;
    const Bytes mean = meanMemory(problem, int64_t(o));
    if (problem.cluster.memory > 0 && mean > problem.cluster.memory) {
      least = least == 0 ? mean : std::min(least, mean);
      continue;
    }
    WorkMeter meter{0, std::min(workLimit, kMostNodes),
                    result.partition.has_value()};
    PlacedSearch search(problem, int64_t(o), meter);
    search.run();
    if (search.found() || !search.isEnded())
      bound = std::min(bound, search.bound());
    unknown |= !search.found() && !search.isEnded();
    if (search.leastMemory() > 0)
      least = least == 0 ? search.leastMemory()
                         : std::min(least, search.leastMemory());
    if (!search.found() ||
        (result.partition && result.partition->objective <= search.objective()))
      continue;
    const int64_t work = result.partition ? result.partition->work : 0;
    result.partition = search.partition();
    result.partition->work = work + meter.done;
  }
  if (result.partition) {
    Partition &partition = *result.partition;
    partition.bound = std::min(bound, partition.objective);
    partition.method = partition.bound < partition.objective
                           ? fmt::format("heuristic ({})", search::whyEnded())
                       : problem.cuts ? "given cuts"
                                      : "exact";
    return result;
  }
  if (!any)
    return infeasible(fmt::format(
        "{} ranks need at least {} devices, the cluster has {}", ranks,
        ranks * problem.replicas.value_or(problem.replicaOptions.front()),
        problem.cluster.devices));
  if (unknown) {
    result.outOfWork = true;
    return infeasible(
        "the work limit was reached before any assignment was found");
  }
  if (least > problem.cluster.memory && problem.cluster.memory > 0)
    return infeasible(fmt::format(
        "the {} stages on {} ranks need at least {} on some device, a device "
        "has {}",
        stages, ranks, formatBytes(least),
        formatBytes(problem.cluster.memory)));
  return infeasible("no assignment keeps all side constraints");
}

} // namespace takt::partition
