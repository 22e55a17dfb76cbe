//===- PeriodSearch.h - the least period of a continuous flow ---*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Where micro-batches flow without end the objective is a maximum alone: the
// slowest stage or transfer. The search halves the range of values it can have,
// asking each time whether any assignment keeps within the middle: the relaxed
// problem says no at once, or gives one; else the label search decides. Of the
// assignments with the least period one with the least sum, which is the time
// that a micro-batch takes to pass, is the answer.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "LabelSearch.h"
#include "Thresholds.h"

namespace takt::partition {

class PeriodSearch {
public:
  PeriodSearch(const Chain &chain, WorkMeter &meter);

  /// Starts from an assignment that keeps all limits and ends with the best
  /// one, or the best seen when the meter runs out.
  void run(Stages start);

  const Stages &stages() const { return best; }
  Nanos objective() const { return score.total; }
  /// Proven: no assignment has a smaller period.
  Nanos bound() const { return low < score.total ? low : score.total; }

private:
  enum class Answer { Yes, No, OutOfWork };

  Answer ask(Nanos period);
  bool consider(const Stages &stages);
  void quicken();

  const Chain &chain;
  WorkMeter &meter;
  Thresholds thresholds;
  Relaxation relaxation;
  LabelSearch labels;
  Stages best;
  Score score; ///< of `best`
  Nanos low = 0;
};

} // namespace takt::partition
