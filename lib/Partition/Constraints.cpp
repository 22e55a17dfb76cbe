//===- Constraints.cpp - side constraints on stage assignment -------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// On a chain, "together" forbids the cuts between, "apart" bounds how far a
// stage may reach, and headroom is less memory. The check at the end goes by
// what the constraints mean, layer ranges and stages, not by that.
//
//===----------------------------------------------------------------------===//
#include "takt/Partition/Constraints.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <set>

using namespace takt;

namespace {

constexpr int64_t kMillion = 1000000;

/// Memory that headroom leaves; 0 stays "unlimited".
Bytes usableMemory(Bytes memory, const SideConstraint &constraint) {
  if (memory == 0)
    return 0;
  Bytes free = constraint.number;
  if (constraint.kind == ConstraintKind::HeadroomPpm)
    free = memory / kMillion * constraint.number +
           (memory % kMillion * constraint.number + kMillion - 1) / kMillion;
  return std::max<Bytes>(1, memory - std::min(memory, free));
}

/// From the first segment of any part to the last.
SegmentRange hull(const SideConstraint &constraint) {
  SegmentRange range = constraint.parts.front();
  for (const SegmentRange &part : constraint.parts) {
    range.begin = std::min(range.begin, part.begin);
    range.end = std::max(range.end, part.end);
  }
  return range;
}

/// Forbids cuts inside; false if one is given there.
bool join(PartitionProblem &problem, const SegmentRange &range) {
  if (problem.cuts)
    return std::none_of(
        problem.cuts->begin(), problem.cuts->end(),
        [&](int64_t cut) { return cut > range.begin && cut < range.end; });
  for (int64_t i = range.begin; i + 1 < range.end; ++i)
    problem.segments[i].mayCutAfter = false;
  return true;
}

void separate(PartitionProblem &problem, const SideConstraint &constraint) {
  std::vector<SegmentRange> parts = constraint.parts;
  std::sort(parts.begin(), parts.end(),
            [](const SegmentRange &a, const SegmentRange &b) {
              return a.begin < b.begin;
            });
  for (size_t i = 0; i + 1 < parts.size(); ++i) {
    const int64_t last = parts[i].end - 1, next = parts[i + 1].begin;
    problem.apart.push_back({std::min(last, next), std::max(last, next)});
  }
}

bool addTo(PartitionProblem &problem, const SideConstraint &constraint) {
  switch (constraint.kind) {
  case ConstraintKind::KeepTogether:
  case ConstraintKind::NoCutAfter:
  case ConstraintKind::NoCutBefore:
    return constraint.parts.empty() || join(problem, hull(constraint));
  case ConstraintKind::KeepApart:
    separate(problem, constraint);
    return true;
  case ConstraintKind::Pin:
    for (const SegmentRange &part : constraint.parts)
      for (int64_t i = part.begin; i < part.end; ++i)
        problem.pins.push_back({i, constraint.number});
    return true;
  case ConstraintKind::Stages:
    if (problem.stages != 0 && problem.stages != constraint.number)
      return false;
    problem.stages = constraint.number;
    return !problem.cuts ||
           int64_t(problem.cuts->size()) + 1 == constraint.number;
  case ConstraintKind::MaxStages:
    if (problem.maxStages == 0 || problem.maxStages > constraint.number)
      problem.maxStages = constraint.number;
    return true;
  case ConstraintKind::HeadroomBytes:
  case ConstraintKind::HeadroomPpm:
    break;
  }
  return true;
}

bool isHeadroom(const SideConstraint &constraint) {
  return constraint.kind == ConstraintKind::HeadroomBytes ||
         constraint.kind == ConstraintKind::HeadroomPpm;
}

} // namespace

std::optional<PartitionProblem>
takt::constrain(const PartitionProblem &base,
                const std::vector<SideConstraint> &constraints) {
  PartitionProblem problem = base;
  for (const SideConstraint &constraint : constraints) {
    if (!addTo(problem, constraint))
      return std::nullopt;
    // Of several headrooms the largest counts; none adds to another.
    if (isHeadroom(constraint))
      problem.cluster.memory =
          std::min(problem.cluster.memory,
                   usableMemory(base.cluster.memory, constraint));
  }
  return problem;
}

PartitionResult
takt::solvePartition(const PartitionProblem &base,
                     const std::vector<SideConstraint> &constraints,
                     int64_t workLimit) {
  const std::optional<PartitionProblem> problem = constrain(base, constraints);
  if (problem)
    return solvePartition(*problem, workLimit);
  PartitionResult result;
  result.infeasible.reason = "the side constraints contradict each other";
  return result;
}

namespace {

/// Stages that hold segments of a range.
std::set<int64_t> stagesOf(const Partition &partition,
                           const SegmentRange &range) {
  std::set<int64_t> found;
  for (size_t s = 0; s < partition.stages.size(); ++s)
    if (partition.stages[s].begin < range.end &&
        range.begin < partition.stages[s].end)
      found.insert(int64_t(s));
  return found;
}

std::optional<std::string> breaks(const PartitionProblem &base,
                                  const SideConstraint &constraint,
                                  const Partition &partition) {
  std::vector<std::set<int64_t>> stages;
  std::set<int64_t> all;
  size_t sum = 0;
  for (const SegmentRange &part : constraint.parts) {
    stages.push_back(stagesOf(partition, part));
    all.insert(stages.back().begin(), stages.back().end());
    sum += stages.back().size();
  }
  const int64_t count = partition.stages.size();
  bool kept = true;
  switch (constraint.kind) {
  case ConstraintKind::KeepTogether:
  case ConstraintKind::NoCutAfter:
  case ConstraintKind::NoCutBefore:
    kept = all.size() <= 1;
    break;
  case ConstraintKind::KeepApart:
    kept = all.size() == sum;
    break;
  case ConstraintKind::Pin:
    kept = all == std::set<int64_t>{constraint.number};
    break;
  case ConstraintKind::Stages:
    kept = count == constraint.number;
    break;
  case ConstraintKind::MaxStages:
    kept = count <= constraint.number;
    break;
  case ConstraintKind::HeadroomBytes:
  case ConstraintKind::HeadroomPpm:
    for (const StageChoice &stage : partition.stages)
      kept &= base.cluster.memory == 0 ||
              stage.memory <= usableMemory(base.cluster.memory, constraint);
    break;
  }
  if (kept)
    return std::nullopt;
  return fmt::format("'{}' is not kept", toYaml(constraint));
}

} // namespace

std::optional<std::string>
takt::verify(const PartitionProblem &base,
             const std::vector<SideConstraint> &constraints,
             const Partition &partition) {
  if (auto fault = verify(base, partition))
    return fault;
  for (const SideConstraint &constraint : constraints)
    if (auto fault = breaks(base, constraint, partition))
      return fault;
  return std::nullopt;
}
