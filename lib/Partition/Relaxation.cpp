//===- Relaxation.cpp - bounds from a chain without positions -------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Two dynamic programs. The first runs from the end of the chain and says what
// the rest behind a boundary needs, which bounds devices from above and
// micro-batches in flight from below; the second runs from the start and adds
// times, over (boundary, devices) and, where the number of stages is limited,
// (stages, boundary, devices).
//
// A prefix with index d is one that uses at most d devices while what follows
// uses at most D - d; slack therefore sits in front, and the empty prefix is
// possible at every index.
//
//===----------------------------------------------------------------------===//

#include "Relaxation.h"

#include <algorithm>

namespace takt::partition {

namespace {
constexpr int32_t kMany = std::numeric_limits<int32_t>::max() / 4;
/// Numbers in the table beyond which stages are no longer counted (128 MB).
constexpr int64_t kLargestTable = int64_t(1) << 24;
/// More stages than this (256 MB) end the search like its work limit.
constexpr size_t kMostCandidates = size_t(1) << 24;
} // namespace

Relaxation::Relaxation(const Chain &chain)
    : chain(chain), devices(chain.devices()) {
  const bool limited =
      chain.exactStages() != 0 || chain.problem().maxStages != 0;
  const int64_t entries = int64_t(index(chain.maxStages() + 1, 0, 0));
  if (!limited || entries > kLargestTable)
    return;
  layers = chain.maxStages();
  exact = chain.exactStages() != 0;
}

bool Relaxation::solve(const Limits &newLimits, WorkMeter &meter) {
  limits = newLimits;
  best.clear();
  listCandidates(meter);
  if (exact)
    suffixByStages(meter);
  else
    suffixByDevices(meter);

  table.assign(index(layers + 1, 0, 0), kNever);
  first.assign((layers + 1) * (chain.size() + 1), devices + 1);
  std::fill_n(&table[0], devices + 1, 0);
  first[0] = 0;
  for (int32_t layer = std::min(layers, 1); layer <= layers; ++layer)
    fillLayer(layer, meter);
  if (meter.exhausted() || sum() >= kNever)
    return false;
  trace();
  return true;
}

/// Lists the stages that keep the limits; they are asked for many times. A
/// stage that breaks one ends its row, as do all wider ones.
void Relaxation::listCandidates(WorkMeter &meter) {
  candidates.clear();
  starts.assign(chain.numOptions(), 0); // none end at 0
  for (int32_t end = 1; end <= chain.size(); ++end)
    for (int32_t o = 0; o < chain.numOptions(); ++o) {
      starts.push_back(candidates.size());
      if (leastTransfer(end, o) > limits.time)
        continue;
      for (int32_t begin = end - 1; begin >= 0; --begin) {
        const Nanos time = chain.time(begin, end, o);
        if (time > limits.time ||
            chain.leastReduce(begin, end, o) > limits.reduce ||
            chain.neverFits(begin, end, o))
          break;
        // In flight are at most the micro-batches or the stages.
        const int64_t held =
            std::min<int64_t>(chain.maxInFlight(begin, end, o), kMany);
        if (held >= chain.inFlight(0))
          candidates.push_back({begin, int32_t(held), time});
      }
      if (candidates.size() > kMostCandidates)
        meter.done = std::max(meter.done, meter.limit);
      if (meter.exhausted()) {
        starts.assign(size_t(chain.size() + 1) * chain.numOptions() + 1, 0);
        candidates.clear();
        return;
      }
    }
  starts.push_back(candidates.size());
  meter.done += int64_t(candidates.size());
  candidates.push_back({0, 0, 0}); // so that the last row's end has an address
}

//===----------------------------------------------------------------------===//
// What the rest needs
//===----------------------------------------------------------------------===//

/// The number of stages is known, and so is every stage's memory.
void Relaxation::suffixByStages(WorkMeter &meter) {
  const int32_t size = chain.size(), width = size + 1;
  suffix.assign((layers + 1) * width, kMany);
  suffix[size] = 0;
  for (int32_t count = 1; count <= layers && !meter.exhausted(); ++count)
    for (int32_t end = 1; end <= size; ++end) {
      const int32_t rest = suffix[(count - 1) * width + end];
      if (rest >= kMany)
        continue;
      int32_t *own = &suffix[count * width];
      for (int32_t o = 0; o < chain.numOptions(); ++o) {
        const Candidate *last = endOf(end, o);
        meter.done += last - beginOf(end, o);
        for (const Candidate *c = beginOf(end, o); c != last; ++c)
          if (chain.inFlight(count - 1) <= c->held &&
              chain.admits(c->begin, end, layers - count))
            own[c->begin] = std::min(own[c->begin], rest + chain.replicas(o));
      }
    }
}

/// The number of stages is free: fewer of them mean less in flight in front.
/// Where that does not matter, only whether the devices suffice is of interest.
void Relaxation::suffixByDevices(WorkMeter &meter) {
  const int32_t size = chain.size();
  const bool counts = chain.memoryLimited() && chain.inFlightVaries();
  suffix.assign(index(0, size + 1, 0), kMany);
  std::fill_n(&suffix[index(0, size, 0)], devices + 1, 0);
  for (int32_t end = size; end > 0 && !meter.exhausted(); --end) {
    // Nothing will be added to this row. "At most": more devices never need
    // more stages.
    int32_t *rest = &suffix[index(0, end, 0)];
    for (int32_t d = 1; d <= devices; ++d)
      rest[d] = std::min(rest[d], rest[d - 1]);
    const int32_t needed =
        std::find_if(rest, rest + devices + 1,
                     [](int32_t stages) { return stages < kMany; }) -
        rest;
    for (int32_t o = 0; o < chain.numOptions(); ++o) {
      const int32_t count = chain.replicas(o), from = count + needed;
      // Only the smallest index is needed where stages do not count.
      const int32_t to = counts ? devices : std::min(devices, from);
      const Candidate *last = endOf(end, o);
      meter.done += (last - beginOf(end, o)) * (1 + std::max(0, to - from));
      for (const Candidate *c = beginOf(end, o); c != last; ++c) {
        int32_t *own = &suffix[index(0, c->begin, 0)];
        for (int32_t d = from; d <= to; ++d)
          if (rest[d - count] + 1 < own[d] &&
              chain.inFlight(rest[d - count]) <= c->held)
            own[d] = rest[d - count] + 1;
      }
    }
  }
}

//===----------------------------------------------------------------------===//
// Least sums
//===----------------------------------------------------------------------===//

void Relaxation::fillLayer(int32_t layer, WorkMeter &meter) {
  const int32_t width = chain.size() + 1;
  for (int32_t end = 1; end < width && !meter.exhausted(); ++end) {
    fillPrefix(layer, end, meter);
    Nanos *own = &table[index(layer, end, 0)];
    if (layer > 0 && !exact) // "at most" so many stages
      for (int32_t d = 0; d <= devices; ++d)
        own[d] = std::min(own[d], table[index(layer - 1, end, d)]);
    int32_t &possible = first[layer * width + end];
    possible = 0;
    while (possible <= devices && own[possible] >= kNever)
      ++possible;
  }
  if (layer > 0 && !exact) {
    std::fill_n(&table[index(layer, 0, 0)], devices + 1, 0);
    first[layer * width] = 0;
  }
}

/// Adds every stage that ends at `end` to what comes before it.
void Relaxation::fillPrefix(int32_t layer, int32_t end, WorkMeter &meter) {
  const int32_t previous = std::max(0, layer - 1);
  Nanos *own = &table[index(layer, end, 0)];
  for (int32_t o = 0; o < chain.numOptions(); ++o) {
    const Nanos across = leastTransfer(end, o);
    const int32_t count = chain.replicas(o);
    for (const Candidate *c = beginOf(end, o); c != endOf(end, o); ++c) {
      if (exact && !chain.admits(c->begin, end, layer - 1))
        continue;
      const int32_t from =
          count + first[previous * (chain.size() + 1) + c->begin];
      const int32_t last = largestIndex(layer, end, c->held);
      meter.done += 1 + std::max(0, last - from);
      const Nanos cost = c->time + across;
      const Nanos *before = &table[index(previous, c->begin, 0)];
      for (int32_t d = from; d <= last; ++d)
        own[d] = std::min(own[d], before[d - count] + cost);
    }
  }
}

/// The largest index of a prefix whose last stage can hold `held`
/// micro-batches: what follows must be left the devices it needs, and so many
/// that the stages there are few enough for the stage to fit. -1 if there is
/// none.
int32_t Relaxation::largestIndex(int32_t layer, int32_t end,
                                 int64_t held) const {
  if (exact) {
    const int32_t after = layers - layer;
    return held < chain.inFlight(after)
               ? -1
               : devices - suffix[after * (chain.size() + 1) + end];
  }
  const int32_t *after = &suffix[index(0, end, 0)];
  int32_t low = 0, high = devices + 1; // devices left behind the stage
  while (low < high) {
    const int32_t middle = (low + high) / 2;
    if (after[middle] < kMany && chain.inFlight(after[middle]) <= held)
      high = middle;
    else
      low = middle + 1;
  }
  return devices - low;
}

/// Finds the stages behind the least sum of the whole chain again.
void Relaxation::trace() {
  int32_t layer = layers, end = chain.size(), count = devices;
  while (end > 0) {
    const Nanos sum = table[index(layer, end, count)];
    if (layer > 0 && !exact && table[index(layer - 1, end, count)] == sum) {
      --layer;
      continue;
    }
    const int32_t previous = std::max(0, layer - 1);
    const Stage stage = lastStage(layer, end, count);
    best.push_back(stage);
    count -= chain.replicas(stage.option);
    end = stage.begin;
    layer = previous;
  }
  std::reverse(best.begin(), best.end());
}

/// A stage that gives the table its entry.
Stage Relaxation::lastStage(int32_t layer, int32_t end, int32_t count) const {
  const int32_t previous = std::max(0, layer - 1);
  for (int32_t o = 0; o < chain.numOptions(); ++o)
    for (const Candidate *c = beginOf(end, o); c != endOf(end, o); ++c) {
      const int32_t rest = count - chain.replicas(o);
      if (rest >= 0 && count <= largestIndex(layer, end, c->held) &&
          (!exact || chain.admits(c->begin, end, layer - 1)) &&
          table[index(previous, c->begin, rest)] + c->time +
                  leastTransfer(end, o) ==
              table[index(layer, end, count)])
        return {c->begin, end, o};
    }
  return {0, end, 0}; // not reached: some stage gave the entry
}

} // namespace takt::partition
