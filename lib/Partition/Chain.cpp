//===- Chain.cpp - a partition problem made fast to ask -------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Prefix sums over the groups, and a sparse table for the largest workspace of
// a range. Expects a problem that passes `check()`.
//
//===----------------------------------------------------------------------===//

#include "Chain.h"

#include <algorithm>

namespace takt::partition {

Chain::Chain(const PartitionProblem &problem) : source(problem) {
  buildGroups();
  buildSideConstraints();
  buildOptions();
  buildSums();
  buildTransfers();
}

void Chain::buildGroups() {
  const int32_t segments = source.segments.size();
  firstSegment.push_back(0);
  if (source.cuts) {
    firstSegment.insert(firstSegment.end(), source.cuts->begin(),
                        source.cuts->end());
    exact = int32_t(source.cuts->size()) + 1;
  } else {
    for (int32_t i = 0; i + 1 < segments; ++i)
      if (source.segments[i].mayCutAfter)
        firstSegment.push_back(i + 1);
    exact = std::min<int64_t>(source.stages, 1 << 30);
  }
  firstSegment.push_back(segments);
}

void Chain::buildSideConstraints() {
  auto groupOf = [&](int64_t segment) {
    return int32_t(std::upper_bound(firstSegment.begin(), firstSegment.end(),
                                    int32_t(segment)) -
                   firstSegment.begin()) -
           1;
  };
  reach.assign(size() + 1, size());
  for (const SegmentPair &pair : source.apart) {
    int32_t &furthest = reach[groupOf(pair.first)];
    furthest = std::min(furthest, groupOf(pair.second));
  }
  for (int32_t g = size() - 1; g >= 0; --g)
    reach[g] = std::min(reach[g], reach[g + 1]);
  for (const StagePin &pin : source.pins)
    pins.emplace_back(groupOf(pin.segment), pin.stage);
  std::sort(pins.begin(), pins.end());
  for (int32_t g = 0; g <= size(); ++g)
    firstPin.push_back(std::lower_bound(pins.begin(), pins.end(),
                                        std::make_pair(g, int64_t(0))) -
                       pins.begin());
}

void Chain::buildOptions() {
  const int64_t devices = source.cluster.devices;
  for (size_t o = 0; o < source.replicaOptions.size(); ++o) {
    const int64_t count = source.replicaOptions[o];
    if (count > devices || (source.replicas && *source.replicas != count))
      continue;
    counts.push_back(count);
    sourceOption.push_back(o);
  }
  const int64_t stages = source.maxStages == 0
                             ? size()
                             : std::min<int64_t>(size(), source.maxStages);
  most = counts.empty() ? 0 : std::min(stages, devices / counts.front());
  if (exact != 0)
    most = std::min(most, exact);
  // Devices beyond this stay idle in every assignment.
  const int64_t useful = counts.empty() ? 0 : int64_t(most) * counts.back();
  deviceLimit = source.useAllDevices ? devices : std::min(devices, useful);

  const int64_t node = source.cluster.devicesPerNode;
  oneNode = devices <= node;
  const rt::Link &in = source.cluster.intraNode, &out = source.cluster.network;
  const bool sameLinks =
      in.latency == out.latency && in.bytesPerSecond == out.bytesPerSecond;
  positionPeriod = oneNode || sameLinks ? 1 : node;
}

void Chain::buildSums() {
  const int32_t groups = size();
  stateSums.assign(groups + 1, 0);
  gradientSums.assign(groups + 1, 0);
  gradientCrosses.assign(groups + 1, false);
  for (int32_t g = 0; g < groups; ++g) {
    stateSums[g + 1] = stateSums[g];
    gradientSums[g + 1] = gradientSums[g];
    for (int32_t i = segment(g); i < segment(g + 1); ++i) {
      const SegmentCost &cost = source.segments[i];
      stateSums[g + 1] += cost.weights + cost.gradients + cost.optimizerState;
      gradientSums[g + 1] += cost.gradients;
    }
    if (g + 1 < groups)
      gradientCrosses[g + 1] =
          source.segments[segment(g + 1) - 1].gradientCrosses;
  }

  const std::vector<int64_t> zeros(groups + 1, 0);
  timeSums.assign(numOptions(), zeros);
  updateSums = savedSums = outputs = timeSums;
  workspaceMax.resize(numOptions());
  for (int32_t o = 0; o < numOptions(); ++o) {
    Table &maxima = workspaceMax[o];
    maxima.assign(1, std::vector<int64_t>(groups, 0));
    for (int32_t g = 0; g < groups; ++g) {
      timeSums[o][g + 1] = timeSums[o][g];
      updateSums[o][g + 1] = updateSums[o][g];
      savedSums[o][g + 1] = savedSums[o][g];
      for (int32_t i = segment(g); i < segment(g + 1); ++i) {
        const SegmentCost &cost = source.segments[i];
        timeSums[o][g + 1] += cost.time[problemOption(o)];
        updateSums[o][g + 1] += cost.update[problemOption(o)];
        savedSums[o][g + 1] += cost.saved[problemOption(o)];
        maxima[0][g] = std::max(maxima[0][g], cost.workspace[problemOption(o)]);
      }
      if (g + 1 < groups)
        outputs[o][g + 1] =
            source.segments[segment(g + 1) - 1].output[problemOption(o)];
    }
    for (int32_t width = 1; 2 * width <= groups; width *= 2) {
      const std::vector<int64_t> &half = maxima.back();
      std::vector<int64_t> whole(groups - 2 * width + 1);
      for (size_t g = 0; g < whole.size(); ++g)
        whole[g] = std::max(half[g], half[g + width]);
      maxima.push_back(std::move(whole));
    }
  }
}

void Chain::buildTransfers() {
  for (const bool network : {false, true}) {
    const rt::Link &link =
        network ? source.cluster.network : source.cluster.intraNode;
    Table &table = transfers[network];
    table.assign(numOptions(), std::vector<int64_t>(size() + 1, 0));
    for (int32_t o = 0; o < numOptions(); ++o)
      for (int32_t at = 1; at < size(); ++at) {
        const Bytes whole = source.segments[segment(at) - 1].outputWhole;
        const Bytes part = (whole + replicas(o) - 1) / replicas(o);
        table[o][at] = (gradientCrosses[at] ? 2 : 1) * link.time(part);
      }
  }
}

Nanos Chain::reduce(int32_t begin, int32_t end, int32_t option,
                    bool network) const {
  const Nanos update = updateSums[option][end] - updateSums[option][begin];
  const Bytes bytes = gradientSums[end] - gradientSums[begin];
  if (bytes == 0 || replicas(option) == 1)
    return update;
  const rt::Link &link =
      network ? source.cluster.network : source.cluster.intraNode;
  return update + rt::allReduceTime(link, replicas(option), bytes);
}

Nanos Chain::leastReduce(int32_t begin, int32_t end, int32_t option) const {
  if (crosses(0, replicas(option)))
    return reduce(begin, end, option, true);
  const Nanos inside = reduce(begin, end, option, false);
  if (positionPeriod == 1 || replicas(option) == 1)
    return inside;
  return std::min(inside, reduce(begin, end, option, true));
}

Nanos Chain::leastTransfer(int32_t at, int32_t option) const {
  // The other side has at least the smallest count of replicas.
  if (crosses(0, replicas(option) + int64_t(replicas(0))))
    return transfer(at, option, true);
  if (positionPeriod == 1)
    return transfer(at, option, false);
  return std::min(transfer(at, option, false), transfer(at, option, true));
}

Bytes Chain::workspace(int32_t begin, int32_t end, int32_t option) const {
  int32_t level = 0;
  while (2 << level <= end - begin)
    ++level;
  const std::vector<int64_t> &maxima = workspaceMax[option][level];
  return std::max(maxima[begin], maxima[end - (1 << level)]);
}

Bytes Chain::baseMemory(int32_t begin, int32_t end, int32_t option) const {
  const Bytes input = share(begin, option);
  const Bytes output = end < size() ? share(end, option) : 0;
  return stateSums[end] - stateSums[begin] + workspace(begin, end, option) +
         (gradientCrosses[begin] ? 3 : 1) * input +
         (gradientCrosses[end] ? 4 : 2) * output;
}

int64_t Chain::maxInFlight(int32_t begin, int32_t end, int32_t option) const {
  if (end > reach[begin])
    return 0;
  if (!memoryLimited())
    return microBatches();
  const Bytes left = source.cluster.memory - baseMemory(begin, end, option);
  if (left < 0)
    return 0;
  const Bytes each = memoryPerFlight(begin, end, option);
  return each == 0 ? microBatches() : std::min(microBatches(), left / each);
}

bool Chain::neverFits(int32_t begin, int32_t end, int32_t option) const {
  if (end > reach[begin])
    return true;
  // Buffers at the ends are left out: a wider stage has other ends.
  return memoryLimited() &&
         stateSums[end] - stateSums[begin] + workspace(begin, end, option) +
                 inFlight(0) *
                     (savedSums[option][end] - savedSums[option][begin]) >
             source.cluster.memory;
}

Score Chain::score(const Stages &stages) const {
  Score score;
  const int64_t count = stages.size();
  int64_t position = 0;
  for (int64_t s = 0; s < count; ++s) {
    const Stage &stage = stages[s];
    const int64_t own = replicas(stage.option);
    if (maxInFlight(stage.begin, stage.end, stage.option) <
            inFlight(count - s - 1) ||
        !admits(stage.begin, stage.end, int32_t(s)))
      return score;
    const Nanos time = this->time(stage.begin, stage.end, stage.option);
    Nanos across = 0;
    if (s + 1 < count) {
      const int32_t next = stages[s + 1].option;
      across = transfer(stage.end, std::min(stage.option, next),
                        crosses(position, own + replicas(next)));
    }
    score.sum += time + across;
    score.slowest = std::max({score.slowest, time, across});
    score.reduce =
        std::max(score.reduce, reduce(stage.begin, stage.end, stage.option,
                                      crosses(position, own)));
    position += own;
  }
  const bool allowed =
      count > 0 && count <= most && (exact == 0 || count == exact) &&
      position <= source.cluster.devices &&
      (!source.useAllDevices || position == source.cluster.devices);
  if (allowed)
    score.total =
        source.continuous
            ? score.slowest
            : score.sum + (microBatches() - 1) * score.slowest + score.reduce;
  return score;
}

Partition Chain::toPartition(const Stages &stages) const {
  Partition partition;
  for (const Stage &stage : stages) {
    StageChoice choice;
    choice.begin = segment(stage.begin);
    choice.end = segment(stage.end);
    choice.option = problemOption(stage.option);
    partition.stages.push_back(choice);
  }
  evaluate(source, partition);
  return partition;
}

} // namespace takt::partition
