//===- ConstraintQuestion.cpp - feasibility in difference logic -----------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Of every segment: the number of its stage, that stage's first device and its
// replica option. Neighbours agree in all three or are one stage apart.
// Constraints are rules, so that a proof names those it used; cluster, options
// and cuts given are facts.
//
//===----------------------------------------------------------------------===//
#include "takt/Partition/Constraints.h"

#include <fmt/format.h>

#include <algorithm>

using namespace takt;
using solver::atLeast;
using solver::atMost;
using solver::Clause;
using solver::fails;
using solver::holds;
using solver::kNoRule;
using solver::kOrigin;

namespace {

/// Clauses beyond which the question is not posed: it would take seconds.
constexpr size_t kMostClauses = 100000;

class Question {
public:
  Question(const PartitionProblem &base,
           const std::vector<SideConstraint> &constraints, bool memory)
      : base(base), constraints(constraints), memory(memory),
        count(base.segments.size()), options(base.replicaOptions.size()) {}

  std::optional<solver::Problem> build() {
    declare();
    addChain();
    addWishes();
    addMemory(base, kNoRule);
    for (const SideConstraint &constraint : constraints)
      addConstraint(constraint, model.addRule(toYaml(constraint)));
    if (model.constraints.size() > kMostClauses)
      return std::nullopt;
    return std::move(model);
  }

private:
  void declare() {
    for (int64_t i = 0; i < count; ++i) {
      stage.push_back(model.addInteger(fmt::format("stage{}", i)));
      device.push_back(model.addInteger(fmt::format("device{}", i)));
      std::vector<solver::Truth> &own = option.emplace_back();
      for (int64_t o = 0; o < options; ++o)
        own.push_back(model.addTruth(fmt::format("option{}_{}", i, o)));
    }
  }

  /// Two clauses: x = y + gap.
  void equal(solver::Integer x, solver::Integer y, int64_t gap,
             int32_t rule = kNoRule) {
    model.require({atLeast(x, y, gap)}, rule);
    model.require({atMost(x, y, gap)}, rule);
  }

  solver::Literal cutAfter(int64_t i) const {
    return atLeast(stage[i + 1], stage[i], 1);
  }
  solver::Literal noCutAfter(int64_t i) const {
    return atMost(stage[i + 1], stage[i], 0);
  }

  void addChain() {
    equal(stage[0], kOrigin, 0);
    equal(device[0], kOrigin, 0);
    for (int64_t i = 0; i < count; ++i) {
      addOptions(i);
      if (i + 1 < count)
        addStep(i);
    }
    const int64_t last = count - 1, devices = base.cluster.devices;
    for (int64_t o = 0; o < options; ++o) {
      const int64_t left = devices - base.replicaOptions[o];
      model.require({fails(option[last][o]), atMost(device[last], kOrigin, left)});
      if (base.useAllDevices)
        model.require(
            {fails(option[last][o]), atLeast(device[last], kOrigin, left)});
    }
  }

  /// Exactly one option, of those allowed.
  void addOptions(int64_t i) {
    Clause any;
    for (int64_t o = 0; o < options; ++o) {
      any.push_back(holds(option[i][o]));
      if (base.replicas && base.replicaOptions[o] != *base.replicas)
        model.require({fails(option[i][o])});
      for (int64_t p = 0; p < o; ++p)
        model.require({fails(option[i][p]), fails(option[i][o])});
    }
    model.require(any);
  }

  void addStep(int64_t i) {
    const bool given = base.cuts && std::binary_search(base.cuts->begin(),
                                                       base.cuts->end(), i + 1);
    model.require({atLeast(stage[i + 1], stage[i], 0)});
    model.require({atMost(stage[i + 1], stage[i], 1)});
    if (base.cuts)
      equal(stage[i + 1], stage[i], given ? 1 : 0);
    else if (!base.segments[i].mayCutAfter)
      model.require({noCutAfter(i)});
    model.require({cutAfter(i), atLeast(device[i + 1], device[i], 0)});
    model.require({cutAfter(i), atMost(device[i + 1], device[i], 0)});
    for (int64_t o = 0; o < options; ++o) {
      const int64_t replicas = base.replicaOptions[o];
      model.require({cutAfter(i), fails(option[i][o]), holds(option[i + 1][o])});
      model.require({noCutAfter(i), fails(option[i][o]),
                     atLeast(device[i + 1], device[i], replicas)});
      model.require({noCutAfter(i), fails(option[i][o]),
                     atMost(device[i + 1], device[i], replicas)});
    }
  }

