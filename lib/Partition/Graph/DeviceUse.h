//===- DeviceUse.h - how many devices later blocks have taken ---*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// The program builds blocks from the last to the first, so a state is a
// down-set still to place and the devices that later blocks use.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "BlockLoad.h"

namespace takt::graphcut {

class DeviceUse {
public:
  explicit DeviceUse(const GraphProblem &problem);

  /// More states than this are refused by check(); building stops there.
  static constexpr int32_t kMostStates = 1 << 14;

  int32_t size() const { return int32_t(states.size()); }
  const std::vector<Choice> &choices() const { return ways; }
  /// State after one more block, or -1 if there are no devices for it.
  int32_t next(int32_t state, int32_t choice) const {
    return following[int64_t(state) * int64_t(ways.size()) + choice];
  }
  /// Micro-batches that a block holds with which state `after` begins.
  int64_t inFlight(int32_t after, const Choice &choice) const;
  /// Most devices that blocks before may use.
  int64_t left(int32_t state) const { return states[state].left; }
  /// Whether all nodes may be placed in this state.
  bool complete(int32_t state) const { return states[state].complete; }
  int64_t used(int32_t state) const { return states[state].used; }

private:
  struct State {
    int64_t used = 0, left = 0;
    bool complete = false;
  };
  const GraphProblem &problem;
  std::vector<Choice> ways;
  std::vector<State> states; ///< 0: nothing used
  std::vector<int32_t> following;
};

} // namespace takt::graphcut
