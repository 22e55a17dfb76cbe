//===- Relaxation.cpp - bounds from a chain without positions -------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Two dynamic programs over (boundary, devices). The first runs from the end of
// the chain and counts the fewest stages, which bounds the micro-batches in
// flight from below; the second runs from its start and adds times.
//
// A prefix with index d is one that uses at most d devices while what follows
// uses at most D - d; slack therefore sits in front, prefixes[0][d] = 0.
//
//===----------------------------------------------------------------------===//

#include "Relaxation.h"

#include <algorithm>

namespace takt::partition {

namespace {
constexpr int32_t kNoStages = std::numeric_limits<int32_t>::max() / 2;
} // namespace

Relaxation::Relaxation(const Chain &chain) : chain(chain) {}

bool Relaxation::solve(const Limits &limits, double lambda, WorkMeter &meter) {
  price = static_cast<Nanos>(lambda);
  best.clear();
  if (!fewestStages(limits, meter) || !leastSums(limits, meter))
    return false;
  if (prefixes[index(chain.size(), chain.devices())] >= kNever)
    return false;
  collectStages();
  return true;
}

Nanos Relaxation::sum() const {
  const int32_t settled =
      chain.exactStages() != 0 ? chain.exactStages() : chain.maxStages();
  return prefixes[index(chain.size(), chain.devices())] - settle(settled);
}

/// Whether the stage, and with it every narrower one, keeps the limits.
bool Relaxation::admits(const Limits &limits, int32_t begin, int32_t end,
                        int32_t option) const {
  return chain.time(begin, end, option) <= limits.time &&
         chain.leastReduce(begin, end, option) <= limits.reduce &&
         !chain.neverFits(begin, end, option);
}

/// Fills `suffixStages`.
bool Relaxation::fewestStages(const Limits &limits, WorkMeter &meter) {
  const int32_t devices = chain.devices(), size = chain.size();
  suffixStages.assign(index(size + 1, 0), kNoStages);
  std::fill_n(&suffixStages[index(size, 0)], devices + 1, 0);
  if (!chain.memoryLimited() || !chain.inFlightVaries()) {
    fewestDevices(limits, meter);
    return !meter.exhausted();
  }
  std::vector<int32_t> first(size + 1, devices + 1); // first possible index
  first[size] = 0;
  for (int32_t begin = size - 1; begin >= 0; --begin) {
    if (meter.exhausted())
      return false;
    int32_t *own = &suffixStages[index(begin, 0)];
    for (int32_t o = 0; o < chain.numOptions(); ++o) {
      const int32_t count = chain.replicas(o);
      for (int32_t end = begin + 1;
           end <= size && admits(limits, begin, end, o); ++end) {
        const int64_t held = chain.maxInFlight(begin, end, o);
        const int32_t *rest = &suffixStages[index(end, 0)];
        const int32_t from = count + first[end];
        meter.done += 1 + std::max(0, devices - from);
        for (int32_t d = from; d <= devices; ++d) {
          const int32_t after = rest[d - count];
          if (after + 1 < own[d] && chain.inFlight(after) <= held)
            own[d] = after + 1;
        }
      }
    }
    // "At most": more devices never need more stages.
    for (int32_t d = 1; d <= devices; ++d)
      own[d] = std::min(own[d], own[d - 1]);
    while (first[begin] > 0 && own[first[begin] - 1] < kNoStages)
      --first[begin];
  }
  return true;
}

/// The same where the number of stages does not matter: it is put as 0 wherever
/// the devices suffice.
void Relaxation::fewestDevices(const Limits &limits, WorkMeter &meter) {
  const int32_t devices = chain.devices(), size = chain.size();
  std::vector<int64_t> needed(size + 1, devices + 1);
  needed[size] = 0;
  for (int32_t begin = size - 1; begin >= 0; --begin) {
    for (int32_t o = 0; o < chain.numOptions(); ++o)
      for (int32_t end = begin + 1;
           end <= size && admits(limits, begin, end, o); ++end) {
        ++meter.done;
        if (chain.maxInFlight(begin, end, o) >= chain.inFlight(0))
          needed[begin] =
              std::min(needed[begin], chain.replicas(o) + needed[end]);
      }
    for (int64_t d = needed[begin]; d <= devices; ++d)
      suffixStages[index(begin, d)] = 0;
  }
}

bool Relaxation::leastSums(const Limits &limits, WorkMeter &meter) {
  const int32_t devices = chain.devices(), size = chain.size();
  prefixes.assign(index(size + 1, 0), kNever);
  steps.resize(prefixes.size());
  std::fill_n(&prefixes[0], devices + 1, 0);
  std::vector<int32_t> first(size + 1, devices + 1); // first possible index
  first[0] = 0;
  for (int32_t end = 1; end <= size; ++end) {
    if (meter.exhausted())
      return false;
    const int32_t *after = &suffixStages[index(end, 0)];
    Nanos *own = &prefixes[index(end, 0)];
    Step *step = &steps[index(end, 0)];
    for (int32_t o = 0; o < chain.numOptions(); ++o) {
      const Nanos across = end < size ? chain.leastTransfer(end, o) : 0;
      if (across > limits.time)
        continue;
      const int32_t count = chain.replicas(o);
      for (int32_t begin = end - 1;
           begin >= 0 && admits(limits, begin, end, o); --begin) {
        const int64_t held = chain.maxInFlight(begin, end, o);
        const int32_t last =
            devices - devicesLeft(after, devices - count, held);
        const int32_t from = count + first[begin];
        meter.done += 1 + std::max(0, last - from);
        const Nanos cost = chain.time(begin, end, o) + across + price;
        const Nanos *before = &prefixes[index(begin, 0)];
        for (int32_t d = from; d <= last; ++d)
          if (before[d - count] < kNever && before[d - count] + cost < own[d]) {
            own[d] = before[d - count] + cost;
            step[d] = {begin, o};
          }
      }
    }
    for (int32_t d = 0; d <= devices && own[d] >= kNever; ++d)
      first[end] = d + 1;
    if (own[0] < kNever)
      first[end] = 0;
  }
  return true;
}

/// Devices that must be left to what follows a stage that can hold `held`
/// micro-batches: fewer devices there mean more stages and so more micro-batches
/// in flight here. `most` + 1 when none of 0 .. most will do.
int32_t Relaxation::devicesLeft(const int32_t *stagesAfter, int32_t most,
                                int64_t held) const {
  int32_t low = 0, high = most + 1;
  while (low < high) {
    const int32_t middle = (low + high) / 2;
    if (stagesAfter[middle] < kNoStages &&
        chain.inFlight(stagesAfter[middle]) <= held)
      high = middle;
    else
      low = middle + 1;
  }
  return low;
}

void Relaxation::collectStages() {
  int32_t devices = chain.devices();
  for (int32_t end = chain.size(); end > 0;) {
    const Step &step = steps[index(end, devices)];
    best.push_back({step.begin, end, step.option});
    devices -= chain.replicas(step.option);
    end = step.begin;
  }
  std::reverse(best.begin(), best.end());
}

} // namespace takt::partition
