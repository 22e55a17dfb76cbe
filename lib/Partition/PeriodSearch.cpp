//===- PeriodSearch.cpp - the least period of a continuous flow -----------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// A bisection over the times that stages and transfers can have.
//
//===----------------------------------------------------------------------===//

#include "PeriodSearch.h"

#include <algorithm>

namespace takt::partition {

PeriodSearch::PeriodSearch(const Chain &chain, WorkMeter &meter)
    : chain(chain), meter(meter), thresholds(chain), relaxation(chain),
      labels(chain, relaxation) {}

/// Takes an assignment over if it keeps the limits and is better.
bool PeriodSearch::consider(const Stages &stages) {
  const Score own = chain.score(stages);
  if (own.total >= kNever)
    return false;
  const bool better = own.total != score.total ? own.total < score.total
                      : own.sum != score.sum   ? own.sum < score.sum
                                               : stages.size() < best.size();
  if (better) {
    best = stages;
    score = own;
  }
  return better;
}

/// Whether any assignment has at most this period; of Yes it is `best`.
PeriodSearch::Answer PeriodSearch::ask(Nanos period) {
  const Limits limits{period, kNever - 1};
  if (!relaxation.solve(limits, meter))
    return meter.exhausted() ? Answer::OutOfWork : Answer::No;
  consider(relaxation.stages());
  if (score.total <= period)
    return Answer::Yes;
  switch (labels.run(limits, 0, kNever, meter)) {
  case LabelSearch::Outcome::Found:
    consider(labels.stages());
    return Answer::Yes;
  case LabelSearch::Outcome::None:
    return Answer::No;
  case LabelSearch::Outcome::OutOfWork:
    return Answer::OutOfWork;
  }
  return Answer::OutOfWork;
}

/// Looks for a smaller sum at the same period.
void PeriodSearch::quicken() {
  const Limits limits{score.total, kNever - 1};
  if (relaxation.solve(limits, meter) && relaxation.sum() < score.sum &&
      labels.run(limits, 0, score.sum, meter) == LabelSearch::Outcome::Found)
    consider(labels.stages());
}

void PeriodSearch::run(Stages start) {
  consider(start);
  for (int32_t group = 0; group < chain.size(); ++group) {
    Nanos least = kNever;
    for (int32_t o = 0; o < chain.numOptions(); ++o)
      least = std::min(least, chain.time(group, group + 1, o));
    low = std::max(low, least);
  }
  low = thresholds.timeAtLeast(low);
  while (low < score.total && !meter.exhausted()) {
    const Nanos middle =
        thresholds.timeAtMost(low + (score.total - 1 - low) / 2);
    const Answer answer = ask(middle);
    if (answer == Answer::OutOfWork)
      return;
    if (answer == Answer::No)
      low = thresholds.timeAtLeast(middle + 1);
  }
  quicken();
}

} // namespace takt::partition
