//===- BoxSearch.cpp - branch and bound over limits -----------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// For the box with the least bound: solve the relaxed problem under its upper
// limits. Its solution has some slowest time and longest all-reduce, the
// *corner*. Above the corner the objective is at least relaxed sum + corner;
// only if that promises an improvement the exact label search runs, there. What
// remains of the box, below the corner in time or in all-reduce, is cut in
// halves. Values between two thresholds are skipped, so the search ends.
//
//===----------------------------------------------------------------------===//

#include "BoxSearch.h"

#include <algorithm>
#include <utility>

namespace takt::partition {

BoxSearch::BoxSearch(const Chain &chain, WorkMeter &meter)
    : chain(chain), meter(meter), thresholds(chain), relaxation(chain),
      labels(chain, relaxation) {}

void BoxSearch::run(Stages start) {
  consider(std::move(start));
  Box all;
  all.high = {kNever - 1, kNever - 1};
  for (int32_t group = 0; group < chain.size(); ++group) {
    Nanos least = kNever;
    for (int32_t o = 0; o < chain.numOptions(); ++o)
      least = std::min(least, chain.time(group, group + 1, o));
    all.sum += least;
    all.low.time = group == 0 ? least : std::max(all.low.time, least);
  }
  all.low.reduce = 0;
  add(all);
  while (!open.empty()) {
    const Box box = *open.begin();
    if (box.bound >= bestTotal)
      break; // so have all others
    running.setBound(std::min(box.bound, unresolved));
    if (meter.exhausted()) {
      unresolved = std::min(unresolved, box.bound);
      break;
    }
    open.erase(open.begin());
    process(box);
  }
}

/// Takes an assignment over if it keeps the limits and is better.
void BoxSearch::consider(Stages stages) {
  const Nanos total = chain.score(stages).total;
  const bool preferred =
      total < bestTotal || (total == bestTotal && stages.size() < best.size());
  if (total >= kNever || !preferred)
    return;
  bestTotal = total;
  best = std::move(stages);
  running.setBest(bestTotal);
}

/// Cuts off what the bounds rule out already; false if nothing is left.
bool BoxSearch::shrink(Box &box) const {
  const Nanos room = bestTotal - 1 - valueAt(box.sum, box.low);
  if (room < 0)
    return false;
  if (weight() > 0 && box.low.time + room / weight() < box.high.time)
    box.high.time = thresholds.timeAtMost(box.low.time + room / weight());
  if (box.low.reduce + room < box.high.reduce)
    box.high.reduce = thresholds.reduceAtMost(box.low.reduce + room);
  return box.low.time <= box.high.time && box.low.reduce <= box.high.reduce;
}

/// Queues a box, its sides moved to the next thresholds.
void BoxSearch::add(Box box) {
  box.low.time = thresholds.timeAtLeast(box.low.time);
  box.low.reduce = thresholds.reduceAtLeast(box.low.reduce);
  box.high.time = thresholds.timeAtMost(box.high.time);
  box.high.reduce = thresholds.reduceAtMost(box.high.reduce);
  if (box.low.time > box.high.time || box.low.reduce > box.high.reduce)
    return;
  box.bound = std::max(box.bound, valueAt(box.sum, box.low));
  box.id = created++;
  if (box.bound < bestTotal)
    open.insert(box);
}

void BoxSearch::addHalves(Box box, Nanos Limits::*side) {
  if (box.low.*side > box.high.*side || !shrink(box))
    return;
  Box upper = box;
  box.high.*side = box.low.*side + (box.high.*side - box.low.*side) / 2;
  upper.low.*side = box.high.*side + 1;
  add(box);
  add(upper);
}

/// Queues the box without the part where both T and A reach the corner.
void BoxSearch::split(const Box &box, const Limits &corner) {
  Nanos Limits::*first = &Limits::time, Limits::*second = &Limits::reduce;
  if (weight() * (corner.time - box.low.time) < corner.reduce - box.low.reduce)
    std::swap(first, second);
  Box below = box; // short of the corner on the first side
  below.high.*first = corner.*first - 1;
  addHalves(below, first);
  Box beside = box;
  beside.low.*first = corner.*first;
  beside.high.*second = corner.*second - 1;
  addHalves(beside, second);
}

/// Where the relaxed solution lies in the box.
Limits BoxSearch::relaxedCorner(const Box &box) const {
  Limits corner = box.low;
  for (const Stage &stage : relaxation.stages()) {
    if (weight() > 0)
      corner.time = std::max({corner.time,
                              chain.time(stage.begin, stage.end, stage.option),
                              stage.end < chain.size()
                                  ? chain.leastTransfer(stage.end, stage.option)
                                  : 0});
    corner.reduce = std::max(
        corner.reduce, chain.leastReduce(stage.begin, stage.end, stage.option));
  }
  return corner;
}

void BoxSearch::process(Box box) {
  if (!shrink(box))
    return;
  if (!relaxation.solve(box.high, meter)) {
    if (meter.exhausted())
      unresolved = std::min(unresolved, box.bound);
    return;
  }
  box.sum = std::max(box.sum, relaxation.sum());
  consider(relaxation.stages());
  if (!shrink(box))
    return;
  Limits corner = relaxedCorner(box);
  corner.time = std::min(corner.time, box.high.time);
  corner.reduce = std::min(corner.reduce, box.high.reduce);
  if (valueAt(box.sum, corner) < bestTotal)
    searchLabels(box, corner);
  split(box, corner);
}

/// Settles the part of the box above the corner exactly. The corner is moved
/// down first, as far as makes the bounds in the label search half as sharp.
void BoxSearch::searchLabels(const Box &box, Limits &corner) {
  const Nanos slack = bestTotal - valueAt(box.sum, corner);
  if (weight() > 0)
    corner.time = thresholds.timeAtLeast(
        std::max(box.low.time, corner.time - slack / 2 / weight()));
  corner.reduce = thresholds.reduceAtLeast(
      std::max(box.low.reduce, corner.reduce - slack / 2));
  Box part = box;
  part.low = corner;
  const LabelSearch::Outcome outcome =
      labels.run(box.high, valueAt(0, corner), bestTotal, meter);
  if (outcome == LabelSearch::Outcome::None)
    return;
  if (outcome == LabelSearch::Outcome::OutOfWork) {
    unresolved = std::min(unresolved, valueAt(box.sum, corner));
    return;
  }
  part.sum = labels.sum();
  const Score score = chain.score(labels.stages());
  consider(labels.stages());
  Limits reached = {std::max(corner.time, score.slowest),
                    std::max(corner.reduce, score.reduce)};
  if (weight() == 0)
    reached.time = corner.time;
  split(part, reached);
}

} // namespace takt::partition
