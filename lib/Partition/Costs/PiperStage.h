//===- PiperStage.h - variants of a stage -----------------------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// One variant of each layer of a stage, so that the stage takes no more than a
// given time and fits a device: a multiple-choice knapsack. Most questions are
// answered by its relaxation, which may run a layer partly in one variant and
// partly in another; the others by a program over all choices that none other
// beats in time and memory.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "takt/Partition/Costs/Piper.h"

namespace takt::piper {

struct Choice {
  double seconds = 0, bytes = 0;
};

enum class Outcome : uint8_t {
  Found,
  None,    ///< there is no such choice
  Unknown, ///< too many choices to tell
};

class StageChoices {
public:
  /// `variants` of one node at a time, until `settle`.
  void clear() { nodes.clear(); }
  void add(std::vector<Choice> variants) {
    nodes.push_back(std::move(variants));
  }
  /// The time if every node runs in its fastest variant.
  double fastest() const;

  /// `picked`: index of each node's variant, if asked for.
  Outcome choose(double mostSeconds, double mostBytes,
                 std::vector<int32_t> *picked) const;

private:
  std::vector<std::vector<Choice>> nodes;
};

} // namespace takt::piper
