//===- Thresholds.cpp - the values that times can take --------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// A stage's cost grows with its end and shrinks with its begin, so two pointers
// run over all stages that bracket a value.
//
//===----------------------------------------------------------------------===//

#include "Thresholds.h"

#include <algorithm>

namespace takt::partition {

template <typename F>
Nanos Thresholds::atLeast(F cost, Nanos value) const {
  Nanos best = kNever;
  for (int32_t begin = 0, end = 1; begin < chain.size(); ++begin) {
    end = std::max(end, begin + 1);
    while (end <= chain.size() && cost(begin, end) < value)
      ++end;
    if (end > chain.size())
      break;
    best = std::min(best, cost(begin, end));
  }
  return best;
}

template <typename F>
Nanos Thresholds::atMost(F cost, Nanos value) const {
  Nanos best = -1;
  for (int32_t begin = 0, end = 0; begin < chain.size(); ++begin) {
    end = std::max(end, begin);
    while (end < chain.size() && cost(begin, end + 1) <= value)
      ++end;
    if (end > begin)
      best = std::max(best, cost(begin, end));
  }
  return best;
}

Nanos Thresholds::timeAtLeast(Nanos value) const {
  Nanos best = kNever;
  for (int32_t o = 0; o < chain.numOptions(); ++o) {
    const auto cost = [&](int32_t begin, int32_t end) {
      return chain.time(begin, end, o);
    };
    best = std::min(best, atLeast(cost, value));
    for (const bool network : {false, true})
      for (int32_t at = 1; at < chain.size(); ++at)
        if (chain.transfer(at, o, network) >= value)
          best = std::min(best, chain.transfer(at, o, network));
  }
  return best;
}

Nanos Thresholds::timeAtMost(Nanos value) const {
  Nanos best = -1;
  for (int32_t o = 0; o < chain.numOptions(); ++o) {
    const auto cost = [&](int32_t begin, int32_t end) {
      return chain.time(begin, end, o);
    };
    best = std::max(best, atMost(cost, value));
    for (const bool network : {false, true})
      for (int32_t at = 1; at < chain.size(); ++at)
        if (chain.transfer(at, o, network) <= value)
          best = std::max(best, chain.transfer(at, o, network));
  }
  return best;
}

Nanos Thresholds::reduceAtLeast(Nanos value) const {
  Nanos best = kNever;
  for (int32_t o = 0; o < chain.numOptions(); ++o)
    for (const bool network : {false, true}) {
      const auto cost = [&](int32_t begin, int32_t end) {
        return chain.reduce(begin, end, o, network);
      };
      best = std::min(best, atLeast(cost, value));
    }
  return best;
}

Nanos Thresholds::reduceAtMost(Nanos value) const {
  Nanos best = -1;
  for (int32_t o = 0; o < chain.numOptions(); ++o)
    for (const bool network : {false, true}) {
      const auto cost = [&](int32_t begin, int32_t end) {
        return chain.reduce(begin, end, o, network);
      };
      best = std::max(best, atMost(cost, value));
    }
  return best;
}

} // namespace takt::partition
