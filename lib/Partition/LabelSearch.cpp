//===- LabelSearch.cpp - exact least sum under limits ---------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Labels are kept by (position, option, devices) at each boundary; within one
// key by number of stages and sum, where neither fewer stages (less in flight
// in front) nor a smaller sum may be given up for the other.
//
//===----------------------------------------------------------------------===//

#include "LabelSearch.h"

#include <algorithm>

namespace takt::partition {

namespace {
constexpr int32_t kNone = -1;
/// About 400 MB of labels; beyond it the search gives up like on its work
/// limit.
constexpr size_t kMostLabels = size_t(10) << 20;
} // namespace

//===----------------------------------------------------------------------===//
// LabelIndex
//===----------------------------------------------------------------------===//

static constexpr uint64_t kFree = ~uint64_t(0);

size_t LabelIndex::slot(uint64_t key) const {
  const size_t mask = slots.size() - 1;
  size_t at = (key * 0x9E3779B97F4A7C15u) >> 20 & mask;
  while (slots[at].first != key && slots[at].first != kFree)
    at = (at + 1) & mask;
  return at;
}

int32_t &LabelIndex::head(uint64_t key) {
  if (2 * (used + 1) > slots.size())
    grow();
  auto &found = slots[slot(key)];
  if (found.first == kFree) {
    found = {key, kEmpty};
    ++used;
  }
  return found.second;
}

void LabelIndex::grow() {
  std::vector<std::pair<uint64_t, int32_t>> old = std::move(slots);
  slots.assign(std::max<size_t>(16, 2 * old.size()), {kFree, kEmpty});
  for (const auto &entry : old)
    if (entry.first != kFree)
      slots[slot(entry.first)] = entry;
}

void LabelIndex::clear() {
  slots.clear();
  used = 0;
}

std::vector<std::pair<uint64_t, int32_t>> LabelIndex::sorted() const {
  std::vector<std::pair<uint64_t, int32_t>> entries;
  entries.reserve(used);
  for (const auto &entry : slots)
    if (entry.first != kFree)
      entries.push_back(entry);
  std::sort(entries.begin(), entries.end());
  return entries;
}

//===----------------------------------------------------------------------===//
// LabelSearch
//===----------------------------------------------------------------------===//

LabelSearch::Outcome LabelSearch::run(const Limits &newLimits, Nanos newBase,
                                      Nanos newBelow, WorkMeter &meter) {
  limits = newLimits;
  base = newBase;
  below = newBelow;
  work = &meter;
  best.clear();
  bestSum = kNever;
  labels.clear();
  for (LabelIndex &boundary : boundaries)
    boundary.clear();

  for (int32_t at = chain.size(); at > 0; --at) {
    std::vector<Bundle> found = bundles(at);
    boundaries[at].clear();
    for (int32_t option = 0; option < chain.numOptions(); ++option) {
      if (meter.exhausted() || labels.size() > kMostLabels)
        return Outcome::OutOfWork;
      extend(found, at, option);
    }
  }
  return bestSum < kNever ? Outcome::Found : Outcome::None;
}

/// The labels at a boundary that are worth extending.
std::vector<LabelSearch::Bundle> LabelSearch::bundles(int32_t at) {
  std::vector<Bundle> result;
  if (at == chain.size()) {
    // The empty suffix, once for every position that the end may have.
    labels.push_back({0, 0, 0, at, kNone, kNone, kNone});
    for (int32_t position = 0; position < chain.period(); ++position) {
      const bool possible = !chain.useAllDevices() ||
                            position == chain.devices() % chain.period();
      if (possible) {
        Bundle &bundle = result.emplace_back();
        bundle.position = position;
        bundle.option = kNone;
        bundle.labels = {0};
      }
    }
    return result;
  }
  const uint64_t perOption = uint64_t(chain.devices()) + 1;
  const uint64_t perPosition = perOption * chain.numOptions();
  for (const auto &[key, head] : boundaries[at].sorted()) {
    const int32_t position = int32_t(key / perPosition);
    const int32_t option = int32_t(key % perPosition / perOption);
    if (result.empty() || result.back().position != position ||
        result.back().option != option) {
      Bundle &bundle = result.emplace_back();
      bundle.position = position;
      bundle.option = option;
    }
    for (int32_t id = head; id != kNone; id = labels[id].next)
      result.back().labels.push_back(id);
  }
  for (Bundle &bundle : result)
    dropDominated(bundle.labels);
  return result;
}

/// Labels of one position and option, by ascending devices: one that uses more
/// devices without anything in return goes, unless devices must add up.
void LabelSearch::dropDominated(std::vector<int32_t> &ids) const {
  if (chain.useAllDevices())
    return;
  std::vector<int32_t> kept;
  for (const int32_t id : ids) {
    const bool dominated =
        std::any_of(kept.begin(), kept.end(), [&](int32_t other) {
          return dominates(labels[other], labels[id]);
        });
    if (!dominated)
      kept.push_back(id);
  }
  ids = std::move(kept);
}

/// Sets what a stage with `option` in front of the bundle pays for its place;
/// false when no such stage is possible.
bool LabelSearch::admitStage(Bundle &bundle, int32_t at, int32_t option) const {
  const int32_t own = chain.replicas(option), period = chain.period();
  bundle.newPosition = ((bundle.position - own) % period + period) % period;
  bundle.network = chain.crosses(bundle.newPosition, own);
  bundle.across = 0;
  if (bundle.option == kNone)
    return true;
  const bool across = chain.crosses(
      bundle.newPosition, int64_t(own) + chain.replicas(bundle.option));
  bundle.across = chain.transfer(at, std::min(option, bundle.option), across);
  return bundle.across <= limits.time;
}

/// Puts every stage that ends at `at` and has `option` before every label.
void LabelSearch::extend(std::vector<Bundle> &found, int32_t at,
                         int32_t option) {
  std::vector<const Bundle *> open;
  for (Bundle &bundle : found)
    if (admitStage(bundle, at, option))
      open.push_back(&bundle);
  if (open.empty())
    return;
  const int32_t own = chain.replicas(option);
  for (int32_t begin = at - 1; begin >= 0; --begin) {
    const Nanos time = chain.time(begin, at, option);
    if (time > limits.time || chain.neverFits(begin, at, option))
      break;
    const bool fits[2] = {
        chain.reduce(begin, at, option, false) <= limits.reduce,
        chain.reduce(begin, at, option, true) <= limits.reduce};
    if (!fits[0] && !fits[1])
      break;
    const int64_t held = chain.maxInFlight(begin, at, option);
    for (const Bundle *bundle : open) {
      if (!fits[bundle->network])
        continue;
      work->done += bundle->labels.size();
      for (const int32_t id : bundle->labels) {
        const Label &behind = labels[id];
        if (chain.inFlight(behind.count) > held ||
            (chain.hasPins() &&
             !chain.admits(begin, at, chain.exactStages() - behind.count - 1)))
          continue;
        Label label;
        label.sum = behind.sum + time + bundle->across;
        label.devices = behind.devices + own;
        label.count = behind.count + 1;
        label.end = at;
        label.option = option;
        label.parent = id;
        label.next = kNone;
        if (label.devices <= chain.devices())
          offer(label, begin, bundle->newPosition);
      }
    }
  }
}

void LabelSearch::offer(const Label &label, int32_t begin, int32_t position) {
  if (begin == 0)
    finish(label, position);
  else if (!hopeless(label, begin, position))
    insert(label, begin, position);
}

/// A suffix that is the whole chain: it must start at device 0.
void LabelSearch::finish(const Label &label, int32_t position) {
  if (position != 0 || label.count > chain.maxStages() ||
      (chain.exactStages() != 0 && label.count != chain.exactStages()) ||
      (chain.useAllDevices() && label.devices != chain.devices()))
    return;
  if (label.sum >= bestSum || label.sum + base >= below)
    return;
  bestSum = label.sum;
  collect(label);
}

/// Whether no completion of the label can be what is looked for.
bool LabelSearch::hopeless(const Label &label, int32_t begin,
                           int32_t position) const {
  const int32_t left =
      (chain.exactStages() != 0 ? chain.exactStages() : chain.maxStages()) -
      label.count;
  if (left < 1 || (chain.exactStages() != 0 && left > begin))
    return true;
  // What comes before uses a number of devices that gives this position.
  const int32_t most = chain.devices() - label.devices;
  const int32_t surplus =
      ((most - position) % chain.period() + chain.period()) % chain.period();
  if (most - surplus < 1 || (chain.useAllDevices() && surplus != 0))
    return true;
  const Nanos limit = std::min(below - base, bestSum) - label.sum;
  return relaxation.prefix(begin, most, left) >= limit ||
         relaxation.prefix(begin, most - surplus, left) >= limit;
}

/// Whether `a` can replace `b` in everything that may come before: same first
/// stage and position, no more devices, stages and time. A count that is asked
/// for must be equal.
bool LabelSearch::dominates(const Label &a, const Label &b) const {
  return a.sum <= b.sum && a.devices <= b.devices &&
         (chain.exactStages() != 0 ? a.count == b.count : a.count <= b.count);
}

void LabelSearch::insert(const Label &label, int32_t begin, int32_t position) {
  const uint64_t key =
      (uint64_t(position) * chain.numOptions() + label.option) *
          (uint64_t(chain.devices()) + 1) +
      label.devices;
  int32_t *link = &boundaries[begin].head(key);
  while (*link != kNone) {
    Label &other = labels[*link];
    if (dominates(other, label))
      return;
    if (dominates(label, other))
      *link = other.next;
    else
      link = &other.next;
  }
  *link = int32_t(labels.size()); // before push_back moves what link points to
  labels.push_back(label);
}

void LabelSearch::collect(const Label &first) {
  best.clear();
  int32_t begin = 0;
  const Label *label = &first;
  while (label->option != kNone) {
    best.push_back({begin, label->end, label->option});
    begin = label->end;
    label = &labels[label->parent];
  }
}

} // namespace takt::partition
