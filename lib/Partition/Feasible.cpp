//===- Feasible.cpp - does any assignment keep the limits -----------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// For every number of stages and every boundary: which numbers of devices can
// hold what follows. Usually the least one tells everything; where all devices
// must be used it is a set of numbers, kept as bits.
//
//===----------------------------------------------------------------------===//

#include "Feasible.h"

#include <algorithm>

namespace takt::partition {

namespace {

/// A stage's memory costs as much as some transitions of the other programs.
constexpr int64_t kCheckCost = 4;

/// Numbers of devices from 0 to a limit.
class DeviceSet {
public:
  DeviceSet(int32_t limit, bool exact)
      : limit(limit), words(exact ? limit / 64 + 1 : 0), least(limit + 1) {}

  void add(int32_t count) {
    least = std::min(least, count);
    if (!words.empty())
      words[count / 64] |= uint64_t(1) << count % 64;
  }
  /// Adds every member of `other` plus `count`.
  void addShifted(const DeviceSet &other, int32_t count) {
    if (other.least > limit - count)
      return;
    least = std::min(least, other.least + count);
    const size_t skip = count / 64, bits = count % 64;
    for (size_t i = words.size(); i-- > skip;) {
      uint64_t word = other.words[i - skip] << bits;
      if (bits != 0 && i > skip)
        word |= other.words[i - skip - 1] >> (64 - bits);
      words[i] |= word;
    }
  }
  bool contains(int32_t count) const {
    return words.empty() ? least == count
                         : count >= 0 && words[count / 64] >> count % 64 & 1;
  }
  int64_t cost() const { return 1 + words.size(); }
  bool empty() const { return least > limit; }
  int32_t smallest() const { return least; }

private:
  int32_t limit;
  std::vector<uint64_t> words;
  int32_t least;
};

class Reach {
public:
  Reach(const Chain &chain, WorkMeter &meter) : chain(chain), meter(meter) {}

  Answer run(Stages &stages) {
    while (addLayer()) {
      const int32_t count = int32_t(layers.size()) - 1;
      const DeviceSet &whole = layers[count][0];
      const int32_t used =
          chain.useAllDevices() ? chain.devices() : whole.smallest();
      if (counts(count) && !whole.empty() && whole.contains(used)) {
        trace(count, used, stages);
        return Answer::Yes;
      }
    }
    return meter.exhausted() ? Answer::OutOfWork : Answer::No;
  }

  /// Fewest devices of any number of stages; 0 if none will do.
  int64_t least() {
    int64_t fewest = 0;
    while (addLayer()) {
      const DeviceSet &whole = layers.back()[0];
      if (counts(layers.size() - 1) && !whole.empty() &&
          (fewest == 0 || whole.smallest() < fewest))
        fewest = whole.smallest();
    }
    return meter.exhausted() ? 0 : fewest;
  }

private:
  bool counts(int64_t stages) const {
    return chain.exactStages() == 0 || chain.exactStages() == stages;
  }

  /// The sets of one stage more; false after the last and without work left.
  bool addLayer() {
    const DeviceSet nothing(chain.devices(), chain.useAllDevices());
    const std::vector<DeviceSet> none(chain.size() + 1, nothing);
    if (layers.empty()) {
      layers.push_back(none);
      layers[0][chain.size()].add(0);
    }
    const int32_t count = int32_t(layers.size());
    if (count > chain.maxStages())
      return false;
    layers.push_back(none);
    for (int32_t begin = 0; begin < chain.size(); ++begin) {
      if (meter.exhausted())
        return false;
      fill(count, begin);
    }
    return true;
  }

  bool fits(int32_t count, int32_t begin, int32_t end, int32_t option) const {
    return chain.fits(begin, end, option, chain.inFlight(count - 1)) &&
           (chain.exactStages() == 0 || !chain.hasPins() ||
            chain.admits(begin, end, chain.exactStages() - count));
  }

  void fill(int32_t count, int32_t begin) {
    for (int32_t o = 0; o < chain.numOptions(); ++o)
      for (int32_t end = begin + 1;
           end <= chain.size() && !chain.neverFits(begin, end, o); ++end) {
        meter.done += kCheckCost + layers[count][begin].cost();
        const DeviceSet &rest = layers[count - 1][end];
        if (!rest.empty() && fits(count, begin, end, o))
          layers[count][begin].addShifted(rest, chain.replicas(o));
      }
  }

  /// Finds the stages behind a member of a set again.
  void trace(int32_t count, int32_t devices, Stages &stages) const {
    for (int32_t begin = 0; count > 0; --count) {
      const Stage stage = firstStage(count, begin, devices);
      stages.push_back(stage);
      devices -= chain.replicas(stage.option);
      begin = stage.end;
    }
  }

  Stage firstStage(int32_t count, int32_t begin, int32_t devices) const {
    for (int32_t o = 0; o < chain.numOptions(); ++o)
      for (int32_t end = begin + 1; end <= chain.size(); ++end) {
        const int32_t rest = devices - chain.replicas(o);
        if (rest >= 0 && layers[count - 1][end].contains(rest) &&
            fits(count, begin, end, o))
          return {begin, end, o};
      }
    return {begin, chain.size(), 0}; // not reached: the set has the member
  }

  const Chain &chain;
  WorkMeter &meter;
  std::vector<std::vector<DeviceSet>> layers; ///< by stages, first group
};

} // namespace

Answer findFeasible(const Chain &chain, WorkMeter &meter, Stages &stages) {
  stages.clear();
  if (chain.maxStages() < 1 || chain.exactStages() > chain.maxStages())
    return Answer::No;
  return Reach(chain, meter).run(stages);
}

int64_t leastDevices(const Chain &chain, WorkMeter &meter) {
  PartitionProblem problem = chain.problem();
  problem.useAllDevices = false;
  problem.cluster.devices = std::min<int64_t>(
      int64_t(1) << 20, int64_t(chain.size()) * problem.replicaOptions.back());
  const Chain wide(problem);
  if (wide.maxStages() < 1 || wide.exactStages() > wide.maxStages())
    return 0;
  return Reach(wide, meter).least();
}

} // namespace takt::partition
