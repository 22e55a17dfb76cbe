//===- ConstraintTests.cpp - side constraints against enumeration ---------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Random chains with random side constraints: exact solver, difference logic
// and brute force agree on feasibility and value; clashes are minimal and the
// relief is the cheapest there is.
//
//===----------------------------------------------------------------------===//
#include "RandomProblem.h"
#include "takt/Partition/Constraints.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

using namespace takt;
using namespace takt::test;

namespace {

SegmentRange randomRange(Random &random, int64_t segments, int64_t most) {
  const int64_t begin = random.in(0, segments - 1);
  return {begin, std::min(segments, begin + random.in(1, most))};
}

SideConstraint randomConstraint(Random &random, int64_t segments) {
  SideConstraint constraint;
  constraint.kind = static_cast<ConstraintKind>(random.in(0, 8));
  switch (constraint.kind) {
  case ConstraintKind::KeepTogether:
    for (int64_t n = random.in(1, 2); n > 0; --n)
      constraint.parts.push_back(randomRange(random, segments, 2));
    break;
  case ConstraintKind::KeepApart:
    // Layers of one segment may be named, so equal parts occur.
    for (int64_t n = random.in(2, 3); n > 0; --n) {
      const int64_t at = random.in(0, segments - 1);
      constraint.parts.push_back({at, at + 1});
    }
    break;
  case ConstraintKind::NoCutAfter:
  case ConstraintKind::NoCutBefore:
    if (segments > 1) {
      const int64_t at = random.in(0, segments - 2);
      constraint.parts.push_back({at, at + 2});
    }
    break;
  case ConstraintKind::Pin:
    constraint.parts.push_back(randomRange(random, segments, 2));
    constraint.number = random.in(0, 2);
    break;
  case ConstraintKind::Stages:
  case ConstraintKind::MaxStages:
    constraint.number = random.in(1, 4);
    break;
  case ConstraintKind::HeadroomBytes:
    constraint.number = random.in(1, 4000);
    break;
  case ConstraintKind::HeadroomPpm:
    constraint.number = random.in(1, 500000);
    break;
  }
  for (size_t p = 0; p < constraint.parts.size(); ++p)
    constraint.names.push_back(fmt::format("s{}", constraint.parts[p].begin));
  return constraint;
}

struct Instance {
  PartitionProblem base;
  std::vector<SideConstraint> constraints;
};

Instance randomInstance(uint64_t seed) {
  Instance instance;
  instance.base = randomProblem(seed);
  Random random(seed + 7777777);
  const int64_t segments = instance.base.segments.size();
  for (int64_t n = random.in(1, 4); n > 0; --n)
    instance.constraints.push_back(randomConstraint(random, segments));
  return instance;
}

/// All assignments of `base`, judged by the independent check alone.
class Enumeration {
public:
  explicit Enumeration(const Instance &instance) : instance(instance) {
    extend(0, 0);
  }
  std::optional<Nanos> best;

private:
  void extend(int64_t begin, int64_t devices) {
    const PartitionProblem &base = instance.base;
    const int64_t segments = base.segments.size();
    if (begin == segments) {
      evaluate(base, current);
      current.bound = 0;
      if ((!best || current.objective < *best) &&
          !verify(base, instance.constraints, current))
        best = current.objective;
      return;
    }
    for (int64_t end = begin + 1; end <= segments; ++end)
      for (size_t o = 0; o < base.replicaOptions.size(); ++o) {
        if (devices + base.replicaOptions[o] > base.cluster.devices)
          break;
        StageChoice stage;
        stage.begin = begin;
        stage.end = end;
        stage.option = int64_t(o);
        current.stages.push_back(stage);
        extend(end, devices + base.replicaOptions[o]);
        current.stages.pop_back();
      }
  }

