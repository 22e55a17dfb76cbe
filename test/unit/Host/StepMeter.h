//===- StepMeter.h - what a rank allocates in its steps ---------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Observes a rank on its own thread from the begin of a step to its last
// instruction: what happens between steps is not in the figures.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "CountedNew.h"

#include "takt-rt/core/interpreter.h"

namespace takt::rt::test {

class StepMeter final : public RankObserver {
public:
  void stepBegan(int64_t) override {
    allocationsBefore = allocationsHere();
    done = 0;
  }
  void began(int, uint32_t) override {}
  void completed(int, uint32_t) override { ++done; }
  void stepEnded() override {
    allocations = allocationsHere() - allocationsBefore;
  }

  // Of the last step.
  uint64_t allocations = 0;
  uint64_t done = 0; ///< instructions

private:
  uint64_t allocationsBefore = 0;
};

} // namespace takt::rt::test
