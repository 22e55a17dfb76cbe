//===- Heuristic.cpp - good assignments, quickly --------------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Equal replicas and balanced cuts are what people choose by hand, and mostly
// close to the best; a local search takes them the rest of the way.
//
//===----------------------------------------------------------------------===//

#include "Heuristic.h"

#include <algorithm>
#include <utility>

namespace takt::partition {

namespace {

/// Cuts the chain into exactly `count` stages, none slower than `limit`, from
/// its end: each stage as wide as time and memory let it. Empty if that fails.
Stages cutFromEnd(const Chain &chain, int32_t option, int32_t count,
                  Nanos limit, WorkMeter &meter) {
  Stages stages;
  int32_t end = chain.size();
  for (int32_t after = 0; after < count; ++after) {
    const int32_t before = count - after - 1; // stages still to come
    int32_t widest = -1;
    for (int32_t begin = end - 1; begin >= before; --begin) {
      ++meter.done;
      if (chain.time(begin, end, option) > limit ||
          chain.neverFits(begin, end, option))
        break;
      if (chain.maxInFlight(begin, end, option) >= chain.inFlight(after))
        widest = begin;
    }
    if (widest < 0)
      return {};
    stages.push_back({widest, end, option});
    end = widest;
  }
  if (end != 0)
    return {};
  std::reverse(stages.begin(), stages.end());
  return stages;
}

/// The cut into `count` stages whose slowest stage is fastest.
Stages balance(const Chain &chain, int32_t option, int32_t count,
               WorkMeter &meter) {
  Nanos high = chain.time(0, chain.size(), option);
  Nanos low = high / count;
  Stages best = cutFromEnd(chain, option, count, high, meter);
  if (best.empty())
    return best;
  while (low < high && !meter.exhausted()) {
    const Nanos middle = low + (high - low) / 2;
    Stages stages = cutFromEnd(chain, option, count, middle, meter);
    if (stages.empty()) {
      low = middle + 1;
      continue;
    }
    best = std::move(stages);
    high = middle;
  }
  return best;
}

class LocalSearch {
public:
  LocalSearch(const Chain &chain, WorkMeter &meter, Stages &stages)
      : chain(chain), meter(meter), stages(stages),
        best(chain.score(stages).total) {}

  void run() {
    bool moved = true;
    while (moved && !meter.exhausted()) {
      moved = false;
      // Indices, as the number of stages changes under way.
      for (size_t s = 0; s < stages.size(); ++s)
        moved |= moveCut(s) || changeOption(s) || swapOptions(s) || join(s) ||
                 split(s);
    }
  }

private:
  /// Takes `trial` over if it is better.
  bool take(const Stages &trial) {
    meter.done += trial.size();
    const Nanos total = chain.score(trial).total;
    if (total >= best)
      return false;
    best = total;
    stages = trial;
    return true;
  }

  bool moveCut(size_t s) {
    if (s + 1 >= stages.size())
      return false;
    for (const int32_t by : {-1, 1, -2, 2}) {
      Stages trial = stages;
      trial[s].end += by;
      trial[s + 1].begin += by;
      if (trial[s].end > trial[s].begin &&
          trial[s + 1].end > trial[s + 1].begin && take(trial))
        return true;
    }
    return false;
  }

  bool changeOption(size_t s) {
    for (int32_t o = 0; o < chain.numOptions(); ++o) {
      Stages trial = stages;
      trial[s].option = o;
      if (take(trial))
        return true;
    }
    return false;
  }

  /// Swaps replicas with the next stage.
  bool swapOptions(size_t s) {
    if (s + 1 >= stages.size() || stages[s].option == stages[s + 1].option)
      return false;
    Stages trial = stages;
    std::swap(trial[s].option, trial[s + 1].option);
    return take(trial);
  }

  bool join(size_t s) {
    if (s + 1 >= stages.size())
      return false;
    for (int32_t o = 0; o < chain.numOptions(); ++o) {
      Stages trial = stages;
      trial[s] = {stages[s].begin, stages[s + 1].end, o};
      trial.erase(trial.begin() + s + 1);
      if (take(trial))
        return true;
    }
    return false;
  }

  bool split(size_t s) {
    const Stage whole = stages[s];
    const int32_t middle = (whole.begin + whole.end) / 2;
    if (middle == whole.begin)
      return false;
    for (int32_t o = 0; o <= whole.option; ++o) {
      Stages trial = stages;
      trial[s] = {whole.begin, middle, o};
      trial.insert(trial.begin() + s + 1, {middle, whole.end, o});
      if (take(trial))
        return true;
    }
    return false;
  }

  const Chain &chain;
  WorkMeter &meter;
  Stages &stages;
  Nanos best;
};

} // namespace

Stages bestUniform(const Chain &chain, WorkMeter &meter) {
  Stages best;
  Nanos bestTotal = kNever;
  for (int32_t o = 0; o < chain.numOptions(); ++o) {
    const int32_t most =
        std::min(chain.maxStages(), chain.devices() / chain.replicas(o));
    const int32_t fewest = std::max(1, chain.exactStages());
    // All small numbers of stages, a choice of the large ones.
    for (int32_t count = fewest; count <= most && !meter.exhausted();
         count += 1 + count / 32) {
      Stages stages = balance(chain, o, count, meter);
      const Nanos total = chain.score(stages).total;
      if (total < bestTotal) {
        bestTotal = total;
        best = std::move(stages);
      }
    }
  }
  return best;
}

void improve(const Chain &chain, WorkMeter &meter, Stages &stages) {
  LocalSearch(chain, meter, stages).run();
}

} // namespace takt::partition