  const Instance &instance;
  Partition current;
};

TEST(SideConstraints, AgreeWithEnumerationAndDifferenceLogic) {
  int infeasible = 0, bound = 0;
  for (uint64_t seed = 0; seed < 500; ++seed) {
    SCOPED_TRACE(seed);
    const Instance instance = randomInstance(seed);
    const auto &[base, constraints] = instance;
    const std::optional<Nanos> expected = Enumeration(instance).best;
    const PartitionResult found =
        solvePartition(base, constraints, int64_t(1) << 30);
    ASSERT_EQ(found.partition.has_value(), expected.has_value())
        << found.infeasible.reason;
    const auto constrained = constrain(base, constraints);
    ASSERT_EQ(constrained &&
                  partitionFeasible(*constrained) == Feasibility::Yes,
              expected.has_value());
    if (expected) {
      EXPECT_EQ(found.partition->objective, *expected);
      EXPECT_EQ(found.partition->bound, *expected);
      EXPECT_EQ(verify(base, constraints, *found.partition).value_or(""), "");
      const PartitionResult plain = solvePartition(base);
      bound += plain.partition->objective < *expected;
    }
    infeasible += !expected;
    if (!solver::available())
      continue;
    const auto question = sideConstraintQuestion(base, constraints);
    ASSERT_TRUE(question);
    const solver::Answer answer = solver::decide(*question, {});
    ASSERT_NE(answer.verdict, solver::Verdict::Unknown) << answer.message;
    ASSERT_EQ(answer.verdict == solver::Verdict::Satisfiable,
              expected.has_value());
  }
  // Constraints must both forbid everything and merely cost now and then.
  EXPECT_GT(infeasible, 100);
  EXPECT_LT(infeasible, 400);
  EXPECT_GT(bound, 20);
}

std::optional<Nanos> bestWithout(const Instance &instance,
                                 const std::vector<int32_t> &removed) {
  Instance fewer{instance.base, {}};
  for (size_t c = 0; c < instance.constraints.size(); ++c)
    if (!std::count(removed.begin(), removed.end(), int32_t(c)))
      fewer.constraints.push_back(instance.constraints[c]);
  return Enumeration(fewer).best;
}

TEST(SideConstraints, ClashesAreMinimalAndReliefCheapest) {
  int clashes = 0, several = 0, loosened = 0;
  for (uint64_t seed = 0; seed < 400; ++seed) {
    SCOPED_TRACE(seed);
    Instance instance = randomInstance(seed);
    if (Enumeration(instance).best)
      continue;
    const ClashReport report =
        explainClash(instance.base, instance.constraints, {});
    const bool factsAlone = !solvePartition(instance.base).partition;
    ASSERT_EQ(report.cores.empty(), factsAlone);
    if (factsAlone)
      continue;
    ++clashes;
    // The first core clashes, and none of its members can be spared.
    const std::vector<int32_t> &core = report.cores.front();
    for (size_t left = 0; left <= core.size(); ++left) {
      Instance part{instance.base, {}};
      for (size_t c = 0; c < core.size(); ++c)
        if (c != left)
          part.constraints.push_back(instance.constraints[core[c]]);
      EXPECT_EQ(Enumeration(part).best.has_value(), left < core.size());
    }
    // Applied, the relief is feasible at the objective stated.
    ASSERT_FALSE(report.reliefs.empty());
    several += report.reliefs.size() > 1;
    EXPECT_EQ(report.cores.size(), report.reliefs.size());
    Instance relieved{instance.base, {}};
    std::vector<int32_t> removed;
    for (const Relief &relief : report.reliefs)
      removed.push_back(relief.constraint);
    for (size_t c = 0; c < instance.constraints.size(); ++c) {
      const auto relief = std::find_if(
          report.reliefs.begin(), report.reliefs.end(),
          [&](const Relief &r) { return r.constraint == int32_t(c); });
      if (relief == report.reliefs.end())
        relieved.constraints.push_back(instance.constraints[c]);
      else if (relief->replacement) {
        relieved.constraints.push_back(*relief->replacement);
        ++loosened;
      }
    }
    const std::optional<Nanos> reached = Enumeration(relieved).best;
    ASSERT_TRUE(reached);
    EXPECT_EQ(*reached, report.objective);
    // No set of so few does better, and none smaller does at all.
    for (size_t mask = 1; mask < size_t(1) << instance.constraints.size();
         ++mask) {
      std::vector<int32_t> other;
      for (size_t c = 0; c < instance.constraints.size(); ++c)
        if (mask >> c & 1)
          other.push_back(int32_t(c));
      if (other.size() > removed.size())
        continue;
      const std::optional<Nanos> value = bestWithout(instance, other);
      if (other.size() < removed.size())
        EXPECT_FALSE(value);
      else
        EXPECT_TRUE(!value || *value >= report.objective);
    }
  }
  EXPECT_GT(clashes, 60);
  EXPECT_GT(several, 3);
  EXPECT_GT(loosened, 20);
}

/// Facts are named only where the clash goes away without them.
TEST(SideConstraints, FactsTakePart) {
  PartitionProblem base;
  base.replicaOptions = {1};
  base.cluster.devices = 2;
  for (int i = 0; i < 4; ++i) {
    SegmentCost segment;
    segment.name = fmt::format("s{}", i);
    segment.time = segment.update = segment.saved = segment.workspace =
        segment.output = {1};
    base.segments.push_back(segment);
  }
  const SideConstraint apart{
      ConstraintKind::KeepApart, {"a", "b", "c"}, {{0, 1}, {1, 2}, {2, 3}}, 0};
  ClashReport report = explainClash(base, {apart}, {});
  ASSERT_EQ(report.cores, (std::vector<std::vector<int32_t>>{{0}}));
  EXPECT_EQ(report.facts, (std::vector<std::string>{"2 devices"}));

  base.cluster.devices = 4;
  base.stages = 2;
  report = explainClash(base, {apart}, {});
  EXPECT_EQ(report.facts, (std::vector<std::string>{"'--stages=2'"}));

  // A pin behind a later one needs nothing else.
  base.stages = 0;
  const SideConstraint late{ConstraintKind::Pin, {"b"}, {{1, 2}}, 1};
  const SideConstraint early{ConstraintKind::Pin, {"c"}, {{2, 3}}, 0};
  report = explainClash(base, {late, early}, {});
  ASSERT_EQ(report.cores.size(), 1u);
  EXPECT_EQ(report.cores.front(), (std::vector<int32_t>{0, 1}));
  EXPECT_TRUE(report.facts.empty());
}

/// Chains whose contradictions need a hundred members and no few reliefs: the
/// budget ends the search, and what is reported is still a clash.
TEST(SideConstraints, LongExplanationsEndWithTheirBudget) {
  if (!solver::available())
    GTEST_SKIP() << "this build has no Z3";
  PartitionProblem base;
  base.replicaOptions = {1};
  base.cluster.devices = 64;
  base.cluster.memory = 1000000000;
  base.microBatches = 8;
  std::vector<SideConstraint> apart;
  for (int i = 0; i < 120; ++i) {
    SegmentCost segment;
    segment.name = fmt::format("l{}", i);
    segment.time = {3000000 + i % 7};
    segment.update = {1};
    segment.weights = segment.gradients = 10000000;
    segment.saved = segment.workspace = segment.output = {1000000};
    base.segments.push_back(segment);
    if (i > 0)
      apart.push_back({ConstraintKind::KeepApart,
                       {"a", "b"},
                       {{i - 1, i}, {i, i + 1}},
                       0});
  }
  apart.push_back({ConstraintKind::MaxStages, {}, {}, 30});
  const ClashReport whole = explainClash(base, apart, {});
  ASSERT_FALSE(whole.cores.empty());
  EXPECT_TRUE(whole.minimal);
  EXPECT_LE(whole.cores.front().size(), 31u); // 30 cuts and the limit
  EXPECT_TRUE(whole.reliefs.empty());
  for (const int32_t spared : whole.cores.front()) {
    std::vector<SideConstraint> rest;
    for (const int32_t c : whole.cores.front())
      if (c != spared)
        rest.push_back(apart[c]);
    EXPECT_EQ(partitionFeasible(*constrain(base, rest)), Feasibility::Yes);
  }
  // With next to nothing to spend, the list is long but true.
  const ClashReport cut = explainClash(base, apart, {}, 2000000);
  ASSERT_FALSE(cut.cores.empty());
  EXPECT_FALSE(cut.minimal);
  std::vector<SideConstraint> core;
  for (const int32_t c : cut.cores.front())
    core.push_back(apart[c]);
  EXPECT_FALSE(solvePartition(base, core, int64_t(1) << 30).partition);
}

TEST(SideConstraints, TextIsThatOfTheFile) {
  SideConstraint constraint;
  constraint.names = {"h.0", "head"};
  EXPECT_EQ(toYaml(constraint), "keep_together: [h.0, head]");
  constraint = {ConstraintKind::Pin, {"head"}, {}, 3};
  EXPECT_EQ(toYaml(constraint), "pin: {layer: head, stage: 3}");
  constraint = {ConstraintKind::HeadroomPpm, {}, {}, 105000};
  EXPECT_EQ(toYaml(constraint), "memory_headroom: 10.5 %");
  constraint = {ConstraintKind::HeadroomBytes, {}, {}, int64_t(2) << 30};
  EXPECT_EQ(toYaml(constraint), "memory_headroom: 2 GiB");
  constraint.number = 2000000000;
  EXPECT_EQ(toYaml(constraint), "memory_headroom: 2 GB");
  constraint.number = 2000000001;
  EXPECT_EQ(toYaml(constraint), "memory_headroom: 2000000001 B");
  constraint = {ConstraintKind::HeadroomPpm, {}, {}, 999999};
  EXPECT_EQ(toYaml(constraint), "memory_headroom: 99.9999 %");
}

TEST(SideConstraints, TheCheckSeesWhatIsNotKept) {
  PartitionProblem base = randomProblem(3);
  while (base.segments.size() < 4)
    base.segments.push_back(base.segments.front());
  base.cluster.memory = 0;
  base.stages = base.maxStages = 0;
  base.cuts.reset();
  base.replicas.reset();
  base.useAllDevices = false;
  base.replicaOptions.resize(1);
  for (SegmentCost &segment : base.segments) {
    segment.mayCutAfter = true;
    for (auto values :
         {&SegmentCost::time, &SegmentCost::update, &SegmentCost::saved,
          &SegmentCost::workspace, &SegmentCost::output})
      (segment.*values).resize(1);
  }
  base.replicaOptions = {1};
  base.cluster.devices = 2;
  const PartitionResult found = solvePartition(
      base, {{ConstraintKind::Stages, {}, {}, 2}}, int64_t(1) << 20);
  ASSERT_TRUE(found.partition);
  auto fault = [&](SideConstraint constraint) {
    return verify(base, {constraint}, *found.partition).value_or("");
  };
  const int64_t last = int64_t(base.segments.size()) - 1;
  const SegmentRange head{0, 1}, tail{last, last + 1};
  EXPECT_EQ(fault({ConstraintKind::KeepTogether, {"a", "b"}, {head, tail}, 0}),
            "'keep_together: [a, b]' is not kept");
  EXPECT_EQ(fault({ConstraintKind::KeepApart, {"a", "b"}, {head, tail}, 0}), "");
  EXPECT_EQ(fault({ConstraintKind::KeepApart, {"a", "b"}, {head, head}, 0}),
            "'keep_apart: [a, b]' is not kept");
  EXPECT_EQ(fault({ConstraintKind::Pin, {"a"}, {head}, 1}),
            "'pin: {layer: a, stage: 1}' is not kept");
  EXPECT_EQ(fault({ConstraintKind::Stages, {}, {}, 3}),
            "'stages: 3' is not kept");
  EXPECT_EQ(fault({ConstraintKind::MaxStages, {}, {}, 1}),
            "'max_stages: 1' is not kept");
}

} // namespace
