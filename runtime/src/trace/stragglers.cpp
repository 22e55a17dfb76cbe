//===- stragglers.cpp - ranks that are slow -------------------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Predicted times may all be off by one factor; what counts is a rank that is
// slower than its peers by its own prediction.
//
//===----------------------------------------------------------------------===//

#include "takt-rt/trace/why_hang.h"

#include <algorithm>

namespace takt::rt {

static Nanos medianOf(std::vector<Nanos> times) {
  auto middle = times.begin() + times.size() / 2;
  std::nth_element(times.begin(), middle, times.end());
  return *middle;
}

/// Predicted time in calls of one step.
static std::vector<Nanos> predictedBusy(const Plan &plan) {
  std::vector<Nanos> ofRank;
  for (const Role &role : plan.roles) {
    Nanos busy = 0;
    for (const Lane &lane : role.lanes)
      for (const Instr &instr : lane.instrs)
        if (lane.kind == LaneKind::Compute && instr.kind == InstrKind::Call)
          busy += role.procedures[instr.target].cost;
    ofRank.insert(ofRank.end(), role.replicas, busy);
  }
  return ofRank;
}

std::vector<Straggler>
findStragglers(const Plan &plan, const std::vector<std::vector<Nanos>> &busy,
               double factor) {
  constexpr Nanos kLeast = 1'000'000;
  std::vector<Nanos> predicted = predictedBusy(plan);
  struct Pace {
    int32_t rank;
    Nanos busy;
    double ratio;
  };
  std::vector<Pace> paces;
  for (size_t rank = 0; rank < busy.size() && rank < predicted.size(); ++rank)
    if (!busy[rank].empty() && predicted[rank] > 0) {
      Nanos median = medianOf(busy[rank]);
      paces.push_back(
          {int32_t(rank), median, double(median) / double(predicted[rank])});
    }
  std::vector<Straggler> found;
  if (paces.size() < 2)
    return found;
  // Of two, the faster one: a rank is not its own measure.
  std::vector<double> ratios;
  for (const Pace &pace : paces)
    ratios.push_back(pace.ratio);
  auto middle = ratios.begin() + (ratios.size() - 1) / 2;
  std::nth_element(ratios.begin(), middle, ratios.end());
  for (const Pace &pace : paces) {
    auto expected = Nanos(*middle * double(predicted[pace.rank]));
    if (expected > 0 && double(pace.busy) >= factor * double(expected) &&
        pace.busy - expected >= kLeast)
      found.push_back({pace.rank, pace.busy, expected});
  }
  return found;
}

} // namespace takt::rt