  void addWishes() {
    if (base.stages != 0)
      equal(stage.back(), kOrigin, base.stages - 1);
    if (base.maxStages != 0)
      model.require({atMost(stage.back(), kOrigin, base.maxStages - 1)});
    for (const SegmentPair &pair : base.apart)
      model.require({atLeast(stage[pair.second], stage[pair.first], 1)});
    for (const StagePin &pin : base.pins)
      equal(stage[pin.segment], kOrigin, pin.stage);
  }

  /// Most micro-batches in flight with which a stage fits, 0: none.
  int64_t mostHeld(const PartitionProblem &problem, int64_t begin, int64_t end,
                   int64_t o) const {
    const Bytes none = stageMemory(problem, begin, end, o, 0);
    const Bytes each = stageMemory(problem, begin, end, o, 1) - none;
    const Bytes left = problem.cluster.memory - none;
    if (left < 0)
      return 0;
    return each == 0 ? problem.microBatches
                     : std::min(problem.microBatches, left / each);
  }

  /// No stage [i, j] on option o with more in flight than fit.
  void addMemory(const PartitionProblem &problem, int32_t rule) {
    if (problem.cluster.memory == 0 || !memory)
      return;
    const int64_t last = count - 1;
    for (int64_t i = 0; i < count; ++i)
      for (int64_t j = i; j < count; ++j)
        for (int64_t o = 0; o < options; ++o) {
          const int64_t held = mostHeld(problem, i, j + 1, o);
          if (held >= problem.microBatches)
            continue;
          Clause clause{fails(option[i][o])};
          if (i > 0)
            clause.push_back(noCutAfter(i - 1));
          if (j > i)
            clause.push_back(atLeast(stage[j], stage[i], 1));
          if (j < last)
            clause.push_back(noCutAfter(j));
          if (problem.inFlight == InFlightPolicy::OneFOneB && held > 0)
            clause.push_back(atMost(stage[last], stage[i], held - 1));
          model.require(std::move(clause), rule);
          if (model.constraints.size() > kMostClauses)
            return;
        }
  }

  void addConstraint(const SideConstraint &constraint, int32_t rule) {
    switch (constraint.kind) {
    case ConstraintKind::KeepTogether:
    case ConstraintKind::NoCutAfter:
    case ConstraintKind::NoCutBefore:
      for (const SegmentRange &a : constraint.parts)
        for (const SegmentRange &b : constraint.parts)
          model.require({atMost(stage[b.end - 1], stage[a.begin], 0)}, rule);
      break;
    case ConstraintKind::KeepApart:
      for (size_t a = 0; a < constraint.parts.size(); ++a)
        for (size_t b = 0; b < a; ++b)
          addApart(constraint.parts[a], constraint.parts[b], rule);
      break;
    case ConstraintKind::Pin:
      for (const SegmentRange &part : constraint.parts)
        for (int64_t i = part.begin; i < part.end; ++i)
          equal(stage[i], kOrigin, constraint.number, rule);
      break;
    case ConstraintKind::Stages:
      equal(stage.back(), kOrigin, constraint.number - 1, rule);
      break;
    case ConstraintKind::MaxStages:
      model.require({atMost(stage.back(), kOrigin, constraint.number - 1)},
                    rule);
      break;
    case ConstraintKind::HeadroomBytes:
    case ConstraintKind::HeadroomPpm:
      addMemory(*constrain(base, {constraint}), rule);
      break;
    }
  }

  void addApart(SegmentRange a, SegmentRange b, int32_t rule) {
    if (b.begin < a.begin)
      std::swap(a, b);
    model.require({atLeast(stage[b.begin], stage[a.end - 1], 1)}, rule);
  }

  const PartitionProblem &base;
  const std::vector<SideConstraint> &constraints;
  const bool memory;
  const int64_t count, options;
  solver::Problem model;
  std::vector<solver::Integer> stage, device;
  std::vector<std::vector<solver::Truth>> option;
};

} // namespace

std::optional<solver::Problem>
takt::sideConstraintQuestion(const PartitionProblem &base,
                             const std::vector<SideConstraint> &constraints,
                             bool memory) {
  if (base.check())
    return std::nullopt;
  return Question(base, constraints, memory).build();
}
