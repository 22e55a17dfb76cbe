//===- Search.cpp - the label search on unequal devices -------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Boundaries are taken from the end of the chain. A label that cannot come
// below the best answer is dropped as soon as it is made.
//
//===----------------------------------------------------------------------===//
#include "Search.h"

#include <algorithm>
#include <cmath>

namespace takt::mixed {

/// About 500 MB; beyond it the search gives up as on its work limit.
static constexpr size_t kMostLabels = size_t(4) << 20;
/// Labels that a label of the same first stage is compared with.
static constexpr size_t kMostRivals = 256;
/// Products of prices are not exact: nearer than this is equal.
static constexpr double kNear = 1e-12;

/// Of some number of bytes.
static bool networkIsFaster(const rt::Link &network, const rt::Link &inside) {
  const double free = HUGE_VAL;
  auto rate = [&](const rt::Link &link) {
    return link.bytesPerSecond > 0 ? link.bytesPerSecond : free;
  };
  return network.latency < inside.latency || rate(network) > rate(inside);
}

MixedProblem timeless(const MixedProblem &problem) {
  MixedProblem plain = problem;
  for (DevicePool &pool : plain.pools) {
    pool.devicesPerNode = pool.devices;
    pool.intraNode = {};
    pool.price = 0;
    for (auto *table : {&pool.time, &pool.update})
      for (std::vector<Nanos> &times : *table)
        std::fill(times.begin(), times.end(), 0);
  }
  plain.chain.cluster.network = {};
  plain.objective = StageObjective::Time;
  plain.maxTime = 0;
  plain.maxPrice = -1;
  return plain;
}

double MixedSearch::cost(int64_t rate, Nanos time) const {
  return problem.objective == StageObjective::Price
             ? double(rate) * double(time)
             : double(time);
}

void MixedSearch::run(size_t width) {
  const int64_t n = int64_t(chain.segments.size());
  labels.assign(1, {});
  labels[0].begin = int32_t(n);
  labels[0].least = leastCost(labels[0]);
  boundaries.assign(n + 1, {});
  boundaries[n][{-1, 0, {}}] = {0};
  int64_t at = n;
  for (; at > 0 && !exhausted() && labels.size() < kMostLabels; --at)
    expand(at, width);
  if (width > 0)
    return;
  // Labels of the last boundary looked at may lack some of their stages.
  proven = answer ? answerCost : HUGE_VAL;
  if (!exhausted() && labels.size() < kMostLabels)
    return;
  done = std::max(done, workLimit);
  for (int64_t open = std::min(at + 1, n); open > 0; --open)
    for (const auto &[key, ids] : boundaries[open])
      for (const int32_t id : ids)
        proven = std::min(proven, labels[id].least);
}

void MixedSearch::expand(int64_t at, size_t width) {
  const std::vector<int32_t> open = sift(at, width);
  if (open.empty())
    return;
  for (int64_t o = 0; o < int64_t(chain.replicaOptions.size()); ++o) {
    if (chain.replicas && *chain.replicas != chain.replicaOptions[o])
      continue;
    Candidate stage;
    stage.begin = stage.at = at;
    stage.option = o;
    stage.time.assign(problem.pools.size(), 0);
    stage.update = stage.time;
    while (stage.begin > 0) {
      grow(stage);
      if (separates(stage) || neverFits(stage) || exhausted())
        break;
      if (mayBegin(stage.begin))
        for (size_t k = 0; k < problem.pools.size(); ++k)
          extend(open, stage, int32_t(k));
    }
  }
}

/// Adds the segment in front.
void MixedSearch::grow(Candidate &stage) const {
  const int64_t i = --stage.begin;
  const SegmentCost &segment = chain.segments[i];
  stage.state += segment.weights + segment.gradients + segment.optimizerState;
  stage.saved += segment.saved[stage.option];
  stage.workspace = std::max(stage.workspace, segment.workspace[stage.option]);
  stage.gradients += segment.gradients;
  for (size_t k = 0; k < problem.pools.size(); ++k) {
    stage.time[k] += problem.pools[k].time[i][stage.option];
    stage.update[k] += problem.pools[k].update[i][stage.option];
  }
}

/// Whether it holds what must be kept apart, as do all wider ones.
bool MixedSearch::separates(const Candidate &stage) const {
  return std::any_of(
      chain.apart.begin(), chain.apart.end(), [&](const SegmentPair &pair) {
        return pair.first >= stage.begin && pair.second < stage.at;
      });
}

bool MixedSearch::fits(const Candidate &stage, const DevicePool &pool,
                       int64_t held) const {
  if (pool.memory == 0)
    return true;
  Bytes bytes = stage.state + stage.workspace + held * stage.saved;
  if (stage.begin > 0) {
    const SegmentCost &before = chain.segments[stage.begin - 1];
    bytes += before.output[stage.option] *
             (held + 1 + (before.gradientCrosses ? 2 : 0));
  }
  if (stage.at < int64_t(chain.segments.size())) {
    const SegmentCost &last = chain.segments[stage.at - 1];
    bytes += last.output[stage.option] * (last.gradientCrosses ? 4 : 2);
  }
  return bytes <= pool.memory;
}

/// Buffers at the ends are left out: a wider stage has other ends.
bool MixedSearch::neverFits(const Candidate &stage) const {
  return std::all_of(
      problem.pools.begin(), problem.pools.end(), [&](const DevicePool &pool) {
        return pool.memory > 0 &&
               stage.state + stage.workspace + stage.saved > pool.memory;
      });
}

bool MixedSearch::mayBegin(int64_t begin) const {
  if (begin == 0)
    return true;
  if (chain.cuts)
    return std::binary_search(chain.cuts->begin(), chain.cuts->end(), begin);
  return chain.segments[begin - 1].mayCutAfter;
}

bool MixedSearch::admits(const Candidate &stage, int64_t index) const {
  return std::all_of(chain.pins.begin(), chain.pins.end(),
                     [&](const StagePin &pin) {
                       return pin.segment < stage.begin ||
                              pin.segment >= stage.at || pin.stage == index;
                     });
}

void MixedSearch::extend(const std::vector<int32_t> &open,
                         const Candidate &stage, int32_t pool) {
  const DevicePool &own = problem.pools[pool];
  const int64_t replicas = chain.replicaOptions[stage.option];
  if (replicas > own.devices || !fits(stage, own, 1))
    return;
  for (const int32_t id : open) {
    const Label &behind = labels[id];
    const int64_t held =
        chain.inFlight == InFlightPolicy::GPipe
            ? chain.microBatches
            : std::min<int64_t>(chain.microBatches, behind.stages + 1);
    if (!fits(stage, own, held) ||
        (!chain.pins.empty() &&
         !admits(stage, chain.stages - behind.stages - 1)))
      continue;
    const int64_t taken = behind.taken[pool], node = own.devicesPerNode;
    place(id, stage, pool, taken);
    if (own.devices == node)
      continue;
    if (!networkIsFaster(chain.cluster.network, own.intraNode)) {
      if (taken % node != 0)
        place(id, stage, pool, taken + node - taken % node);
      continue;
    }
    // Where leaving a node pays, any place in it may be the best.
    for (int64_t idle = 1; idle < node; ++idle)
      place(id, stage, pool, taken + idle);
  }
}

/// Puts the stage before a label, on the devices from an offset on.
void MixedSearch::place(int32_t behind, const Candidate &stage, int32_t pool,
                        int64_t offset) {
  ++done;
  const DevicePool &own = problem.pools[pool];
  const Label &rest = labels[behind];
  const int64_t replicas = chain.replicaOptions[stage.option];
  const int64_t end = offset + replicas;
  if (end > own.devices)
    return;
  auto link = [&](int64_t from, int64_t to) -> const rt::Link & {
    return from / own.devicesPerNode == (to - 1) / own.devicesPerNode
               ? own.intraNode
               : chain.cluster.network;
  };
  Nanos across = 0;
  if (rest.pool >= 0) {
    const SegmentCost &cut = chain.segments[stage.at - 1];
    const int64_t pairs = std::min(replicas, chain.replicaOptions[rest.option]);
    const rt::Link &between =
        rest.pool == pool ? link(rest.offset, end) : chain.cluster.network;
    across = (cut.gradientCrosses ? 2 : 1) *
             between.time((cut.outputWhole + pairs - 1) / pairs);
  }
  Nanos reduce = stage.update[pool];
  if (stage.gradients > 0)
    reduce += rt::allReduceTime(link(offset, end), replicas, stage.gradients);

  Label label = rest;
  label.sum += stage.time[pool] + across;
  label.slowest = std::max({label.slowest, stage.time[pool], across});
  label.reduce = std::max(label.reduce, reduce);
  label.rate += replicas * own.price;
  label.taken[pool] = int32_t(end);
  label.stages += 1;
  label.parent = behind;
  label.begin = int32_t(stage.begin);
  label.option = int32_t(stage.option);
  label.pool = pool;
  label.offset = int32_t(offset);
  label.least = leastCost(label);
  if (isHopeless(label.least))
    return;
  if (stage.begin == 0)
    finish(label);
  else
    keep(label);
}

int64_t MixedSearch::stagesLeft(const Label &label) const {
  const int64_t most = chain.stages > 0      ? chain.stages
                       : chain.maxStages > 0 ? chain.maxStages
                                             : label.begin + label.stages;
  return std::min<int64_t>(label.begin, most - label.stages);
}

/// What all completions of a label cost at least; infinite where none keeps the
/// limits.
double MixedSearch::leastCost(const Label &label) const {
  const bool whole = label.begin == 0;
  const int64_t left = stagesLeft(label);
  if (chain.stages > 0 &&
      left != std::max<int64_t>(chain.stages - label.stages, 0))
    return HUGE_VAL; // too few segments
  if (whole ? chain.stages > label.stages ||
                  (chain.stages > 0 && label.stages > chain.stages) ||
                  (chain.maxStages > 0 && label.stages > chain.maxStages)
            : left < 1)
    return HUGE_VAL;
  Nanos sum = label.sum, slowest = label.slowest;
  if (!whole) {
    int64_t devices = 0;
    for (size_t k = 0; k < problem.pools.size(); ++k)
      devices += problem.pools[k].devices - label.taken[k];
    if (devices < 1)
      return HUGE_VAL;
    sum += bounds.sum(label.begin, devices);
    slowest = std::max(slowest, bounds.longest(label.begin, label.taken, left));
  }
  constexpr Nanos kFar = INT64_MAX / 16;
  if (sum >= kFar || slowest >= kFar)
    return HUGE_VAL;
  const double time = double(sum) +
                      double(chain.microBatches - 1) * double(slowest) +
                      double(label.reduce);
  if (problem.maxTime > 0 && time > double(problem.maxTime))
    return HUGE_VAL;
  const double paid = double(label.rate) * time + bounds.paid(label.begin);
  if (problem.maxPrice >= 0 &&
      paid * (1 - kNear) > problem.maxPrice * (1e6 * 3600e9))
    return HUGE_VAL;
  return problem.objective == StageObjective::Price ? paid : time;
}

bool MixedSearch::isHopeless(double least) const {
  if (least == HUGE_VAL)
    return true;
  const double near =
      problem.objective == StageObjective::Price ? 1 - kNear : 1;
  return answer && least >= answerCost * near;
}

/// Whether `a` can take the place of `b`, whatever comes in front.
bool MixedSearch::beats(const Label &a, const Label &b) const {
  if (a.sum > b.sum || a.slowest > b.slowest || a.reduce > b.reduce ||
      a.rate > b.rate ||
      (chain.stages > 0 ? a.stages != b.stages : a.stages > b.stages))
    return false;
  for (size_t k = 0; k < problem.pools.size(); ++k) {
    const DevicePool &pool = problem.pools[k];
    const int64_t period =
        pool.devices > pool.devicesPerNode ? pool.devicesPerNode : 1;
    const int64_t more = b.taken[k] - a.taken[k];
    if (more < 0 || more % period != 0)
      return false;
  }
  return true;
}

void MixedSearch::keep(const Label &label) {
  std::vector<int32_t> &ids =
      boundaries[label.begin][{label.pool, label.option, label.taken}];
  done += int64_t(ids.size()) / 4;
  for (const int32_t id : ids)
    if (beats(labels[id], label))
      return;
  ids.erase(
      std::remove_if(ids.begin(), ids.end(),
                     [&](int32_t id) { return beats(label, labels[id]); }),
      ids.end());
  ids.push_back(int32_t(labels.size()));
  labels.push_back(label);
}

/// Labels of a boundary that are worth extending, the most promising first.
std::vector<int32_t> MixedSearch::sift(int64_t at, size_t width) {
  std::vector<int32_t> open, kept;
  for (const auto &[key, ids] : boundaries[at])
    for (const int32_t id : ids)
      if (!isHopeless(labels[id].least))
        open.push_back(id);
  std::sort(open.begin(), open.end(), [&](int32_t a, int32_t b) {
    return std::tie(labels[a].least, a) < std::tie(labels[b].least, b);
  });
  std::map<std::pair<int32_t, int32_t>, std::vector<int32_t>> rivals;
  for (const int32_t id : open) {
    if (width > 0 && kept.size() >= width)
      break;
    std::vector<int32_t> &same = rivals[{labels[id].pool, labels[id].option}];
    done += int64_t(same.size()) / 4;
    if (std::any_of(same.begin(), same.end(), [&](int32_t other) {
          return beats(labels[other], labels[id]);
        }))
      continue;
    if (same.size() < kMostRivals)
      same.push_back(id);
    kept.push_back(id);
  }
  return kept;
}

void MixedSearch::finish(const Label &label) { offer(collect(label)); }

void MixedSearch::offer(MixedPartition found) {
  const double own = cost(found.rate, found.time);
  if ((problem.maxTime > 0 && found.time > problem.maxTime) ||
      (problem.maxPrice >= 0 && found.price() > problem.maxPrice) ||
      (answer && own >= answerCost))
    return;
  answer = std::move(found);
  answerCost = own;
}

/// The stages of a label that is the whole chain. Idle devices go to the end of
/// each pool, as far as whole nodes allow.
MixedPartition MixedSearch::collect(const Label &label) const {
  MixedPartition found;
  for (const Label *at = &label; at->pool >= 0; at = &labels[at->parent]) {
    const DevicePool &pool = problem.pools[at->pool];
    const int64_t replicas = chain.replicaOptions[at->option];
    int64_t idle = pool.devices - label.taken[at->pool];
    if (pool.devices > pool.devicesPerNode)
      idle -= idle % pool.devicesPerNode;
    MixedStage stage;
    stage.begin = at->begin;
    stage.end = labels[at->parent].begin;
    stage.option = at->option;
    stage.pool = at->pool;
    stage.firstDevice = pool.devices - at->offset - replicas - idle;
    found.stages.push_back(stage);
  }
  evaluate(problem, found);
  return found;
}

} // namespace takt::mixed
